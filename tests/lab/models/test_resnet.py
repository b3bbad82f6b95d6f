"""The ResNet, against PyTorch's conventions written out in NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal, assert_within
from flax import nnx
from lab.models.tiny import filled

from convattn_lab.models.build import build_model
from convattn_lab.models.settings import ResNetSettings
from convattn_lab.models.sizes import abstract_model

SETTINGS = ResNetSettings(channels=(3, 4), blocks=(1, 1))
CLOSE = 2.0**-30  # as for the encoder: float64 in another order


def tiny(dtype="float32"):
    """Statistics and parameters of the dtype that it computes in, or float32."""
    stored_dtype = jnp.promote_types(dtype, "float32").name
    options = {"classes": 5, "image_size": (6, 5), "dtype": dtype}
    return filled(abstract_model(SETTINGS, **options), dtype=stored_dtype)


run = nnx.jit(lambda model, images, training: model(images, training=training), static_argnums=2)


def images(dtype="float32"):
    return jnp.asarray(np.random.default_rng(1).normal(size=(2, 6, 5, 3)), dtype)


def numbers(parameter):
    return np.asarray(parameter[...], np.float64)


def convolved(layer, values, stride, training, size):
    """out[q] = Σ_δ x[stride·q + δ] w[δ], zeros outside, then the norm."""
    kernel, reach = numbers(layer.convolution.kernel), size // 2
    padded = np.pad(values, ((0, 0), (reach,) * 2, (reach,) * 2, (0, 0)))
    rows, columns = (-(-side // stride) for side in values.shape[1:3])
    result = np.zeros((len(values), rows, columns, kernel.shape[-1]))
    for i, j in np.ndindex(rows, columns):
        patch = padded[:, stride * i : stride * i + size, stride * j : stride * j + size]
        result[:, i, j] = np.einsum("bhwi,hwio->bo", patch, kernel)
    mean, variance = (
        (result.mean((0, 1, 2)), result.var((0, 1, 2)))
        if training
        else (numbers(layer.norm.mean), numbers(layer.norm.var))
    )
    scaled = (result - mean) / np.sqrt(variance + 1e-5)
    return scaled * numbers(layer.norm.scale) + numbers(layer.norm.bias)


def logits(model, inputs, training):
    values = np.maximum(convolved(model.stem, np.asarray(inputs), 1, training, 3), 0)
    for block, stride in zip(model.blocks, (1, 2), strict=True):
        result = np.maximum(convolved(block.first, values, stride, training, 3), 0)
        result = convolved(block.second, result, 1, training, 3)
        if block.shortcut is not None:
            values = convolved(block.shortcut, values, stride, training, 1)
        values = np.maximum(result + values, 0)
    return values.mean((1, 2)) @ numbers(model.classifier.kernel) + numbers(model.classifier.bias)


@pytest.mark.slow
@pytest.mark.parametrize("training", [False, True])
def test_the_logits_are_those_of_the_loops(training):
    """Zeros on both sides for the stride, as in PyTorch, where "SAME" would lay them on one."""
    model, inputs = tiny("float64"), images("float64")
    expected = logits(model, inputs, training)
    result = run(model, inputs, training)
    assert_within(result, expected, CLOSE)
    with pytest.raises(AssertionError, match="too far"):
        assert_within(result, logits(model, inputs, not training), CLOSE)


def statistics(model):
    return [np.array(leaf) for leaf in jax.tree.leaves(nnx.state(model, nnx.BatchStat))]


def test_batch_statistics_change_in_training_only():
    """By a tenth of the way to those of the batch."""
    model, inputs = tiny("float64"), images("float64")
    before = statistics(model)
    run(model, inputs, False)
    for old, new in zip(before, statistics(model), strict=True):
        assert_equal(new, old)
    mean = numbers(model.stem.norm.mean)
    run(model, inputs, True)
    assert all((old != new).any() for old, new in zip(before, statistics(model), strict=True))
    result = model.stem.convolution(inputs)
    expected = 0.9 * mean + 0.1 * np.asarray(result).mean((0, 1, 2))
    assert_within(numbers(model.stem.norm.mean), expected, CLOSE)


@pytest.mark.slow
def test_a_gradient_flows_to_every_parameter_and_logits_are_float32():
    @nnx.jit
    def step(model, inputs):
        return nnx.value_and_grad(lambda model: (model(inputs, training=True) ** 2).sum())(model)

    model = tiny("bfloat16")
    _, gradient = step(model, images())
    leaves = jax.tree.leaves(gradient)
    assert len(leaves) == 3 * 6 + 2
    assert all(np.abs(np.asarray(leaf)).max() > 0 for leaf in leaves)
    assert_dtype(model(images()), "float32")
    assert {leaf.dtype for leaf in jax.tree.leaves(nnx.state(model))} == {jnp.dtype("float32")}


@pytest.mark.slow
def test_kernels_begin_with_the_variance_two_over_what_they_write():
    """He's normal of fan-out: 2/(9·outputs), within five deviations of a variance of n numbers."""
    wide = ResNetSettings(channels=(40,), blocks=(1,))
    model = build_model(wide, classes=2, image_size=(8, 8), rngs=nnx.Rngs(0))
    kernel = numbers(model.blocks[0].first.convolution.kernel)
    variance = 2 / (9 * 40)
    assert abs(kernel.var() - variance) < 5 * variance * np.sqrt(2 / kernel.size)
