"""A layer as a linear map, on images whose ring it fills and on others."""

import math
from dataclasses import replace
from itertools import cycle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal, assert_within
from roundings import gamma

from convattn.constructions.conversion import conv_to_attention
from convattn.constructions.linear_map import fill_norm, linear_map
from convattn.constructions.recovery import attention_to_conv
from convattn.fast.application import apply_attention
from convattn.networks.weights.verification import rounding_tolerance, stored_residual
from convattn.operators.convolution import conv
from convattn.operators.padding import read_padding

FILLS = ["SAME", "VALID", "EDGE", "REFLECT", "CIRCULAR", "MEAN", [(0, 1), (1, 0)]]
GEOMETRIES = [  # patch size, stride, dilation, kernel size, image size
    ((1, 1), (2, 3), 1, (3, 2), (6, 7)),
    ((2, 2), (2, 2), 1, (3, 3), (6, 8)),
    ((2, 2), (3, 1), 1, (3, 3), (6, 8)),
    ((1, 1), (1, 1), (2, 1), (3, 3), (6, 7)),
]


@pytest.mark.parametrize(("geometry", "padding"), list(zip(cycle(GEOMETRIES), FILLS)), ids=str)
def test_the_map_and_the_residual_are_those_of_the_outputs(geometry, padding):
    """Of a layer whose arrays have all been moved, applied to unit images."""
    patch_size, stride, dilation, kernel_size, image_size = geometry
    generator = np.random.default_rng(0)
    options = {"stride": stride, "dilation": dilation, "padding": padding}
    kernel = generator.normal(size=(*kernel_size, 1, 2))
    layer = conv_to_attention(
        kernel, encoding="quadratic", sharpness=1.0, patch_size=patch_size, **options
    )
    layer = jax.tree.map(
        lambda leaf: leaf + jnp.asarray(generator.normal(scale=0.3, size=leaf.shape)), layer
    )
    pixels = math.prod(image_size)
    images = np.eye(pixels).reshape(pixels, *image_size, 1)
    outputs = np.asarray(apply_attention(layer, images, backend="dense"))
    expected = outputs.reshape(*image_size, *outputs.shape[1:-1], 1, 2)
    rounding = gamma(4 * pixels, 2.0**-53) * np.abs(expected).sum()
    assert_within(linear_map(layer, image_size), expected, rounding)
    kernel, _, residual = attention_to_conv(layer, kernel_size, image_size=image_size)
    gap = outputs - np.asarray(conv(images, kernel, **options))
    relative = np.linalg.norm(gap) / np.linalg.norm(outputs)
    assert relative > 0.1
    assert_within(residual.relative_frobenius, relative, 1e-12)
    assert (
        residual.padding
        == tuple(read_padding(padding, kernel_size, (1, 1), stride).at(image_size, stride))
        or dilation != 1
    )
    assert_within(residual.sup_norm, np.abs(gap).sum(0).max(), 1e-12 * np.abs(expected).sum())


def distance(layer, kernel):
    """As it is stored, on images of 5 × 6 pixels."""
    return float(stored_residual(layer, kernel, None, (5, 6)).relative_frobenius)


@pytest.mark.parametrize("form", [pytest.param("exact", marks=pytest.mark.slow), "limit"])
@pytest.mark.parametrize("padding", FILLS, ids=str)
def test_rounding_accounts_for_the_distance_and_for_no_change(padding, form):
    kernel = np.random.default_rng(0).normal(size=(3, 3, 1, 2)).astype(np.float32)
    layer = conv_to_attention(kernel, padding=padding, form=form)
    recovered = attention_to_conv(layer, 3, image_size=(5, 6)).kernel
    assert_within(recovered, kernel, 1e-4)
    tolerance = rounding_tolerance(layer, recovered, (5, 6))
    assert distance(layer, recovered) <= tolerance < 1e-2
    further = np.asarray(recovered) + np.float32(10) * tolerance * np.abs(kernel).max()
    assert distance(layer, further) > tolerance


