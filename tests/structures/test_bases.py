"""What every basis must do, whatever its type."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal
from structures.basis_cases import NAMES, case, operands

from convattn.structures import dense_basis


@pytest.fixture(params=NAMES)
def pair(request):
    return case(request.param)


def test_sizes(pair) -> None:
    basis, matrices = pair
    assert (basis.size, basis.inputs, basis.outputs) == matrices.shape
    assert matrices.any(axis=(1, 2)).sum() >= 2


def test_matrices(pair) -> None:
    basis, matrices = pair
    assert_equal(basis.matrices(), matrices)


def test_nonzeros(pair) -> None:
    basis, matrices = pair
    stored = matrices.size if type(basis).__name__ == "DenseBasis" else np.count_nonzero(matrices)
    assert basis.nonzeros == stored


def test_gather(pair) -> None:
    basis, matrices = pair
    x, _ = operands(matrices)
    gathered = basis.gather(jnp.asarray(x, jnp.float32))
    assert_equal(gathered, np.einsum("kmn,bmp->bknp", matrices, x))


def test_scatter_sum(pair) -> None:
    basis, matrices = pair
    z = np.random.default_rng(2).integers(-5, 6, (2, *matrices.shape[:2], 3))
    scattered = basis.scatter_sum(jnp.asarray(z, jnp.float32))
    assert_equal(scattered, np.einsum("kmn,bkmq->bnq", matrices, z))


def test_operator(pair) -> None:
    basis, matrices = pair
    _, theta = operands(matrices)
    operator = basis.operator(jnp.asarray(theta, jnp.float32))
    assert_equal(operator, np.einsum("kmn,kpq->mnpq", matrices, theta))


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


def test_a_basis_is_a_pytree(pair) -> None:
    basis, matrices = pair
    x = jnp.asarray(operands(matrices)[0], jnp.float32)
    leaves, tree = jax.tree.flatten(basis)
    again = jax.tree.unflatten(tree, leaves)
    assert type(again) is type(basis)
    result = jax.jit(lambda basis, x: basis.gather(x))(basis, x)
    assert_equal(result, basis.gather(x))
    jax.tree.map(jnp.shape, basis)  # anything at all may stand for a leaf


def test_one_matrix_is_a_basis_of_size_one() -> None:
    assert_equal(dense_basis([[1, 2, 3]]).matrices(), [[[1, 2, 3]]])


@pytest.mark.parametrize("shape", [(3,), (2, 0, 3), (2, 2, 2, 2)])
def test_other_shapes_are_refused(shape) -> None:
    with pytest.raises(ValueError, match=r"expected \(K, M, N\)"):
        dense_basis(jnp.ones(shape))
