"""What every basis must do, whatever its type."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal
from ledger.structures.basis_cases import NAMES, case, operands

from convattn_ledger.structures import dense_basis


@pytest.fixture(params=NAMES)
def pair(request):
    return case(request.param)


def test_matrices_and_their_sizes(pair) -> None:
    basis, matrices = pair
    assert_equal(basis.matrices(), matrices)
    assert (basis.size, basis.inputs, basis.outputs) == matrices.shape
    stored = matrices.size if type(basis).__name__ == "DenseBasis" else np.count_nonzero(matrices)
    assert basis.nonzeros == stored
    assert matrices.any(axis=(1, 2)).sum() >= 2
    jax.tree.map(jnp.shape, basis)  # anything at all may stand for a leaf


def test_the_three_contractions(pair) -> None:
    basis, matrices = pair
    x, theta = operands(matrices)
    z = np.random.default_rng(2).integers(-5, 6, (2, *matrices.shape[:2], 3))
    for name, formula, operand in (
        ("gather", "kmn,bmp->bknp", x),
        ("scatter_sum", "kmn,bkmq->bnq", z),
        ("operator", "kmn,kpq->mnpq", theta),
    ):
        method = jax.jit(lambda basis, operand, name=name: getattr(basis, name)(operand))
        result = method(basis, operand.astype(np.float32))
        assert_equal(result, np.einsum(formula, matrices, operand), formula)


@pytest.mark.parametrize("dtype", ["bfloat16", "float64"])
def test_sums_run_in_at_least_float32(pair, dtype) -> None:
    basis, _ = pair
    wide = jnp.promote_types(dtype, "float32")
    for method, shape in (
        (basis.gather, (2, basis.inputs, 3)),
        (basis.scatter_sum, (2, basis.size, basis.inputs, 3)),
        (basis.operator, (basis.size, 3, 4)),
    ):
        assert_dtype(jax.eval_shape(method, jax.ShapeDtypeStruct(shape, dtype)), wide)


def test_a_matrix_alone_is_a_family_of_one() -> None:
    assert_equal(dense_basis([[1, 2, 3]]).matrices(), [[[1, 2, 3]]])
