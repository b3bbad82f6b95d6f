import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal
from ledger.structures.basis_cases import case, operands, slow_convolution

from convattn_ledger.structures import (
    DenseBasis,
    ShiftBasis,
    SparseBasis,
    StructuredConvolution,
    compose,
    compose_bases,
    dense_basis,
    shift_basis,
    sparse_basis,
)

BASES = {
    "dense": case("dense")[0],
    "sparse": case("sparse")[0],
    "shift": shift_basis((5,), [1, 0, -2]),  # takes the five outputs of the others
}
TYPES = {
    ("dense", "shift"): DenseBasis,
    ("sparse", "shift"): SparseBasis,
    ("shift", "shift"): SparseBasis,
}


@pytest.mark.slow
@pytest.mark.parametrize(("first", "second"), TYPES)
def test_the_composite_is_one_after_the_other(first, second) -> None:
    one, two = BASES[first], BASES[second]
    left, right = (np.asarray(basis.matrices(), np.int64) for basis in (one, two))
    x, before = operands(left, (2, 3))
    _, after = operands(right, (3, 4), seed=2)
    both = compose(StructuredConvolution(one, before), StructuredConvolution(two, after))
    assert type(both.basis) is TYPES[first, second]
    assert_equal(both.basis.matrices(), [a @ b for a in left for b in right])
    assert_equal(both.theta, [a @ b for a in before for b in after])
    expected = slow_convolution(right, slow_convolution(left, x, before), after)
    assert_equal(both(jnp.asarray(x, jnp.float64)), expected)


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
