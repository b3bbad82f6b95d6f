"""Bounds of spectral norms: against known norms, and against exact arithmetic."""

import numpy as np
import pytest
from flint import arb_mat, ctx
from hypothesis import given
from hypothesis import strategies as st

from convattn.bounds.spectral_norm import spectral_norm_bound


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


@pytest.mark.parametrize("matrix", [np.zeros((3, 2)), np.zeros((0, 4))])
def test_no_entries(matrix):
    assert spectral_norm_bound(matrix) == 0
