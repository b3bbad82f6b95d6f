"""Kernels as grid convolutions, against XLA; claim A19.grid has more of them, and pooling."""

import jax
import numpy as np
from comparison import assert_equal
from jax import lax

from convattn_ledger.structures import (
    kernel_to_structure,
    structured_convolution,
)


def applied(images, basis, theta):
    flat = images.reshape(2, -1, images.shape[-1])
    return np.asarray(jax.jit(structured_convolution)(flat, basis, theta))


def by_xla(images, kernel, dilation, stride, pads):
    letters = "DHW"[-len(stride) :]
    result = lax.conv_general_dilated(
        images.astype(float),
        kernel.astype(float),
        stride,
        pads,
        rhs_dilation=dilation,
        dimension_numbers=(f"N{letters}C", f"{letters}IO", f"N{letters}C"),
    )
    return result.reshape(2, -1, kernel.shape[-1])


def test_strides_and_dilations_are_those_of_xla():
    rng = np.random.default_rng(0)
    images, kernel = rng.integers(-9, 9, (2, 8, 7, 3)), rng.integers(-9, 9, (2, 3, 3, 4))
    basis, theta = kernel_to_structure(kernel, (8, 7), dilation=(2, 1), stride=(3, 2))
    expected = by_xla(images, kernel, (2, 1), (3, 2), [(1, 1), (1, 1)])
    assert_equal(applied(images, basis, theta), expected)


def test_a_first_tap_and_no_padding():
    rng = np.random.default_rng(2)
    images, kernel = rng.integers(-9, 9, (2, 8, 3)), rng.integers(-9, 9, (3, 3, 4))
    basis, theta = kernel_to_structure(kernel, 8, first=-3)
    assert_equal(applied(images, basis, theta), by_xla(images, kernel, (1,), (1,), [(3, -1)]))
    basis, theta = kernel_to_structure(kernel, 8, padding="VALID")
    assert_equal(applied(images, basis, theta), by_xla(images, kernel, (1,), (1,), [(0, 0)]))
