"""Columns of fractions, and convolutions of Python's integers, against what can be said by hand."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from convattn_ledger.evidence.exact_attention import exact_softmax
from convattn_ledger.evidence.exact_influence import (
    exact_column_softmax,
    exact_influence_convolution,
)


def test_columns_are_the_rows_of_the_transpose() -> None:
    scores = np.random.default_rng(0).integers(-5, 6, (4, 7))
    assert (exact_column_softmax(scores) == exact_softmax(scores.T).T).all()
    assert (exact_column_softmax(scores) != exact_softmax(scores)).any()


def test_a_masked_key_might_as_well_not_be_there() -> None:
    scores = np.random.default_rng(1).integers(-5, 6, (4, 3))
    mask = np.ones((4, 3), bool)
    mask[2] = False
    weights = exact_column_softmax(scores, mask)
    assert not weights[2].any()
    assert (np.delete(weights, 2, 0) == exact_column_softmax(np.delete(scores, 2, 0))).all()


def test_a_blank_column_is_nothing_over_nothing() -> None:
    mask = np.array([[True, False], [True, False]])
    with pytest.raises(ZeroDivisionError):
        exact_column_softmax(np.zeros((2, 2), int), mask)


def test_the_convolution_is_the_sum_over_keys_channels_and_heads() -> None:
    rng = np.random.default_rng(2)
    matrices = rng.integers(-9, 10, (2, 3, 4)).astype(object) / Fraction(7)
    x, theta = rng.integers(-9, 10, (3, 5)), rng.integers(-9, 10, (2, 5, 6))
    out = exact_influence_convolution(matrices, x, theta)
    for n, q in product(range(4), range(6)):
        terms = (
            matrices[k, m, n] * int(x[m, p]) * int(theta[k, p, q])
            for k, m, p in product(range(2), range(3), range(5))
        )
        assert out[n, q] == sum(terms, Fraction(0))
