"""Bounds of spectral norms: against known norms, and against exact arithmetic."""

import math

import numpy as np
import pytest
from bounds.rounding_formula import INFLATION
from flint import arb_mat, ctx
from hypothesis import given
from hypothesis import strategies as st
from roundings import gamma

from convattn.bounds import spectral_norm
from convattn.bounds.spectral_norm import spectral_norm_bound

UNIT = 2.0**-53


@given(
    shape=st.tuples(st.integers(1, 12), st.integers(1, 12)),
    rank=st.integers(1, 12),
    exponent=st.integers(-60, 60),
    seed=st.integers(0, 2**16),
)
def test_it_bounds_the_norm_and_is_near_it(shape, rank, exponent, seed):
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(shape[0], rank)) @ rng.normal(size=(rank, shape[1]))
    matrix = matrix * 2.0**exponent
    bound = spectral_norm_bound(matrix)
    vector = np.linalg.svd(matrix)[2][0]
    with ctx.workprec(200):  # |Wv|/|v| is at most the norm, for any v
        image = arb_mat(matrix.tolist()) * arb_mat([[x] for x in vector.tolist()])
        length = sum((x * x for x in image.entries()), 0 * image[0, 0]).sqrt()
        size = sum((x * x for x in arb_mat([vector.tolist()]).entries()), 0 * length).sqrt()
        assert bool(length / size <= bound)
    assert bound <= np.linalg.norm(matrix, 2) * (1 + 1e-4)


def test_the_rounding_where_the_computed_vectors_are_unit_vectors():
    """G = diag(16, 25, 4)/8² in five rows: no number is rounded, and r and η are as for tails."""
    matrix = np.zeros((5, 3))
    matrix[[0, 1, 2], [0, 1, 2]] = 4.0, 5.0, -2.0
    rest = (gamma(7, UNIT) * INFLATION + gamma(8, UNIT)) * math.hypot(16, 25, 4)
    eta = gamma(4, UNIT) * 2 * math.sqrt(3) * INFLATION
    expected = math.sqrt((25 + rest) * INFLATION / (1 - eta)) * INFLATION
    for turned in (matrix, matrix.T, matrix * 2.0**40):
        size = abs(turned).max() / 5
        assert spectral_norm_bound(turned) == pytest.approx(size * expected, rel=4 * UNIT, abs=0)


@pytest.mark.parametrize(("eta", "largest"), [(0.5, 5.0), (0.25, 2 / math.sqrt(0.75))])
def test_vectors_far_from_orthogonal_leave_the_frobenius_norm(monkeypatch, eta, largest):
    """Of 3 and 4, which is 5, beside √(λ/(1 - η)) with the λ = 4 that is returned."""
    monkeypatch.setattr(
        spectral_norm, "nearly_diagonal", lambda *_: (np.array([4.0, 1.0]) / 64, 0.0, eta)
    )
    assert largest < spectral_norm_bound(np.diag([3.0, 4.0])) < largest * (1 + 2.0**-18)


@pytest.mark.parametrize("matrix", [np.zeros((3, 2)), np.zeros((0, 4))])
def test_no_entries(matrix):
    assert spectral_norm_bound(matrix) == 0
