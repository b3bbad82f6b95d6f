"""The most extreme settings stay finite, and image sizes that do not fit are refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from convattn.nnx.layers.images import token_grid
from convattn_lab.models.build import build_model
from convattn_lab.models.settings import EncoderSettings


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["quadratic", "gaussian"])
def test_the_most_extreme_settings_stay_finite(encoding):
    """Also where tokens are zero, so that LayerNorm has nothing but epsilon to divide by."""
    extremes = {"norm_epsilon": 1e-20, "center_variance": 1e6, "spread_variance": 1e6}
    settings = EncoderSettings(encoding, heads=(2,), width=2, inner=2, **extremes)
    rngs = nnx.Rngs(0)
    model = build_model(settings, classes=2, image_size=(4, 4), rngs=rngs)

    @nnx.jit
    def step(model, inputs):
        return nnx.value_and_grad(lambda model: (model(inputs) ** 2).sum())(model)

    graph, state = nnx.split(model)
    nonzero = ("classifier", "norm")
    zero = jax.tree_util.tree_map_with_path(
        lambda path, leaf: leaf * any(name in jax.tree_util.keystr(path) for name in nonzero),
        state,
    )
    images = jnp.ones((1, 4, 4, 3))

    def is_finite(model):
        leaves = jax.tree.leaves(step(model, images))
        return all(np.isfinite(np.asarray(leaf)).all() for leaf in leaves)

    assert is_finite(nnx.merge(graph, state))
    model = nnx.merge(graph, zero)
    assert is_finite(model)
    for layer in model.layers:  # planted: beyond what float32 holds to the power -3/2
        layer.attention_norm.epsilon = layer.outer_norm.epsilon = 1e-30
    assert not is_finite(model)


@pytest.mark.parametrize("size", [(7, 8), (8,), (0, 8), (8.0, 8), 8, ("8", "8")])
def test_sizes_that_do_not_fit_are_refused(size):
    with pytest.raises(ValueError, match="image_size"):
        token_grid(size, 2)
