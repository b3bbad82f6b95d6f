"""Products u(k_1)·v(k_2) are told from other rows, in numbers that are exact."""

import numpy as np
from comparison import assert_equal

from convattn.ledger.evidence.separable_attention import mixed_difference


def test_mixed_differences():
    assert_equal(mixed_difference(np.outer([1, 2, 5], [3, 0, 7, 1])), np.zeros((2, 3)))
    assert_equal(mixed_difference(np.array([[1, 2], [3, 4]])), [[-2]])
