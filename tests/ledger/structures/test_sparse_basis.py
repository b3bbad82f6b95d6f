"""Sparse bases from every source, and what is no family of matrices."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from comparison import assert_dtype, assert_equal
from ledger.structures.basis_cases import case

from convattn_ledger.structures import sparse_basis

MATRICES = case("sparse")[1].astype(np.float32)
SOURCES = {
    "dense": MATRICES,
    "rows of lists": [matrix.tolist() for matrix in MATRICES],
    "coordinates": [scipy.sparse.coo_matrix(matrix) for matrix in MATRICES],
    "compressed": [scipy.sparse.csr_array(matrix) for matrix in MATRICES],
}


@pytest.mark.parametrize("source", SOURCES)
def test_every_source_gives_the_same_basis(source) -> None:
    basis = sparse_basis(SOURCES[source])
    assert_equal(basis.matrices(), MATRICES)
    assert basis.nonzeros == np.count_nonzero(MATRICES)


def test_duplicates_are_summed_zeros_dropped_and_the_dtype_chosen() -> None:
    entries = np.array([1, 2, 5, -5], np.int32), ([0, 0, 1, 1], [2, 2, 0, 0])
    basis = sparse_basis([scipy.sparse.coo_matrix(entries, shape=(2, 3))], "bfloat16")
    assert basis.nonzeros == 1
    assert_dtype(basis, "bfloat16")
    assert_equal(basis.matrices(), [[[0, 0, 3], [0, 0, 0]]])


@pytest.mark.slow
def test_values_can_be_differentiated() -> None:
    basis = sparse_basis(MATRICES)
    x = jnp.asarray(np.random.default_rng(0).integers(-5, 6, (1, 7, 1)), jnp.float32)
    slope = jax.grad(lambda basis: basis.gather(x).sum(), allow_int=True)(basis)
    assert_equal(slope.values, x[0, basis.keys, 0])
