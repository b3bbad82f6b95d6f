"""The bound on attention convolutions covers what happens, and is not so wide as to cover all."""

from fractions import Fraction

import numpy as np
import pytest
from comparison import assert_equal, assert_within

from convattn_ledger.evidence.exact_influence import (
    exact_column_softmax,
    exact_influence_convolution,
)
from convattn_ledger.evidence.influence_rounding import attention_within, column_weights_within


def test_masked_keys_weigh_nothing_exactly() -> None:
    mask = np.array([[True, False], [True, True]])
    reference, bound = column_weights_within(np.zeros((3, 2, 2)), "float32", mask)
    assert_equal(reference, np.broadcast_to([[0.5, 0], [0.5, 1]], (3, 2, 2)))
    assert_equal(bound[:, 0, 1], np.zeros(3))
    assert (bound[:, mask] > 0).all()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_an_exact_rational_layer_lies_within(dtype) -> None:
    """Scores s·log 2 with the base two: the weights are rational, and known."""
    rng = np.random.default_rng(3)
    scores, mask = rng.integers(-4, 5, (2, 5, 3)), np.triu(np.ones((5, 3), bool), -1)
    x, theta = rng.integers(-9, 10, (5, 4)), rng.integers(-9, 10, (2, 4, 2))
    exact = [exact_column_softmax(each, mask, Fraction(2)) for each in scores]
    out = exact_influence_convolution(np.array(exact), x, theta).astype(float)
    error = 2 * float(np.finfo(np.float64).eps) * np.log(2) * 4  # of log 2, and of the product
    weights = column_weights_within(scores * np.log(2), dtype, mask, error)
    within = attention_within(weights, x.astype(float), theta.astype(float), dtype)
    assert_within(out, within.reference, within.bound)
    with pytest.raises(AssertionError, match="too far"):
        assert_within(out, within.reference[:, ::-1], within.bound)


def test_two_maps_and_a_longer_sum_widen_the_bound() -> None:
    rng = np.random.default_rng(4)
    weights = column_weights_within(rng.normal(size=(1, 3, 2)), "float32")
    x, theta = rng.normal(size=(3, 2)), rng.normal(size=(1, 2, 2))
    plain = attention_within(weights, x, theta, "float32").bound
    assert (attention_within(weights, x, theta, "float32", inner=8).bound > plain).all()
    wide = attention_within(weights, x, theta, "float32", magnitude=2 * abs(theta)).bound
    assert_within(wide, 2 * plain, 1e-9 * plain)
