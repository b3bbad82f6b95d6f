import math
from itertools import product

import numpy as np
import pytest
from comparison import assert_equal
from constructions.slow_definitions import taps
from hypothesis import given
from hypothesis import strategies as st

from convattn.constructions.geometry import ConvolutionGeometry, strided_output_pixels


def geometries():
    """Kernel, patch, stride and dilation, on one axis or two."""
    one = st.tuples(*(st.integers(1, top) for top in (7, 6, 4, 4)))
    return st.lists(one, min_size=1, max_size=2).map(lambda axes: tuple(zip(*axes, strict=True)))


def reads(geometry, axis):
    """Every (pixel, tap, patch read, place in it) of one axis."""
    k, p, d = (
        sizes[axis] for sizes in (geometry.kernel_size, geometry.patch_size, geometry.dilation)
    )
    for pixel, (index, tap) in product(range(p), enumerate(taps(k))):
        yield pixel, index, *divmod(pixel + d * tap, p)


@given(geometries())
def test_offsets_are_the_patches_that_some_pixel_reads(sizes):
    geometry = ConvolutionGeometry.of(*sizes)
    axes = range(len(geometry.kernel_size))
    expected = [sorted({patch for _, _, patch, _ in reads(geometry, axis)}) for axis in axes]
    assert [list(axis) for axis in geometry.axis_offsets] == expected
    assert geometry.offsets == tuple(product(*expected))
    assert geometry.heads == math.prod(map(len, expected))


@given(st.sampled_from([1, 3, 5, 7, 9, 11]), st.integers(1, 16))
def test_odd_kernels_without_dilation_read_m_patches_on_each_side(size, patch):
    """m = ⌈(K-1)/(2P)⌉, L21 Theorem 1."""
    m = -(-(size - 1) // (2 * patch))
    geometry = ConvolutionGeometry.of((size, size), patch)
    assert geometry.axis_offsets == (tuple(range(-m, m + 1)),) * 2
    assert geometry.heads == (2 * m + 1) ** 2
    assert geometry.ring == ((m, m), (m, m))


@given(geometries())
def test_the_ring_is_the_least_in_which_every_offset_of_every_token_exists(sizes):
    geometry = ConvolutionGeometry.of(*sizes)
    for axis, (before, after) in enumerate(geometry.ring):
        tokens = 3
        keys = range(-before, tokens + after)
        reached = {q + d for q in range(tokens) for d in geometry.axis_offsets[axis]}
        assert reached <= set(keys)
        smaller = [set(keys[1:])] * (before > 0) + [set(keys[:-1])] * (after > 0)
        assert all(not reached <= fewer for fewer in smaller)


@given(geometries())
def test_tap_index_joins_each_pair_of_pixels_by_its_only_tap(sizes):
    geometry = ConvolutionGeometry.of(*sizes)
    for axis, index in enumerate(geometry.tap_index):
        offsets = geometry.axis_offsets[axis]
        outputs = list(geometry.output_pixels[axis])
        shape = (len(offsets), len(outputs), geometry.patch_size[axis])
        expected = np.full(shape, -1)
        for pixel, tap, patch, position in reads(geometry, axis):
            if pixel in outputs:
                assert expected[offsets.index(patch), outputs.index(pixel), position] == -1
                expected[offsets.index(patch), outputs.index(pixel), position] = tap
        assert_equal(index, expected)


@pytest.mark.parametrize("stride", [(2, 3), (3, 3), (2, 4)])
def test_only_the_pixels_that_a_stride_keeps_are_computed(stride):
    """Where it divides the patch on one axis alone, they are left out on neither."""
    geometry = ConvolutionGeometry.of((3, 3), (4, 6), stride)
    written = stride == (2, 3)
    assert geometry.writes_stride_to_tokens is written
    expected = (range(0, 4, 2), range(0, 6, 3)) if written else (range(4), range(6))
    assert geometry.output_pixels == expected


@given(st.integers(1, 12), st.integers(1, 12))
def test_a_stride_keeps_the_same_pixels_of_every_patch_or_there_is_no_answer(patch_size, stride):
    """The pixels of enough successive patches, as a subsampling after the layer keeps them."""
    pixels_of_patches = [
        [x - patch * patch_size for x in range(patch * patch_size, (patch + 1) * patch_size)
         if x % stride == 0]
        for patch in range(stride)
    ]  # fmt: skip
    same = all(pixels == pixels_of_patches[0] for pixels in pixels_of_patches)
    actual = strided_output_pixels(patch_size, stride)
    assert (actual is not None) == same
    if actual is not None:
        assert list(actual) == pixels_of_patches[0]
