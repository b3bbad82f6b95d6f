import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal
from constructions.conversion_cases import BUCKETS, geometry_of
from constructions.slow_definitions import (
    kept_pixels,
    slow_conv,
    slow_image,
    slow_token_maps,
    slow_tokens,
)
from hypothesis import given
from hypothesis import strategies as st
from strategies import make_case, seeds

from convattn.constructions.geometry import ConvolutionGeometry
from convattn.constructions.li_output_map import token_bias, token_maps

compiled_maps = jax.jit(token_maps, static_argnames="geometry")


def dense_kernel(case):
    """Block-diagonal over the channels, block by block."""
    groups = case.bucket.groups
    *sizes, width, out = case.kernel.shape
    dense = np.zeros((*sizes, width * groups, out), case.kernel.dtype)
    step = out // groups
    for g in range(groups):
        block = case.kernel[..., g * step : (g + 1) * step]
        dense[..., g * width : (g + 1) * width, g * step : (g + 1) * step] = block
    return dense


@given(st.sampled_from(BUCKETS), seeds())
def test_maps_are_those_found_from_the_pixels_that_each_tap_reads(bucket, seed):
    kernel = dense_kernel(make_case(bucket, seed))
    expected = slow_token_maps(kernel, bucket.patch_size, bucket.stride, bucket.dilation)
    geometry = geometry_of(bucket)
    assert geometry.offsets == tuple(expected)
    maps = compiled_maps(jnp.asarray(kernel), geometry)
    assert_dtype(maps, jnp.asarray(kernel).dtype)
    assert_equal(maps, np.stack(list(expected.values())))


def convolve_tokens(case, geometry, maps):
    """Σ_δ X_(γ+δ) M_δ with zero tokens outside, in NumPy."""
    tokens = slow_tokens(case.images, geometry.patch_size)
    grid = tokens.shape[1:-1]
    widths = [(0, 0), *geometry.ring, (0, 0)]
    padded = np.pad(tokens, widths)
    total = 0
    for offset, block in zip(geometry.offsets, np.asarray(maps), strict=True):
        starts = [before + d for (before, _), d in zip(geometry.ring, offset, strict=True)]
        window = tuple(slice(s, s + n) for s, n in zip(starts, grid, strict=True))
        total = total + padded[(slice(None), *window)] @ block
    sides = [len(p) for p in kept_pixels(geometry.patch_size, geometry.stride)]
    return slow_image(total, sides)


@pytest.mark.parametrize("bucket", [b for b in BUCKETS if geometry_of(b).writes_stride_to_tokens])
def test_tokens_through_the_maps_are_the_convolution(bucket):
    case = make_case(bucket, 4)
    kernel = dense_kernel(case)
    expected = slow_conv(case.images, kernel, stride=bucket.stride, dilation=bucket.dilation)
    geometry = geometry_of(bucket)
    maps = token_maps(jnp.asarray(kernel), geometry)
    assert_equal(convolve_tokens(case, geometry, maps), expected)


def test_maps_are_counted_before_they_are_made():
    """A ring of nine offsets, between patches of 100² pixels of 8 and of 7 channels: 5·10¹⁰."""
    kernel = jnp.ones((3, 3, 8, 7))
    with pytest.raises(
        ValueError, match="the maps of 9 offsets from 80000 to 70000 features would"
    ):
        token_maps(kernel, ConvolutionGeometry.of((3, 3), 100))


def test_wrong_maps_are_not_the_convolution():
    bucket = next(b for b in BUCKETS if b.patch_size == (3, 2))
    case = make_case(bucket, 4)
    expected = slow_conv(case.images, case.kernel)
    geometry = geometry_of(bucket)
    kernel = jnp.asarray(case.kernel)
    square = jnp.asarray(case.kernel[:3, :3])
    swapped = jnp.zeros_like(kernel).at[:3, :3].set(square.swapaxes(0, 1))
    for wrong in (
        token_maps(kernel[::-1], geometry),
        token_maps(kernel[:, ::-1], geometry),
        token_maps(swapped, geometry),
        token_maps(kernel, geometry)[::-1],
        token_maps(kernel, geometry).at[0].set(0),
        token_maps(kernel[..., ::-1], geometry),
    ):
        with pytest.raises(AssertionError, match="out"):
            assert_equal(convolve_tokens(case, geometry, wrong), expected)


@pytest.mark.parametrize("bucket", BUCKETS)
def test_every_output_pixel_has_the_bias(bucket):
    geometry = geometry_of(bucket)
    bias = jnp.arange(bucket.out_channels)
    pixels = int(np.prod([len(p) for p in kept_pixels(geometry.patch_size, geometry.stride)]))
    assert_equal(token_bias(bias, geometry), np.concatenate([np.asarray(bias)] * pixels))
