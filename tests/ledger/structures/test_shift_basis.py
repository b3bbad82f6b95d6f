"""Shifts of a grid, all of its outputs or every stride-th, by definition; XLA: test_grids.py."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal

from convattn_ledger.structures import shift_basis, strided_basis

CASES = {  # grid, shifts, stride, padding
    "line": ((7,), [(-1,), (0,), (1,)], 2, "SAME"),
    "line, valid": ((8,), [(-2,), (1,), (0,)], 3, "VALID"),
    "beyond the grid": ((4,), [(9,), (-9,), (3,), (4,), (-4,)], 2, "SAME"),
    "one side": ((6,), [(2,), (4,)], 1, "VALID"),
    "image": ((5, 4), [(0, 0), (1, -2), (-1, 1)], (2, 3), "SAME"),
    "image, valid": ((5, 6), [(0, 0), (1, -2), (-1, 1)], (1, 2), "VALID"),
    "stride beyond the grid": ((3, 2), [(0, 0), (1, 1)], 5, "SAME"),
}


def by_definition(grid, shifts, stride, padding):
    """[start + stride·n - m = d_k] for all k, m, n."""
    steps = np.broadcast_to(stride, len(grid))
    high, low = np.max(shifts, 0), np.min(shifts, 0)
    outputs = [
        range(0, side, step) if padding == "SAME" else range(h, side + lo, step)
        for side, step, h, lo in zip(grid, steps, high, low, strict=True)
    ]
    queries, keys = list(product(*outputs)), list(product(*map(range, grid)))
    return np.array(
        [[[int(tuple(np.subtract(q, m)) == d) for q in queries] for m in keys] for d in shifts]
    )


@pytest.mark.quick(1)
@pytest.mark.parametrize("case", CASES)
def test_matrices_are_their_definition(case):
    grid, shifts, stride, padding = CASES[case]
    basis = strided_basis(grid, shifts, stride, padding=padding)
    expected = by_definition(*CASES[case])
    assert_equal(basis.matrices(), expected)
    assert basis.nonzeros == expected.sum()
    whole = by_definition(grid, shifts, 1, "SAME")
    assert_equal(shift_basis(grid, shifts).matrices(), whole)


def test_the_basis_is_static() -> None:
    basis = shift_basis((2, 3), [(0, 1), (1, 0)])
    assert jax.tree.leaves(basis) == []
    assert hash(basis) == hash(shift_basis((2, 3), [(0, 1), (1, 0)]))
    assert basis != shift_basis((2, 3), [(1, 0), (0, 1)])


def test_nothing_of_the_size_of_a_matrix_is_made() -> None:
    basis = shift_basis((1000, 1000), [(0, 1), (1, 0)])
    assert basis.nonzeros == 2 * 999 * 1000
    text = str(jax.make_jaxpr(basis.gather)(jnp.zeros((1, 10**6, 1), jnp.float32)))
    assert "1,2,1000000,1" in text
    assert "1000000,1000000" not in text