def test_the_norm_of_a_fill_is_that_of_its_matrix():
    """Five pixels with two on either side: how often a pixel is copied, and once itself."""
    for padding, squared in (("SAME", 1), ("EDGE", 3), ("REFLECT", 3), ("CIRCULAR", 2)):
        layer = conv_to_attention(np.ones((5, 1, 1)), padding=padding)
        assert_within(fill_norm(layer, (5,)) ** 2, squared, 1e-12)


def test_the_linear_map_of_a_layer_without_maps_is_unknown():
    bare = replace(conv_to_attention(jnp.ones((3, 1, 1))), value=None, output=None)
    with pytest.raises(ValueError, match="neither a value nor an output map"):
        linear_map(bare, (4,))


def test_a_value_map_alone_is_the_map_of_its_head():
    layer = conv_to_attention(np.ones((3, 1, 2), np.float32), form="limit")
    alone = replace(layer, value=layer.output, output=None)
    expected, actual = (linear_map(each, (4,)) for each in (layer, alone))
    assert actual.shape == (4, 4, 1, 2)
    assert_equal(actual, expected)


@pytest.mark.parametrize(
    ("padding", "kernel_size", "expected"),
    [("CAUSAL", 5, (3, 1)), ("CAUSAL", 4, (2, 1)), ("SAME", 4, (1, 2)), ("VALID", 5, (1, 1))],
)
def test_another_kernel_size_has_a_padding_of_its_own(padding, kernel_size, expected):
    """The convolution with that padding is the layer, whose kernel has three taps."""
    layer = conv_to_attention(np.array([1.0, 2, 3]).reshape(3, 1, 1), padding=padding, form="limit")
    kernel, _, residual = attention_to_conv(layer, kernel_size, image_size=9)
    assert residual.padding == (expected,)
    images = np.random.default_rng(0).integers(-8, 9, (1, 9, 1)).astype(float)
    padded = np.pad(images, ((0, 0), expected, (0, 0)))
    assert_equal(conv(padded, kernel, padding="VALID"), apply_attention(layer, images))


@pytest.mark.parametrize("padding", ["EDGE", "REFLECT", "CIRCULAR", "MEAN"])
def test_no_taps_beyond_what_is_filled_in(padding):
    layer = conv_to_attention(np.ones((3, 1, 1)), padding=padding, form="limit")
    assert attention_to_conv(layer, 1, image_size=9).residual.padding == ((0, 0),)
    with pytest.raises(ValueError, match=r"kernel_size=\(4,\), but the layer fills its ring"):
        attention_to_conv(layer, 4, image_size=9)


def test_what_is_said_of_a_stored_kernel_holds_of_it():
    """A layer of bfloat16 whose maps have moved: the outputs are within what is said of them."""
    generator = np.random.default_rng(2)
    kernel = jnp.asarray(generator.normal(size=(3, 1, 1)), jnp.bfloat16)
    layer = conv_to_attention(kernel, jnp.ones(1, jnp.bfloat16), form="limit", patch_size=3)
    moved = 1 + 0.01 * generator.normal(size=layer.output.shape)
    bias = layer.bias + 0.01 * generator.normal(size=layer.bias.shape)
    output, bias = (jnp.asarray(x, jnp.bfloat16) for x in (layer.output * moved, bias))
    layer = replace(layer, output=output, bias=bias)
    recovered = attention_to_conv(layer, 3, image_size=6)
    stored = [np.asarray(x.astype(jnp.bfloat16), np.float64) for x in recovered[:2]]
    residual = stored_residual(layer, *stored, (6,))
    in_float64 = jax.tree.map(lambda leaf: leaf.astype(jnp.float64), layer)
    zero = np.asarray(apply_attention(in_float64, np.zeros((1, 6, 1)), backend="dense"))
    gaps = np.asarray(apply_attention(in_float64, np.eye(6)[..., None], backend="dense")) - zero
    sums = np.abs(gaps - np.asarray(conv(np.eye(6)[..., None], stored[0]))).sum(0).max()
    assert_within(residual.sup_norm, sums, 1e-6)
    assert_within(residual.bias_gap, np.abs(zero - stored[1]).max(), 1e-12)
    assert sums > float(recovered.residual.sup_norm) * 1.001  # the kernel before it was rounded
