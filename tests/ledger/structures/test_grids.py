"""Kernels as grid convolutions, against XLA; claim A19.grid has pooling and there and back."""

import jax
import numpy as np
import pytest
from comparison import assert_equal
from jax import lax

from convattn.operators.convolution import conv
from convattn_ledger.structures import (
    kernel_to_structure,
    shift_basis,
    structure_to_kernel,
    structured_convolution,
)

KERNELS = {  # grid, kernel size, dilation, stride
    "line": ((9,), (3,), (2,), (1,)),
    "even line": ((7,), (4,), (1,), (2,)),
    "wider than the grid": ((3,), (7,), (1,), (1,)),
    "strided image": ((8, 7), (2, 3), (2, 1), (3, 2)),
    "volume": ((4, 5, 3), (3, 2, 1), (1, 2, 1), (1, 1, 1)),
}


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


@pytest.mark.slow
@pytest.mark.parametrize("case", KERNELS)
def test_kernels_are_xla_with_explicit_padding_and_come_back(case):
    grid, size, dilation, stride = KERNELS[case]
    rng = np.random.default_rng(0)
    images, kernel = rng.integers(-9, 9, (2, *grid, 3)), rng.integers(-9, 9, (*size, 3, 4))
    basis, theta = kernel_to_structure(kernel, grid, dilation=dilation, stride=stride)
    before = [d * (k - 1) // 2 for k, d in zip(size, dilation, strict=True)]
    after = [d * (k - 1) - b for k, d, b in zip(size, dilation, before, strict=True)]
    pads = list(zip(before, after, strict=True))
    result = applied(images, basis, theta)
    assert_equal(result, by_xla(images, kernel, dilation, stride, pads))
    if set(stride) == {1}:
        if len(grid) < 3:
            assert_equal(result, conv(images, kernel, dilation=dilation).reshape(2, -1, 4))
        order = rng.permutation(basis.size)
        mixed = shift_basis(grid, [basis.shifts[k] for k in order])
        result = structure_to_kernel(mixed, np.asarray(theta)[order])
        assert_equal(result.kernel, kernel)
        assert result.first == tuple(-b for b in before)


def test_a_first_tap_and_no_padding():
    rng = np.random.default_rng(2)
    images, kernel = rng.integers(-9, 9, (2, 8, 3)), rng.integers(-9, 9, (3, 3, 4))
    basis, theta = kernel_to_structure(kernel, 8, first=-3)
    assert_equal(applied(images, basis, theta), by_xla(images, kernel, (1,), (1,), [(3, -1)]))
    basis, theta = kernel_to_structure(kernel, 8, padding="VALID")
    assert_equal(applied(images, basis, theta), by_xla(images, kernel, (1,), (1,), [(0, 0)]))
