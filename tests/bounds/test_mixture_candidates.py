"""Heads over a leak: their shares of attention mix back to the directions."""

import numpy as np

from convattn.bounds.mixture_candidates import leaking_heads, leaking_rows


def test_leaking_heads_mix_back_to_the_directions():
    """Where the directions vanish, here at the third offset, so do the weights."""
    directions = np.array([[0.48, 0.6, 0.0, 0.64], [0.64, -0.75, 0.0, -0.15]])
    weights, coefficients = leaking_heads(directions, 0.25)
    assert weights.shape == (2, 4)
    assert (weights >= 0).all()
    assert (weights[:, 2] == 0).all()
    assert np.abs(weights.max(axis=1) - 4).max() < 1e-12
    shares = weights / (1 + weights.sum(axis=1, keepdims=True))
    assert np.abs(shares.T @ coefficients - directions.T).max() < 1e-9


def test_directions_without_a_positive_combination():
    assert leaking_heads(np.array([[0.6, -0.8]]), 0.25) is None


def test_the_maps_of_rows_are_their_least_squares():
    rows = np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 1.0]])
    weights, mixtures = leaking_rows(rows, 2.0**-10, 0.0)
    shares = weights / (1 + weights.sum(axis=1, keepdims=True))
    rest = np.eye(3) - shares.T @ mixtures
    assert np.abs(shares @ rest).max() < 1e-12
