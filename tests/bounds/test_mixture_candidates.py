"""Heads over a leak: their shares of attention mix back to the directions."""

import numpy as np
from scipy.optimize import OptimizeResult

from convattn.bounds import mixture_candidates
from convattn.bounds.mixture_candidates import (
    factored_rows,
    leaking_heads,
    leaking_rows,
    one_hot_rows,
)


def test_leaking_heads_mix_back_to_the_directions():
    """Where the directions vanish, here at the third offset, so do the weights."""
    directions = np.array([[0.48, 0.6, 0.0, 0.64], [0.64, -0.75, 0.0, -0.15]])
    weights, coefficients = leaking_heads(directions, 0.25)
    assert weights.shape == (2, 4)
    assert (weights >= 0).all()
    assert (weights[:, 2] == 0).all()
    assert np.abs(weights.max(axis=1) - 4).max() < 1e-12
    attention = weights / (1 + weights.sum(axis=1, keepdims=True))
    assert np.abs(attention.T @ coefficients - directions.T).max() < 1e-9


def test_directions_without_a_positive_combination():
    assert leaking_heads(np.array([[0.6, -0.8]]), 0.25) is None
    assert leaking_heads(np.zeros((1, 2)), 0.25) is None


def test_directions_whose_positive_combination_has_both_signs():
    """(-0.6, 0.8)/7 - (-0.8, -0.6) is positive, and no combination of other signs is."""
    directions = np.array([[-0.6, 0.8], [-0.8, -0.6]])
    weights, coefficients = leaking_heads(directions, 0.25)
    assert (weights >= 0).all()
    attention = weights / (1 + weights.sum(axis=1, keepdims=True))
    assert np.abs(attention.T @ coefficients - directions.T).max() < 1e-9


def test_a_combination_must_be_positive_by_a_millionth():
    """Of a unit and an entry e the least is e, which must be above 2⁻²⁰."""
    assert leaking_heads(np.array([[1.0, 0.75 * 2.0**-20]]), 0.25) is None
    weights, coefficients = leaking_heads(np.array([[1.0, 1.5 * 2.0**-20]]), 0.25)
    assert np.abs(weights - [[4.0, 1.5 * 2.0**-18]]).max() < 1e-12
    assert np.abs(coefficients - [[1.25]]).max() < 1e-5  # the share of 4 is 4/5


def test_no_heads_where_the_linear_programme_is_not_solved(monkeypatch):
    """Numbers of the solver's own failure are none."""
    failed = OptimizeResult(status=4, fun=None, x=None)
    monkeypatch.setattr(mixture_candidates, "linprog", lambda *_, **__: failed)
    assert leaking_heads(np.array([[0.6, 0.8]]), 0.25) is None


def test_a_kernel_of_zeros_keeps_one_head():
    """It does nothing, but a layer without heads is none."""
    assert one_hot_rows(np.zeros((2, 2)), 3).tolist() == [[1.0, 0.0]]


def test_a_head_at_an_offset_without_a_tap_is_left_where_it_is():
    """Its map is zero, so that no row of it is better than another."""
    rows, missed = factored_rows(np.diag([4.0, 0.0]), np.eye(2))
    assert (rows.tolist(), missed) == ([[1.0, 0.0], [0.0, 1.0]], 0.0)


def test_many_heads_take_no_longer(monkeypatch):
    """There are as many sweeps as the updates of all heads allow, but 20 at least."""
    sweeps = []
    pinv = np.linalg.pinv

    def counted(*args, **options):
        sweeps.append(args)
        return pinv(*args, **options)

    monkeypatch.setattr(np.linalg, "pinv", counted)
    rng = np.random.default_rng(0)
    taps, start = rng.normal(size=(9, 8)), rng.uniform(size=(4, 8))
    for updates, expected in ((100, 25), (40, 20)):  # 100/4 sweeps; 10 would be too few
        sweeps.clear()
        monkeypatch.setattr(mixture_candidates, "ROW_UPDATES", updates)
        factored_rows(taps.T @ taps, start)
        assert len(sweeps) == expected


def test_the_maps_of_rows_are_their_least_squares():
    rows = np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 1.0]])
    weights, mixtures = leaking_rows(rows, 2.0**-10, 0.0)
    attention = weights / (1 + weights.sum(axis=1, keepdims=True))
    rest = np.eye(3) - attention.T @ mixtures
    assert np.abs(attention @ rest).max() < 1e-12
