"""Lower bounds on eigenvalues, against matrices whose eigenvalues are known."""

from fractions import Fraction

import flint
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import seeds

from convattn_ledger.evidence import least_eigenvalue as module
from convattn_ledger.evidence.least_eigenvalue import exceeds, least_eigenvalue


def rotated(eigenvalues: list[int]) -> np.ndarray:
    """An integer matrix with n² times these eigenvalues: n·I - 2·J is n times a reflection."""
    size = len(eigenvalues)
    reflection = size * np.eye(size, dtype=np.int64) - 2
    return reflection @ np.diag(eigenvalues) @ reflection


@given(st.lists(st.integers(1, 10**6), min_size=3, max_size=9))
def test_the_bound_is_below_the_least_eigenvalue_and_close(eigenvalues):
    matrix, least = rotated(eigenvalues), len(eigenvalues) ** 2 * min(eigenvalues)
    bound = least_eigenvalue(matrix)
    assert 0.998 * least < bound < least
    assert not exceeds(matrix, float(least))
    assert not exceeds(matrix, float(np.nextafter(least, np.inf)))
    assert exceeds(matrix, float(np.nextafter(least, 0)))  # 53 bits apart, and told apart


@given(seeds(), st.integers(1, 7), st.integers(-5, 30))
def test_positive_definite_means_positive_leading_minors(seed, size, number):
    factor = np.random.default_rng(seed).integers(-4, 5, (size, size))
    matrix = factor.T @ factor
    shifted = (matrix - number * np.eye(size, dtype=np.int64)).tolist()
    minors = [
        Fraction(int(flint.fmpz_mat([row[:n] for row in shifted[:n]]).det()))
        for n in range(1, size + 1)
    ]
    assert exceeds(matrix, float(number)) == all(minor > 0 for minor in minors)


@pytest.mark.parametrize(
    "matrix",
    [
        np.ones((3, 3), int),  # singular
        np.diag([2, -1]),
        np.array([[10**12, 10**12 - 1], [10**12 - 1, 10**12 - 2]]),  # determinant -1
    ],
)
def test_no_bound_where_there_is_none(matrix):
    with pytest.raises(ValueError, match="no positive lower bound"):
        least_eigenvalue(matrix)


@pytest.mark.parametrize("matrix", [np.eye(2), np.array([[1, 1], [0, 1]])])
def test_only_symmetric_integers(matrix):
    with pytest.raises(ValueError, match="a symmetric one of integers"):
        least_eigenvalue(matrix)


def test_a_wrong_guess_is_not_believed(monkeypatch):
    monkeypatch.setattr(module.np.linalg, "eigvalsh", lambda matrix: np.array([1.5, 3.0]))
    with pytest.raises(ValueError, match="no positive lower bound"):
        least_eigenvalue(np.array([[2, 1], [1, 2]]))
