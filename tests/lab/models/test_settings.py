"""The most extreme settings stay finite, and down-sampling loses nothing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal
from flax import nnx

from convattn.lab.models.build import build_model
from convattn.lab.models.downsampling import downsample, token_grid, upsample
from convattn.lab.models.settings import EncoderSettings


@pytest.mark.parametrize("encoding", ["quadratic", "gaussian"])
def test_the_most_extreme_settings_stay_finite(encoding):
    """Also where tokens are zero, so that LayerNorm has nothing but epsilon to divide by."""
    extremes = {"norm_epsilon": 1e-20, "center_variance": 1e6, "spread_variance": 1e6}
    settings = EncoderSettings(encoding, heads=(2,), width=2, inner=2, **extremes)
    rngs = nnx.Rngs(0)
    model = build_model(settings, classes=2, image_size=(4, 4), rngs=rngs)

    @nnx.jit
    def step(model, given):
        return nnx.value_and_grad(lambda model: (model(given) ** 2).sum())(model)

    graph, state = nnx.split(model)
    kept = ("classifier", "norm")
    zero = jax.tree_util.tree_map_with_path(
        lambda path, part: part * any(name in jax.tree_util.keystr(path) for name in kept), state
    )
    images = jnp.ones((1, 4, 4, 3))

    def is_finite(model):
        parts = jax.tree.leaves(step(model, images))
        return all(np.isfinite(np.asarray(part)).all() for part in parts)

    assert is_finite(nnx.merge(graph, state))
    model = nnx.merge(graph, zero)
    assert is_finite(model)
    for layer in model.layers:  # planted: beyond what float32 holds to the power -3/2
        layer.attention_norm.epsilon = layer.outer_norm.epsilon = 1e-30
    assert not is_finite(model)


def test_downsampling_is_a_permutation_of_the_numbers():
    images = jnp.arange(2 * 4 * 6 * 3).reshape(2, 4, 6, 3)
    tokens = downsample(images, 2)
    for b, i, j in np.ndindex(2, 2, 3):
        square = np.asarray(images)[b, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2]
        assert_equal(tokens[b, i, j], square.reshape(-1))
    assert_equal(upsample(tokens, 2), images)
    assert (np.asarray(upsample(tokens[..., ::-1], 2)) != np.asarray(images)).any()


@pytest.mark.parametrize("size", [(7, 8), (8,), (0, 8), (8, 8, 8), (8.0, 8), 8, ("8", "8")])
def test_sizes_that_do_not_fit_are_refused(size):
    with pytest.raises(ValueError, match="image_size"):
        token_grid(size, 2)
