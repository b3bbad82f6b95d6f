"""Jacobi's method: an orthonormal basis in which the matrix is diagonal, the same on every run."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from convattn_ledger.certificates.eigenvectors import symmetric_eigenvectors

UNIT = 2.0**-53
VALUES = ["0x1.2cc6b5240d06bp+2", "0x1.6164688e16806p+1", "0x1.1438b4a73dc9ep-1"]
FIRST = ["0x1.9e929bb138970p-1", "0x1.220bf5fbaa586p-1", "0x1.39987556bb8efp-3"]


@given(st.integers(1, 9), st.integers(0, 2**32 - 1), st.integers(1, 9))
def test_the_basis_is_orthonormal_and_makes_the_matrix_diagonal(size, seed, rank):
    """Each of at most 60 sweeps makes fewer than size²/2 rotations, each off by at most 8u."""
    factors = np.random.default_rng(seed).integers(-5, 6, (rank, size))
    matrix = factors.T @ factors  # of less than full rank where rank < size
    values, vectors = map(np.array, symmetric_eigenvectors(matrix.tolist()))
    bound = 60 * size**2 * 4 * UNIT * size
    assert np.abs(vectors @ vectors.T - np.eye(size)).max() <= bound
    norm = np.abs(matrix).sum(axis=1).max()
    assert np.abs(vectors @ matrix @ vectors.T - np.diag(values)).max() <= 4 * bound * norm
    assert (np.diff(values) <= 0).all()
    again = symmetric_eigenvectors(matrix.tolist())
    assert again[0] == values.tolist()
    assert again[1] == vectors.tolist()


def test_multiple_eigenvalues_keep_the_axes():
    values, vectors = symmetric_eigenvectors([[2, 0, 0], [0, 5, 0], [0, 0, 2]])
    assert values == [5.0, 2.0, 2.0]
    assert vectors == [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]


def test_known_vectors_to_the_last_bit():
    """Written down once: another result on another machine would show here."""
    values, vectors = symmetric_eigenvectors([[4, 1, 0], [1, 3, 1], [0, 1, 1]])
    assert [value.hex() for value in values] == VALUES
    assert [entry.hex() for entry in vectors[0]] == FIRST


def test_entries_that_are_not_finite_are_refused():
    with pytest.raises(ValueError, match="converged"):
        symmetric_eigenvectors([[1.0, float("nan")], [float("nan"), 1.0]])
