"""Kernels as grid convolutions and back, against XLA's convolution in one to three dimensions."""

import re
from itertools import product

import hypothesis.strategies as st
import jax
import numpy as np
import pytest
from comparison import assert_equal
from hypothesis import given, settings
from jax import lax

from convattn.operators.convolution import conv
from convattn.structures import (
    ShiftBasis,
    StridedBasis,
    StructuredConvolution,
    compose,
    cuboid_shifts,
    kernel_to_structure,
    shift_basis,
    structure_to_kernel,
    structured_convolution,
)

KERNELS = {  # grid, kernel size, dilation, stride
    "line": ((9,), (3,), (2,), (1,)),
    "even line": ((7,), (4,), (1,), (2,)),
    "wider than the grid": ((3,), (7,), (1,), (1,)),
    "image": ((6, 7), (3, 5), (1, 1), (1, 1)),
    "strided image": ((8, 7), (2, 3), (2, 1), (3, 2)),
    "volume": ((4, 5, 3), (3, 2, 1), (1, 2, 1), (1, 1, 1)),
    "strided volume": ((4, 5, 3), (1, 3, 3), (1, 1, 1), (2, 1, 2)),
}


def drawn(grid, size, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(-9, 9, (2, *grid, 3)), rng.integers(-9, 9, (*size, 3, 4))


def by_xla(images, kernel, dilation, stride, pads):
    letters = "DHW"[-len(stride) :]
    return lax.conv_general_dilated(
        images.astype(float),
        kernel.astype(float),
        stride,
        pads,
        rhs_dilation=dilation,
        dimension_numbers=(f"N{letters}C", f"{letters}IO", f"N{letters}C"),
    )


def applied(images, basis, theta):
    flat = images.reshape(2, -1, images.shape[-1])
    result = np.asarray(jax.jit(structured_convolution)(flat, basis, theta))
    sides = getattr(basis, "output_grid", basis.grid)
    return result.reshape(2, *sides, -1)


def test_cuboids_run_from_one_as_printed():
    assert cuboid_shifts(3) == ((1,), (2,), (3,))
    assert cuboid_shifts((2, 3), (5, -1), (10, 0)) == (
        (15, -1), (15, -2), (15, -3), (20, -1), (20, -2), (20, -3)
    )  # fmt: skip
    assert cuboid_shifts((1, 1), 1, -1) == ((0, 0),)


@given(st.data())
def test_cuboids_are_equation_6(data):
    """Δ_ki = ε_i + (ω⁻¹k)_i δ_i, ω the canonical bijection 1 + Σ (s_i - 1) Π_(j>i) S_j."""
    axes = data.draw(st.integers(1, 3))
    sizes = data.draw(st.tuples(*[st.integers(1, 3)] * axes))
    steps = data.draw(st.tuples(*[st.sampled_from([-2, -1, 1, 3])] * axes))
    offsets = data.draw(st.tuples(*[st.integers(-4, 4)] * axes))
    found = cuboid_shifts(sizes, steps, offsets)
    assert len(found) == np.prod(sizes)
    for place in product(*(range(1, size + 1) for size in sizes)):
        k = 1 + sum((s - 1) * int(np.prod(sizes[i + 1 :])) for i, s in enumerate(place))
        assert found[k - 1] == tuple(
            e + s * d for e, s, d in zip(offsets, place, steps, strict=True)
        )


@pytest.mark.slow
@pytest.mark.parametrize("case", KERNELS)
def test_kernels_are_xla_with_explicit_padding(case):
    grid, size, dilation, stride = KERNELS[case]
    images, kernel = drawn(grid, size)
    basis, theta = kernel_to_structure(kernel, grid, dilation=dilation, stride=stride)
    pads = [(d * (k - 1) // 2, -(-d * (k - 1) // 2)) for k, d in zip(size, dilation, strict=True)]
    expected = by_xla(images, kernel, dilation, stride, pads)
    assert_equal(applied(images, basis, theta), expected)
    assert isinstance(basis, ShiftBasis if set(stride) == {1} else StridedBasis)
    if case in ("line", "strided image"):
        assert_equal(expected, conv(images, kernel, stride=stride, dilation=dilation))


@pytest.mark.parametrize("case", ["line", "strided image", "strided volume"])
def test_valid_windows(case):
    grid, size, dilation, stride = KERNELS[case]
    images, kernel = drawn(grid, size, 1)
    basis, theta = kernel_to_structure(
        kernel, grid, dilation=dilation, stride=stride, padding="VALID"
    )
    none = [(0, 0)] * len(grid)
    assert_equal(applied(images, basis, theta), by_xla(images, kernel, dilation, stride, none))


@pytest.mark.parametrize("first", [-4, 0, 3])
def test_offsets_are_uneven_padding(first):
    images, kernel = drawn((9,), (3,), 2)
    basis, theta = kernel_to_structure(kernel, 9, dilation=2, first=first)
    pads = [(-first, 4 + first)]
    assert_equal(applied(images, basis, theta), by_xla(images, kernel, (2,), (1,), pads))


def test_a_positive_step_is_convolution_turned_around():
    """Eq. 6 as printed, ε = -2, δ = 1: Δ = -1, 0, 1, so Θ_1 belongs to the right neighbour."""
    images, kernel = drawn((8,), (3,), 3)
    basis = shift_basis(8, cuboid_shifts(3, 1, -2))
    result = applied(images, basis, kernel)
    assert_equal(result, by_xla(images, kernel[::-1], (1,), (1,), [(1, 1)]))
    assert (np.asarray(result) != np.asarray(by_xla(images, kernel, (1,), (1,), [(1, 1)]))).any()


@pytest.mark.slow
@settings(max_examples=6)
@given(st.data())
def test_there_and_back(data):
    axes = data.draw(st.integers(1, 3))

    def each(strategy):
        return data.draw(st.tuples(*[strategy] * axes))

    size, dilation, first = (
        each(st.integers(1, 3)),
        each(st.integers(1, 3)),
        each(st.integers(-4, 4)),
    )
    grid, stride = each(st.integers(1, 4)), each(st.integers(1, 2))
    kernel = np.arange(int(np.prod(size)) * 2).reshape(*size, 2, 1)
    basis, theta = kernel_to_structure(kernel, grid, dilation=dilation, first=first, stride=stride)
    found = structure_to_kernel(basis, theta)
    assert_equal(found.kernel, kernel)
    assert found.first == first
    assert found.dilation == tuple(d if k > 1 else 1 for k, d in zip(size, dilation, strict=True))
    order = data.draw(st.permutations(range(basis.size)))
    mixed = shift_basis(grid, [basis.shifts[k] for k in order])
    assert_equal(structure_to_kernel(mixed, np.asarray(theta)[order]).kernel, kernel)


KERNEL = np.ones((3, 2, 2))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cuboid_shifts(0), "sizes=0"),
        (lambda: cuboid_shifts(()), "sizes=()"),
        (lambda: cuboid_shifts((2, True)), "sizes=True"),
        (lambda: cuboid_shifts(3, 0), "dilation=0, but expected another integer than 0"),
        (lambda: cuboid_shifts(3, (1, 1)), "dilation=(1, 1)"),
        (lambda: cuboid_shifts(3, 1.5), "dilation=1.5"),
        (lambda: cuboid_shifts((3, 3), 1, (0, 0, 0)), "offset=(0, 0, 0)"),
        (lambda: cuboid_shifts((3, 3), 1, (True, 0)), "offset=True"),
        (lambda: kernel_to_structure(KERNEL, (5, 5)), "kernel.shape=(3, 2, 2)"),
        (lambda: kernel_to_structure(KERNEL[:0], 5), "kernel.shape=(0, 2, 2)"),
        (lambda: kernel_to_structure(KERNEL, 5, dilation=0), "dilation=0"),
        (lambda: kernel_to_structure(KERNEL, 5, first=0.5), "first=0.5"),
        (lambda: kernel_to_structure(KERNEL, 2, padding="VALID"), "does not fit"),
        (lambda: structure_to_kernel(shift_basis(5, [0, 1, 3]), KERNEL), "a regular right cuboid"),
        (
            lambda: structure_to_kernel(shift_basis((5, 5), [(0, 0), (0, 1), (1, 0)]), KERNEL),
            "a regular right cuboid",
        ),
        (lambda: structure_to_kernel(shift_basis(5, [0, 1]), KERNEL), "theta.shape=(3, 2, 2)"),
        (lambda: structure_to_kernel(shift_basis(5, [0, 1]), KERNEL[0]), "theta.shape=(2, 2)"),
    ],
)  # fmt: skip
def test_mistakes_are_refused(call, message, unchecked):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


def test_parameters_of_equal_shifts_are_summed():
    """Two kernels in a row are one, whose taps come from several pairs."""
    first, second = np.array([1, 2, 4]), np.array([3, 5, 7])
    one, two = (shift_basis(9, [0, 1, 2]), shift_basis(9, [0, 1, 2]))
    both = compose(
        StructuredConvolution(one, first.reshape(3, 1, 1)),
        StructuredConvolution(two, second.reshape(3, 1, 1)),
    )
    assert isinstance(both.basis, ShiftBasis)
    assert both.basis.size == 9
    found = structure_to_kernel(both.basis, both.theta)
    assert found.first == (-4,)
    assert_equal(found.kernel[:, 0, 0], np.convolve(first, second)[::-1])
