"""The bound on two heads is the count of its roundings; `tests/sac` has that it holds."""

import math

import numpy as np
import pytest

from convattn_ledger.bounds.self_attentive_rounding import two_head_error_bound


def test_the_bound_is_the_count_of_the_roundings():
    """To first order in u, with h = log(1 + N): 32h for the scores, 16 + 2 + N for softmax, 2N."""
    rng = np.random.default_rng(0)
    at_keys, at_queries = rng.integers(-9, 10, (2, 4, 3, 5)), rng.integers(-9, 10, (2, 7, 2, 5))
    bias, keys, unit = rng.integers(-9, 10, 5), 12, 2.0**-53
    bound = two_head_error_bound(at_keys, at_queries, "float64", bias=bias, magnitude=9)
    count = 32 * math.log1p(keys) + 16 + 2 + keys + 2 * keys + 2
    mean = np.abs(at_keys).sum(axis=(1, 2), keepdims=True) / keys
    expected = count * unit * (np.abs(at_queries) + 2 * mean + np.abs(bias))
    assert bound.shape == at_queries.shape
    assert (expected <= bound).all()
    assert (bound <= expected * (1 + 2.0**-19)).all()


def test_twice_a_value_must_fit_into_float32():
    ones = np.ones((1, 4, 1), int)
    assert (two_head_error_bound(ones, ones, "float32", magnitude=2**23) < 1e-4).all()
    with pytest.raises(ValueError, match=r"at most 2\^23"):
        two_head_error_bound(ones, ones, "float32", magnitude=2**23 + 1)
