"""The integer reference, against `convattn.conv` and against its definition, pixel by pixel."""

from itertools import product

import numpy as np
import pytest
from comparison import assert_equal
from hypothesis import given
from hypothesis import strategies as st
from strategies import free_convolutions

import convattn as ca
from convattn_ledger.evidence import exact_convolution


def by_definition(images, kernel, stride, dilation):
    """C20 eq. 5, one output number after the other, in Python's integers."""
    batch, *space, _ = images.shape
    *sizes, width, out = kernel.shape
    outputs = [range(0, n, stride) for n in space]
    result = np.zeros((batch, *(len(pixels) for pixels in outputs), out), object)
    for place in product(*(range(n) for n in result.shape)):
        image, *where, channel = place
        total = 0
        for tap in product(*(range(k) for k in sizes)):
            pixel = tuple(
                w * stride + dilation * t - dilation * (k - 1) // 2
                for w, t, k in zip(where, tap, sizes, strict=True)
            )
            if all(0 <= x < n for x, n in zip(pixel, space, strict=True)):
                for i in range(width):
                    total += int(images[(image, *pixel, i)]) * int(kernel[(*tap, i, channel)])
        result[place] = total
    return result.astype(np.int64)


@given(free_convolutions(), st.integers(1, 3), st.integers(1, 3))
def test_it_is_the_definition(case, stride, dilation):
    kernel = np.tile(case.kernel, [1] * case.bucket.axes + [case.bucket.groups, 1])
    result = exact_convolution(case.images, kernel, stride=stride, dilation=dilation)
    assert result.dtype == np.int64
    assert_equal(result, by_definition(case.images, kernel, stride, dilation))


def test_edges_are_repeated_as_conv_repeats_them():
    rng = np.random.default_rng(7)
    images, kernel = rng.integers(0, 256, (2, 9, 8, 3)), rng.integers(-9, 10, (2, 5, 3, 4))
    result = exact_convolution(images, kernel, stride=3, dilation=2, mode="edge")
    assert_equal(result, ca.conv(images, kernel, stride=3, dilation=2, padding="EDGE"))


def test_narrow_integers_do_not_overflow():
    images, kernel = np.full((1, 3, 1), 255, np.uint8), np.full((3, 1, 1), 127, np.int8)
    assert exact_convolution(images, kernel).ravel().tolist() == [64770, 97155, 64770]


@pytest.mark.parametrize(
    ("images", "kernel"),
    [("float64", "int64"), ("int64", "float32"), ("bool", "int64"), ("int64", "complex64")],
)
def test_anything_but_integers_is_refused(images, kernel):
    with pytest.raises(ValueError, match=f"images.dtype={images} and kernel.dtype={kernel}"):
        exact_convolution(np.ones((1, 3, 1), images), np.ones((3, 1, 1), kernel))
