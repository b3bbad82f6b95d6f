"""When composites of shifts are shifts, and dtypes; claim A19.prop3 has what composites compute."""

import jax.numpy as jnp
import pytest
from comparison import assert_dtype, assert_equal

from convattn_ledger.structures import (
    ShiftBasis,
    SparseBasis,
    compose_bases,
    dense_basis,
    shift_basis,
    sparse_basis,
)


@pytest.mark.parametrize(
    ("first", "second", "grid", "stays"),
    [
        ((0, 1), (2, 0), (4, 3), True),
        ((-1, 1), (-1, 0), (4, 3), True),
        ((1, 0), (-1, 0), (4, 3), False),
        ((0, 1), (1, -1), (4, 3), False),
        ((3, 1), (1, -1), (4, 3), True),  # nothing is left of the first axis
        ((0, 1), (0, 1), (3, 4), False),  # as many nodes, in another shape
    ],
)
@pytest.mark.quick(3)
def test_shifts_stay_shifts_where_no_node_is_lost(first, second, grid, stays) -> None:
    one, two = shift_basis((4, 3), [first]), shift_basis(grid, [second])
    both = compose_bases(one, two)
    assert type(both) is (ShiftBasis if stays else SparseBasis)
    assert_equal(both.matrices()[0], one.matrices()[0] @ two.matrices()[0])


def test_halves_stay_halves_however_they_are_stored() -> None:
    half = jnp.asarray([[[1.0, 3.0]]], jnp.bfloat16)
    other = jnp.asarray([[[256.0, 0.0], [1.0, 0.0]]], jnp.bfloat16)
    for make in (sparse_basis, dense_basis):
        both = compose_bases(make(half), make(other))
        assert_dtype(both, "bfloat16")
        assert_equal(both.matrices(), [[[260, 0]]])  # 259 to even, rounded once
        assert_dtype(compose_bases(make(half), shift_basis(2, [1])), "bfloat16")
