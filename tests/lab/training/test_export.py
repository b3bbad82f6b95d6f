"""The step of every model, and every back end, as one program for CPUs, GPUs and TPUs.

It is made here, and run on the CPU with the result of the original; where `flatbuffers` is
installed, which JAX needs for it, also after it was serialised and read back.
"""

import importlib.util
from dataclasses import replace

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from benchmarks.architectures import ConvNeXtBlock
from comparison import assert_equal, assert_within
from fast.layers import LAYER_BUCKETS, make_layer_case
from flax import nnx
from lab.models.tiny import SIZE, tiny
from lab.training.devices_process import PLATFORMS
from lab.training.tiny import set_up, settings, training_images

import convattn as ca
from convattn.data.cifar10_slice import Images
from convattn.fast.options import AttentionOptions
from convattn.fast.selection import BACK_ENDS
from convattn_lab.models.build import build_model
from convattn_lab.models.settings import ResNetSettings
from convattn_lab.training.state import named_arrays
from convattn_lab.training.step import make_step, order_of_epoch

# The model and its parameters are float64 here. An exported program is compiled with a choice of
# platform in it, so XLA fuses and orders it anew; an error of a few hundred roundings, amplified by
# at most a few powers of ten through the norms, is far below this, and what is planted far above.
CLOSE = 2.0**-30
CLOSE_IN_FLOAT32 = 2.0**-14  # of the largest number, by the same reasoning


def model_of(name):
    """An encoder, and a ResNet with a shortcut."""
    options = {"classes": 5, "image_size": SIZE, "dtype": jnp.float64}

    def model_in_float64():
        if name == "encoder":
            model = tiny("quadratic", (2,), dtype="float64")
        else:
            model = build_model(ResNetSettings((4, 6), (1, 1)), rngs=nnx.Rngs(0), **options)
        nnx.update(model, jax.tree.map(lambda leaf: leaf.astype(jnp.float64), nnx.state(model)))
        return model

    return nnx.jit(model_in_float64)()


def exported(program, *arguments):
    """The program for all platforms, through its serialised form if that can be made here."""
    result = jax.export.export(program, platforms=PLATFORMS)(*arguments)
    assert result.platforms == PLATFORMS
    if importlib.util.find_spec("flatbuffers") is None:
        return result
    return jax.export.deserialize(result.serialize())


def assert_close(actual, expected):
    """Within a fraction of the largest number of each array, in float32."""
    for one, other in zip(*map(jax.tree.leaves, (actual, expected)), strict=True):
        assert_within(one, other, CLOSE_IN_FLOAT32 * (1 + np.abs(np.asarray(other)).max()))


def images_of_size():
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (8, *SIZE, 3)).astype(np.uint8)
    labels = (np.arange(8) % 5).astype(np.uint8)
    return training_images(train=Images(pixels, labels, tuple("abcde")))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["encoder", "resnet"])
def test_the_training_step_is_exported(name):
    recipe, _, state, data, steps = set_up(model_of(name), settings(batch_size=4), images_of_size())
    order = order_of_epoch(state, 8, steps)
    leaves, structure = jax.tree.flatten((state, data, order))
    step = make_step(recipe, steps)

    @jax.jit
    def flat(*leaves):  # serialised, it knows nothing of the classes of this library
        return jax.tree.leaves(step(*jax.tree.unflatten(structure, leaves)))

    program = exported(flat, *leaves)

    def run_exported(state):
        *leaves, loss = program.call(*jax.tree.leaves((state, data, order)))
        return jax.tree.unflatten(jax.tree.structure(state), leaves), loss

    actual, loss = run_exported(state)
    expected, expected_loss = jax.jit(make_step(recipe, steps))(state, data, order)
    assert_within(loss, expected_loss, CLOSE, "loss")
    arrays = named_arrays(expected)
    for name, array in named_arrays(actual).items():
        assert_within(array, arrays[name], CLOSE, name)
    assert int(actual.step) == 1
    other, _ = run_exported(replace(state, key=state.key + 1))
    moved = named_arrays(other.parameters)
    assert any(  # planted: another key
        np.abs(array - moved[name]).max() > 100 * CLOSE
        for name, array in named_arrays(expected.parameters).items()
    )


def case_for(back_end):
    """The first layer that it serves, in float32."""
    for bucket in LAYER_BUCKETS:
        case = make_layer_case(bucket, 0)
        layer, images = jax.tree.map(single, (case.layer, case.images))
        options = AttentionOptions(tokens_dtype=np.dtype("float32"))
        if back_end.refusal(layer, bucket.grid, options) is None:
            return bucket, layer, images
    raise AssertionError(f"{back_end.name} serves none of the layers")


def single(leaf):
    floats = jnp.issubdtype(jnp.result_type(leaf), jnp.floating)
    return jnp.asarray(leaf, jnp.float32) if floats else jnp.asarray(leaf)


@pytest.mark.slow
@pytest.mark.parametrize("name", BACK_ENDS)
def test_every_back_end_is_exported(name):
    bucket, layer, images = case_for(BACK_ENDS[name])
    axes = tuple((shifts.start, shifts.stop - 1) for shifts in bucket.grid.shift_ranges)
    windows = (axes,) * bucket.heads if name == "windowed" else None
    leaves, structure = jax.tree.flatten(layer)

    def apply(leaves, images):
        layer = jax.tree.unflatten(structure, leaves)
        return ca.apply_attention(layer, images, backend=name, windows=windows)

    @jax.jit
    def both(leaves, images):
        result, pull_back = jax.vjp(apply, leaves, images)
        return result, pull_back(jnp.ones_like(result))

    actual, expected = exported(both, leaves, images).call(leaves, images), both(leaves, images)
    assert_close(actual, expected)
    with pytest.raises(AssertionError, match="too far"):  # planted
        assert_close(actual[0], expected[0] + 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["resnet", "convnext"])
def test_networks_as_attention_are_exported(name):
    if name == "resnet":
        settings = ResNetSettings((4, 6), (1, 1))
        model = build_model(settings, classes=5, image_size=SIZE, rngs=nnx.Rngs(0))
    else:
        model = nnx.Sequential(ConvNeXtBlock(4, nnx.Rngs(0)), ConvNeXtBlock(4, nnx.Rngs(1)))
    definition, state = nnx.split(model)
    leaves, structure = jax.tree.flatten(state)
    channels = 3 if name == "resnet" else 4
    images = jnp.asarray(np.random.default_rng(0).random((2, *SIZE, channels)), jnp.float32)

    def network(leaves, images):
        return nnx.merge(definition, jax.tree.unflatten(structure, leaves))(images)

    def loss(leaves, images):
        return (ca.with_attention(network)(leaves, images) ** 2).sum()

    step = jax.jit(jax.value_and_grad(loss))
    actual = exported(step, leaves, images).call(leaves, images)
    assert_close(actual, step(leaves, images))


def test_auto_is_exported_too():
    """It looks at the platform that it is exported on, and what it takes serves all of them."""
    _, layer, images = case_for(BACK_ENDS["dense"])
    apply = jax.jit(lambda images: ca.apply_attention(layer, images))
    assert_equal(exported(apply, images).call(images), apply(images))
