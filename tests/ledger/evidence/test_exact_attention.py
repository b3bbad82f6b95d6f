from fractions import Fraction

import numpy as np
import pytest

from convattn_ledger.evidence.exact_attention import exact_self_attention, exact_softmax


def test_rows_sum_to_one_and_a_common_shift_does_not_matter() -> None:
    scores = np.random.default_rng(0).integers(-5, 6, (4, 7))
    weights = exact_softmax(scores)
    assert weights.sum(axis=1).tolist() == [1] * 4
    assert (exact_softmax(scores + 3) == weights).all()
    assert (weights > 0).all()


def test_equal_scores_give_the_mean() -> None:
    tokens = np.array([[1], [2], [6]])
    mean = exact_self_attention(tokens, np.zeros((1, 3), int), np.array([[2]]))
    assert mean.tolist() == [[Fraction(6)]]


@pytest.mark.parametrize(
    ("scores", "base"), [(np.zeros((1, 2)), Fraction(2)), (np.zeros((1, 2), int), Fraction(0))]
)
def test_what_is_not_rational_is_refused(scores, base) -> None:
    with pytest.raises(ValueError, match="expected integers and a positive fraction"):
        exact_softmax(scores, base)
