"""A layer as a linear map, on images whose ring it fills and on others."""

import math
from dataclasses import replace
from itertools import cycle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal, assert_within
from constructions.conversion_cases import applied, converted, linear_map_of, recovered, reference
from roundings import gamma

from convattn.constructions.linear_map import fill_norm
from convattn.networks.weights.verification import rounding_tolerance, stored_residual
from convattn.operators.padding import read_padding

FILLS = ["SAME", "VALID", "EDGE", "REFLECT", "CIRCULAR", "MEAN", ((0, 1), (1, 0))]
GEOMETRIES = [  # patch size, stride, dilation, kernel size, image size
    ((1, 1), (2, 3), 1, (3, 2), (6, 7)),
    ((2, 2), (2, 2), 1, (3, 3), (6, 8)),
    ((2, 2), (3, 1), 1, (3, 3), (6, 8)),
    ((1, 1), (1, 1), (2, 1), (3, 3), (6, 7)),
]


@pytest.mark.quick(1)
@pytest.mark.parametrize(("geometry", "padding"), list(zip(cycle(GEOMETRIES), FILLS)), ids=str)
def test_the_map_and_the_residual_are_those_of_the_outputs(geometry, padding):
    """Of a layer whose arrays have all been moved, applied to unit images."""
    patch_size, stride, dilation, kernel_size, image_size = geometry
    generator = np.random.default_rng(0)
    options = {"stride": stride, "dilation": dilation, "padding": padding}
    kernel = generator.normal(size=(*kernel_size, 1, 2))
    layer = converted(kernel, encoding="quadratic", sharpness=1.0, patch_size=patch_size, **options)
    layer = jax.tree.map(lambda leaf: leaf + generator.normal(scale=0.3, size=leaf.shape), layer)
    pixels = math.prod(image_size)
    images = np.eye(pixels).reshape(pixels, *image_size, 1)
    outputs = np.asarray(applied(layer, images, backend="dense"))
    expected = outputs.reshape(*image_size, *outputs.shape[1:-1], 1, 2)
    rounding = gamma(4 * pixels, 2.0**-53) * np.abs(expected).sum()
    assert_within(linear_map_of(layer, image_size=image_size), expected, rounding)
    kernel, _, residual = recovered(layer, kernel_size=kernel_size, image_size=image_size)
    gap = outputs - np.asarray(reference(images, kernel, **options))
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("padding", "form"),
    [(fill, form) for form in ("exact", "limit") for fill in FILLS],
)
def test_rounding_accounts_for_the_distance_and_for_no_change(padding, form):
    kernel = np.random.default_rng(0).normal(size=(3, 3, 1, 2)).astype(np.float32)
    layer = converted(kernel, padding=padding, form=form)
    recovery = recovered(layer, kernel_size=3, image_size=(5, 6)).kernel
    assert_within(recovery, kernel, 1e-4)
    tolerance = rounding_tolerance(layer, recovery, (5, 6))
    assert distance(layer, recovery) <= tolerance < 1e-2
    further = np.asarray(recovery) + np.float32(10) * tolerance * np.abs(kernel).max()
    assert distance(layer, further) > tolerance


def test_the_norm_of_a_fill_is_that_of_its_matrix():
    """Five pixels with two on either side: how often a pixel is copied, and once itself."""
    for padding, squared in (("SAME", 1), ("EDGE", 3), ("REFLECT", 3), ("CIRCULAR", 2)):
        layer = converted(np.ones((5, 1, 1)), padding=padding)
        assert_within(fill_norm(layer, (5,)) ** 2, squared, 1e-12)


def test_the_linear_map_of_a_layer_without_maps_is_unknown():
    bare = replace(converted(jnp.ones((3, 1, 1))), value=None, output=None)
    with pytest.raises(ValueError, match="neither a value nor an output map"):
        linear_map_of(bare, image_size=(4,))


def test_a_value_map_alone_is_the_map_of_its_head():
    layer = converted(np.ones((3, 1, 2), np.float32), form="limit")
    alone = replace(layer, value=layer.output, output=None)
    expected, actual = (linear_map_of(each, image_size=(4,)) for each in (layer, alone))
    assert actual.shape == (4, 4, 1, 2)
    assert_equal(actual, expected)


@pytest.mark.parametrize(
    ("padding", "kernel_size", "expected"),
    [("CAUSAL", 4, (2, 1)), ("SAME", 4, (1, 2)), ("VALID", 5, (1, 1))],
)
@pytest.mark.quick(1)
def test_another_kernel_size_has_a_padding_of_its_own(padding, kernel_size, expected):
    """The convolution with that padding is the layer, whose kernel has three taps."""
    layer = converted(np.array([1.0, 2, 3]).reshape(3, 1, 1), padding=padding, form="limit")
    kernel, _, residual = recovered(layer, kernel_size=kernel_size, image_size=9)
    assert residual.padding == (expected,)
    images = np.random.default_rng(0).integers(-8, 9, (1, 9, 1)).astype(float)
    padded = np.pad(images, ((0, 0), expected, (0, 0)))
    assert_equal(reference(padded, kernel, padding="VALID"), applied(layer, images))


def test_no_taps_beyond_what_is_filled_in():
    layer = converted(np.ones((3, 1, 1)), padding="EDGE", form="limit")
    assert recovered(layer, kernel_size=1, image_size=9).residual.padding == ((0, 0),)
    with pytest.raises(ValueError, match=r"kernel_size=\(4,\), but the layer fills its ring"):
        recovered(layer, kernel_size=4, image_size=9)


@pytest.mark.slow
def test_what_is_said_of_a_stored_kernel_holds_of_it():
    """A layer of bfloat16 whose maps have moved: the outputs are within what is said of them."""
    generator = np.random.default_rng(2)
    kernel = jnp.asarray(generator.normal(size=(3, 1, 1)), jnp.bfloat16)
    layer = converted(kernel, jnp.ones(1, jnp.bfloat16), form="limit", patch_size=3)
    moved = 1 + 0.01 * generator.normal(size=layer.output.shape)
    bias = layer.bias + 0.01 * generator.normal(size=layer.bias.shape)
    output, bias = (jnp.asarray(x, jnp.bfloat16) for x in (layer.output * moved, bias))
    layer = replace(layer, output=output, bias=bias)
    recovery = recovered(layer, kernel_size=3, image_size=6)
    stored = [np.asarray(x.astype(jnp.bfloat16), np.float64) for x in recovery[:2]]
    residual = stored_residual(layer, *stored, (6,))
    in_float64 = jax.tree.map(lambda leaf: leaf.astype(jnp.float64), layer)
    inputs = np.concatenate([np.zeros((1, 6)), np.eye(6)])[..., None]
    zero, *gaps = np.asarray(applied(in_float64, inputs, backend="dense"))
    sums = np.abs(gaps - zero - np.asarray(reference(inputs[1:], stored[0]))).sum(0).max()
    assert_within(residual.sup_norm, sums, 1e-6)
    assert_within(residual.bias_gap, np.abs(zero - stored[1]).max(), 1e-12)
    assert sums > float(recovery.residual.sup_norm) * 1.001  # the kernel before it was rounded
