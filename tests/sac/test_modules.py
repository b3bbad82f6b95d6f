import subprocess
import sys
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from comparison import assert_equal
from flax import nnx
from sac.random_parameters import apply, apply_cross, integers, sac

from convattn.sac import (
    multiscale_self_attentive_convolution,
    sac_from_convolution,
    self_attentive_convolution,
)
from convattn.sac.modules import (
    CrossAttentiveFeatures,
    MultiscaleSelfAttentiveConvolution,
    SelfAttentiveConvolution,
    SelfAttentiveLayer,
)

SIZES = {"heads": 2, "key_features": 3}
IMAGE = {**SIZES, "image_size": (4, 5)}
MODULES = {
    "sac": (
        lambda rngs: SelfAttentiveConvolution(3, 4, (1, 2), ordinary=True, **IMAGE, rngs=rngs),
        self_attentive_convolution,
        7,
    ),
    "msac": (
        lambda rngs: MultiscaleSelfAttentiveConvolution(
            3, 4, ((1, 1), (1, 2)), ordinary=True, **IMAGE, rngs=rngs
        ),
        multiscale_self_attentive_convolution,
        15,
    ),
    "causal": (
        lambda rngs: SelfAttentiveConvolution(
            3, 4, 2, image_size=(5,), causal=True, **SIZES, rngs=rngs
        ),
        self_attentive_convolution,
        5,
    ),
}


def images_for(name):
    return integers(9, 2, 5, 3) if name == "causal" else integers(9, 2, 4, 5, 3)


@pytest.mark.quick(1)
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow) if name == "sac" else name for name in MODULES],
)
def test_a_module_is_the_pure_function(name) -> None:
    make, pure, count = MODULES[name]
    module, images = make(nnx.Rngs(0)), images_for(name)
    assert len(nnx.to_flat_state(nnx.state(module, nnx.Param))) == count
    result = nnx.jit(lambda module: module(images))(module)
    assert_equal(result, jax.jit(pure)(module.parameters, images))


@pytest.mark.slow
def test_training_lowers_the_loss() -> None:
    """Three steps; every parameter has a finite gradient that is not zero."""
    make, _, count = MODULES["msac"]
    module, images = make(nnx.Rngs(0)), images_for("msac")
    optimizer = nnx.Optimizer(module, optax.sgd(1e-3), wrt=nnx.Param)

    def loss_of(module):
        return ((module(images) - images[..., :1]) ** 2).mean()

    @nnx.jit
    def step(module, optimizer):
        loss, gradients = nnx.value_and_grad(loss_of)(module)
        optimizer.update(module, gradients)
        return loss, gradients

    losses = []
    for _ in range(4):
        loss, gradients = step(module, optimizer)
        losses.append(float(loss))
        leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(gradients)]
        assert len(leaves) == count
        assert all(np.isfinite(leaf).all() and leaf.any() for leaf in leaves)
    assert all(after < before for before, after in pairwise(losses))


def test_the_paths_of_parameters_in_checkpoints() -> None:
    """A run's files hold these names; a leak is a variable that is not trained."""
    module = MODULES["msac"][0](nnx.Rngs(0))
    names = ["key", "merge", "ordinary", "output", "position", "query", "value"]
    paths = [".".join(map(str, path)) for path, _ in nnx.to_flat_state(nnx.state(module))]
    assert sorted(paths) == ["merge", *(f"scales.{i}.{name}" for i in range(2) for name in names)]


@pytest.mark.slow
def test_a_convolution_becomes_a_module() -> None:
    parameters = sac_from_convolution(integers(0, 3, 3, 2, 4), integers(1, 4), stride=2)
    module, images = SelfAttentiveLayer(parameters), integers(2, 1, 5, 6, 2)
    result = nnx.jit(lambda module: module(images))(module)
    assert_equal(result, apply(parameters, images))
    assert len(nnx.to_flat_state(nnx.state(module, nnx.Param))) == 3  # the leak is not trained


def test_keys_can_be_masked() -> None:
    module, images = SelfAttentiveLayer(sac(0, (1, 1), content=False)), images_for("sac")
    mask = jnp.ones((4, 5), bool).at[0].set(False)
    result = nnx.jit(lambda module: module(images, key_mask=mask))(module)
    assert_equal(result, apply(module.parameters, images, key_mask=mask))
    assert (np.asarray(result) != np.asarray(apply(module.parameters, images))).any()


@pytest.mark.slow
def test_cross_attentive_features_train_their_segments() -> None:
    """Segments concatenated to one channel make the layer's three; the gap is handed on."""
    layer = SelfAttentiveLayer(sac(0, (1, 2)))
    pair = CrossAttentiveFeatures(
        layer, segment_shape=(2,), how="concatenate", gap=2, rngs=nnx.Rngs(0)
    )
    images = integers(1, 1, 2, 3, 1), integers(2, 1, 2, 3, 1)
    segments = pair.first_segment[...], pair.second_segment[...]
    assert (segments[0] != segments[1]).all()
    expected = apply_cross(layer.parameters, *images, gap=2, segments=segments, how="concatenate")

    def loss_of(pair):
        parts = pair(*images)
        return (parts[0] ** 2).sum() + parts[1].sum(), parts

    (_, parts), gradients = nnx.jit(nnx.value_and_grad(loss_of, has_aux=True))(pair)
    for part, output in zip(parts, expected, strict=True):
        assert part.shape == output.shape
    plain = nnx.jit(lambda pair: pair(*images))(pair)
    for part, output in zip(plain, expected, strict=True):
        assert_equal(part, output)
    for name in ("first_segment", "second_segment"):
        gradient = np.asarray(gradients[name][...])
        assert np.isfinite(gradient).all()
        assert gradient.any()


@pytest.mark.slow
def test_only_the_modules_import_flax() -> None:
    script = "import sys, convattn, convattn.sac; print('flax' in sys.modules)"
    process = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert process.stdout == "False\n"
