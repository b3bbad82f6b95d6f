"""Kernels and pooling as grid convolutions, against XLA in one to three dimensions."""

import re

import jax
import numpy as np
import pytest
from comparison import assert_equal, assert_within, gamma
from jax import lax

from convattn.operators.convolution import conv
from convattn_ledger.structures import (
    cuboid_shifts,
    kernel_to_structure,
    pooling_basis,
    shift_basis,
    structure_to_kernel,
    structured_convolution,
    window_basis,
)

KERNELS = {  # grid, kernel size, dilation, stride
    "line": ((9,), (3,), (2,), (1,)),
    "even line": ((7,), (4,), (1,), (2,)),
    "wider than the grid": ((3,), (7,), (1,), (1,)),
    "strided image": ((8, 7), (2, 3), (2, 1), (3, 2)),
    "volume": ((4, 5, 3), (3, 2, 1), (1, 2, 1), (1, 1, 1)),
}
WINDOWS = {  # grid, window, stride, dilation
    "tiles that leave a rest": ((9,), (4,), None, (1,)),
    "with gaps": ((9, 7), (2, 3), (3, 4), (1, 1)),
    "volume": ((4, 5, 6), (2, 1, 4), (2, 3, 1), (2, 1, 1)),
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


def test_cuboids_run_from_one_as_printed():
    assert cuboid_shifts((2, 3), (5, -1), (10, 0)) == (
        (15, -1), (15, -2), (15, -3), (20, -1), (20, -2), (20, -3)
    )  # fmt: skip


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
        found = structure_to_kernel(mixed, np.asarray(theta)[order])
        assert_equal(found.kernel, kernel)
        assert found.first == tuple(-b for b in before)


def test_a_first_tap_and_no_padding():
    rng = np.random.default_rng(2)
    images, kernel = rng.integers(-9, 9, (2, 8, 3)), rng.integers(-9, 9, (3, 3, 4))
    basis, theta = kernel_to_structure(kernel, 8, first=-3)
    assert_equal(applied(images, basis, theta), by_xla(images, kernel, (1,), (1,), [(3, -1)]))
    basis, theta = kernel_to_structure(kernel, 8, padding="VALID")
    assert_equal(applied(images, basis, theta), by_xla(images, kernel, (1,), (1,), [(0, 0)]))


@pytest.mark.slow
@pytest.mark.parametrize("case", WINDOWS)
def test_average_pooling(case):
    """Sums are exact; averages equal where 1/|w| is a power of two, within |w| + 2 roundings."""
    grid, window, stride, dilation = WINDOWS[case]
    images = np.random.default_rng(1).integers(-99, 99, (2, *grid, 3)).astype(float)

    def sums(images):
        result = lax.reduce_window(
            images, 0.0, lax.add, (1, *window, 1), (1, *(stride or window), 1),
            [(0, 0)] * images.ndim, window_dilation=(1, *dilation, 1),
        )  # fmt: skip
        return np.asarray(result).reshape(2, -1, 3)

    count = int(np.prod(window))
    shifts = window_basis(grid, window, stride, dilation)
    theta = np.broadcast_to(np.eye(3, dtype=int), (count, 3, 3))
    assert_equal(applied(images, shifts, theta), sums(images))
    assert shifts.nonzeros == count * shifts.outputs  # every window lies in the grid
    result = applied(images, pooling_basis(grid, window, stride, dilation), np.eye(3)[None])
    bound = gamma(count + 2, "float64") * sums(np.abs(images)) / count
    assert_within(result, sums(images) / count, 0 if count & (count - 1) == 0 else bound)


KERNEL = np.ones((3, 2, 2))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cuboid_shifts(0), "sizes="),
        (lambda: cuboid_shifts(()), "sizes=()"),
        (lambda: cuboid_shifts(3, 0), "no dilation 0"),
        (lambda: cuboid_shifts(3, 1.5), "dilation=1.5"),
        (lambda: cuboid_shifts((3, 3), 1, (0, 0, 0)), "offset=(0, 0, 0)"),
        (lambda: kernel_to_structure(KERNEL, (5, 5)), "kernel.shape=(3, 2, 2)"),
        (lambda: kernel_to_structure(KERNEL, 5, first=0.5), "first=0.5"),
        (lambda: kernel_to_structure(KERNEL, 2, padding="VALID"), "does not fit"),
        (lambda: structure_to_kernel(shift_basis(5, [0, 1, 3]), KERNEL), "regular right cuboid"),
        (lambda: structure_to_kernel(shift_basis(5, [0, 1]), KERNEL), "theta.shape=(3, 2, 2)"),
        (lambda: window_basis((4, 4), 5), "window of (5, 5) nodes"),
        (lambda: window_basis(4, (2, 2)), "window=(2, 2)"),
        (lambda: pooling_basis(4, 2, 2, 0), "dilation=0"),
    ],
)
def test_mistakes_are_refused(call, message, unchecked):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
