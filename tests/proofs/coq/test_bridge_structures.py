"""A19's shift matrices, cuboids, translations and mixed products; B19's filters."""

from itertools import product

import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal
from proofs.coq.computed_values import binary, listed, whole

from convattn.sac.filters import filter_bank
from convattn_ledger.structures.grids import cuboid_shifts, kernel_to_structure
from convattn_ledger.structures.mixed_product import mixed_product
from convattn_ledger.structures.shift_basis import shift_basis
from convattn_ledger.structures.shift_matrices import all_shifts, shift_matrix

GRIDS = [(4,), (2, 3), (2, 1, 3)]


def nodes(grid) -> str:
    """The places of every node on its axes, row by row."""
    return listed(listed(f"{place}%N" for place in node) for node in product(*map(range, grid)))


@pytest.mark.parametrize("grid", GRIDS)
def test_shift_matrices(coq_value, grid):
    """(A_d)_mn for every shift that occurs, and two that do not."""
    shifts = [*all_shifts(grid), tuple(grid), tuple(-n for n in grid)]
    terms = listed(listed(map(whole, shift)) for shift in shifts)
    rows = "[seq [seq nat_of_bool (shift_entry d m n) | n <- nodes] | m <- nodes]"
    printed = np.array(coq_value(f"let nodes := {nodes(grid)} in [seq {rows} | d <- {terms}]"))
    assert_equal(np.stack([shift_matrix(grid, shift) for shift in shifts]), printed)
    assert_equal(shift_basis(grid, shifts).matrices(), printed)
    assert printed.sum() > 0
    with pytest.raises(AssertionError):
        assert_equal(shift_basis(grid, shifts).matrices(), printed.swapaxes(1, 2))


TORI = [(3, 2), (1, 4)]


@pytest.mark.parametrize("torus", TORI)
def test_translation_matrices(coq_value, torus):
    tables = []
    for side in torus:
        entry = f"nat_of_bool (torus_difference {side} m n == d)"
        for name in "nmd":
            entry = f"[seq {entry} | {name} <- iota 0 {side}]"
        tables.append(np.array(coq_value(entry)))
    size = torus[0] * torus[1]
    expected = np.einsum("dmn,eop->demonp", *tables).reshape(size, size, size)
    shifts = all_shifts(torus, torus=True)
    assert_equal(np.stack([shift_matrix(torus, d, torus=True) for d in shifts]), expected)
    with pytest.raises(AssertionError):
        assert_equal(np.stack([shift_matrix(torus, d) for d in shifts]), expected)


CUBOIDS = [  # sizes, δ, ε
    ((3, 2), (-2, 1), (4, -1)),
    ((1, 4), (3, -1), (0, 2)),
    ((2, 3), (1, 2), (-1, -3)),
]


@pytest.mark.parametrize(("sizes", "delta", "epsilon"), CUBOIDS)
def test_cuboids(coq_value, sizes, delta, epsilon):
    """Eq. 6's shifts, and the kernel that they are: its first tap, its dilation, its order."""
    axes, first, turned = [], [], []
    for size, step, start in zip(sizes, delta, epsilon, strict=True):
        e, d = whole(start), whole(step)
        printed = coq_value(
            f"([seq Z_of_int (axis_cuboid_shift {e} {d} k) | k <- iota 0 {size}], "
            f"Z_of_int (axis_first_tap {size} {e} {d}), "
            f"[seq axis_turned {size} {d} k | k <- iota 0 {size}])"
        )
        axes.append(printed[0])
        first.append(printed[1])
        turned.append(printed[2])
    shifts = cuboid_shifts(sizes, delta, epsilon)
    assert shifts == tuple(product(*axes))
    theta = np.arange(1, 1 + 6 * len(shifts)).reshape(*sizes, 2, 3)
    kernel = theta[np.ix_(*turned)]
    dilation = [abs(step) for step in delta]
    grid = (4, 5)
    basis, parameter = kernel_to_structure(kernel, grid, dilation=dilation, first=first)
    expected = dict(zip(shifts, theta.reshape(-1, 2, 3).tolist(), strict=True))
    assert dict(zip(basis.shifts, np.asarray(parameter).tolist(), strict=True)) == expected
    wrong, parameter = kernel_to_structure(kernel[:, ::-1], grid, dilation=dilation, first=first)
    assert dict(zip(wrong.shifts, np.asarray(parameter).tolist(), strict=True)) != expected


def test_mixed_products(coq_value):
    """Eq. 1 for three terms, 2 × 3 matrices and vectors of four."""
    a = np.arange(-8, 10).reshape(3, 2, 3)
    b = np.arange(5, -7, -1).reshape(3, 4)
    tables = (
        listed(listed(map(binary, row)) for row in tensor.reshape(3, -1).tolist())
        for tensor in (a, b)
    )
    first, second = tables
    entry = "listed_sum (fun k => nth 0 (nth [::] a k) s * nth 0 (nth [::] b k) t) (iota 0 3)"
    printed = coq_value(
        f"let a := {first} in let b := {second} in "
        f"[seq [seq {entry} | t <- iota 0 4] | s <- iota 0 6]"
    )
    expected = np.array(printed).reshape(2, 3, 4)
    assert_equal(mixed_product(a, b), expected)
    with pytest.raises(AssertionError):
        assert_equal(mixed_product(a, -b), expected)


LAYOUTS = [  # sizes, strides, dilations
    ((3, 2), (1, 1), (1, 1)),
    ((4, 1), (1, 2), (1, 1)),
    ((2, 3), (2, 1), (1, 2)),
    ((5, 4), (3, 2), (2, 1)),
]


@pytest.mark.parametrize(("sizes", "strides", "dilations"), LAYOUTS)
def test_pixels_that_a_filter_reads(coq_value, sizes, strides, dilations):
    """Every tap of every cell: the pixel's number, or zero outside the image."""
    height, width = 4, 5
    layout = f"(Layout {' '.join(map(str, (*sizes, *strides, *dilations)))})"
    numbers = f"(fun y x (_ : unit) => (y * {width} + x + 1)%:R : rat)"
    entry = f"absz (numq (read_pixel {height} {width} {layout} {numbers} y x i j tt))"
    cells = [-(-side // stride) for side, stride in zip((height, width), strides, strict=True)]
    for name, count in zip("jixy", (*sizes[::-1], *cells[::-1]), strict=True):
        entry = f"[seq {entry} | {name} <- iota 0 {count}]"
    printed = np.array(coq_value(entry))
    image = jnp.arange(1, 1 + height * width).reshape(1, height, width, 1)
    taps = jnp.eye(sizes[0] * sizes[1], dtype=int).reshape(-1, *sizes, 1, 1)
    read = filter_bank(image, taps, stride=strides, dilation=dilations)
    assert_equal(read[0, ..., 0].reshape(*cells, *sizes), printed)
    with pytest.raises(AssertionError):
        assert_equal(read[0, ..., 0].reshape(*cells, *sizes), printed[..., ::-1, ::-1])
