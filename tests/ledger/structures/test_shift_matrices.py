"""The written-out shift matrices against the library's, and what commutes with them."""

import numpy as np
import pytest
from comparison import assert_equal

from convattn_ledger.structures import shift_basis
from convattn_ledger.structures.shift_matrices import (
    all_shifts,
    commutant_system,
    shift_matrix,
)


@pytest.mark.parametrize("grid", [(1,), (4,), (2, 3), (2, 1, 3)])
def test_the_bare_grid_is_the_shift_basis(grid):
    shifts = all_shifts(grid)
    matrices = np.stack([shift_matrix(grid, shift) for shift in shifts])
    assert_equal(matrices, shift_basis(grid, shifts).matrices())
    assert_equal(matrices.sum(0), np.ones_like(matrices[0]))  # each pair has one shift
    assert matrices.any(axis=(1, 2)).all()
    assert len(shifts) == np.prod([2 * n - 1 for n in grid])
    assert not shift_matrix(grid, list(grid)).any()


@pytest.mark.parametrize("grid", [(4,), (2, 3)])
def test_the_torus_is_a_group(grid):
    shifts = all_shifts(grid, torus=True)
    assert len(shifts) == np.prod(grid)
    for a in shifts:
        for b in shifts:
            both = shift_matrix(grid, tuple(i + j for i, j in zip(a, b, strict=True)), torus=True)
            one, other = (shift_matrix(grid, d, torus=True) for d in (a, b))
            assert_equal(one @ other, both)


def test_the_system_is_the_commutator():
    rng = np.random.default_rng(0)
    matrices, phi = rng.integers(-9, 9, (2, 3, 3)), rng.integers(-9, 9, (3, 3))
    expected = np.concatenate([(phi @ a - a @ phi).reshape(-1) for a in matrices])
    assert_equal(commutant_system(matrices) @ phi.reshape(-1), expected)
