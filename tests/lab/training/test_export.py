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
from comparison import assert_equal, assert_within
from fast.layers import LAYER_BUCKETS, make_layer_case
from flax import nnx
from lab.models.tiny import SIZE, tiny
from lab.training.tiny import parts, settings, training_images

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
PLATFORMS = ("cpu", "cuda", "tpu")


def model_of(name):
    """An encoder, and a ResNet with a shortcut."""
    given = {"classes": 5, "image_size": SIZE, "dtype": jnp.float64}

    def made():
        if name == "encoder":
            model = tiny("quadratic", (2,), dtype="float64")
        else:
            model = build_model(ResNetSettings((4, 6), (1, 1)), rngs=nnx.Rngs(0), **given)
        nnx.update(model, jax.tree.map(lambda leaf: leaf.astype(jnp.float64), nnx.state(model)))
        return model

    return nnx.jit(made)()


def carried(exported):
    """The exported program, through its serialised form if that can be made here."""
    if importlib.util.find_spec("flatbuffers") is None:
        return exported
    return jax.export.deserialize(exported.serialize())


def images_of_size():
    rng = np.random.default_rng(0)
    made = rng.integers(0, 256, (8, *SIZE, 3)).astype(np.uint8)
    labels = (np.arange(8) % 5).astype(np.uint8)
    return training_images(train=Images(made, labels, tuple("abcde")))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["encoder", "resnet"])
def test_the_training_step_is_exported(name):
    recipe, _, state, data, steps = parts(model_of(name), settings(batch_size=4), images_of_size())
    order = order_of_epoch(state, 8, steps)
    leaves, structure = jax.tree.flatten((state, data, order))
    step = make_step(recipe, steps)

    @jax.jit
    def flat(*leaves):  # serialised, it knows nothing of the classes of this library
        return jax.tree.leaves(step(*jax.tree.unflatten(structure, leaves)))

    exported = jax.export.export(flat, platforms=PLATFORMS)(*leaves)
    assert exported.platforms == PLATFORMS
    exported = carried(exported)

    def run_exported(state):
        *leaves, loss = exported.call(*jax.tree.leaves((state, data, order)))
        return jax.tree.unflatten(jax.tree.structure(state), leaves), loss

    found, loss = run_exported(state)
    expected, wanted = jax.jit(make_step(recipe, steps))(state, data, order)
    assert_within(loss, wanted, CLOSE, "loss")
    arrays = named_arrays(expected)
    for part, array in named_arrays(found).items():
        assert_within(array, arrays[part], CLOSE, part)
    assert int(found.step) == 1
    other, _ = run_exported(replace(state, key=state.key + 1))
    moved = named_arrays(other.parameters)
    assert any(  # planted: another key
        np.abs(array - moved[part]).max() > 100 * CLOSE
        for part, array in named_arrays(expected.parameters).items()
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

    @jax.jit
    def apply(leaves, images):
        layer = jax.tree.unflatten(structure, leaves)
        return ca.apply_attention(layer, images, backend=name, windows=windows)

    exported = jax.export.export(apply, platforms=PLATFORMS)(leaves, images)
    assert exported.platforms == PLATFORMS
    found = carried(exported).call(leaves, images)
    expected = apply(leaves, images)
    assert_equal(found, expected, "the exported result")
    with pytest.raises(AssertionError):  # planted
        assert_within(found, expected + 1, 0.5)


def test_auto_is_exported_too():
    """It looks at the platform that it is exported on, and what it takes serves all of them."""
    _, layer, images = case_for(BACK_ENDS["dense"])
    apply = jax.jit(lambda images: ca.apply_attention(layer, images))
    exported = jax.export.export(apply, platforms=PLATFORMS)(images)
    assert_equal(exported.call(images), apply(images))
