from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from strategies import seeds

from convattn.structures.rational_inverse import as_fractions, linear_relation, transposed_inverse


@given(seeds())
def test_inverse_or_relation(seed) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 6))
    matrix = rng.integers(-1, 2, (size, size)).astype(object) * Fraction(1, int(rng.integers(1, 9)))
    rows = as_fractions(matrix, "matrix")
    relation = linear_relation(rows)
    if relation is None:
        assert (transposed_inverse(rows).T @ rows == np.eye(size, dtype=int)).all()
    else:
        assert any(relation)
        assert np.gcd.reduce(relation) == 1
        assert not (np.array(relation, object) @ rows).any()
        with pytest.raises(ZeroDivisionError):
            transposed_inverse(rows)


def test_both_cases_occur() -> None:
    assert linear_relation(as_fractions([[0]], "m")) is not None
    assert linear_relation(as_fractions([[1, 1], [1, 1]], "m")) == [1, -1]
    assert linear_relation(as_fractions([[1, 1], [1, 2]], "m")) is None
    assert linear_relation(as_fractions([[1], [2]], "m")) == [2, -1]  # more rows than columns


def test_numpy_integers_are_integers() -> None:
    assert as_fractions(np.arange(2), "row").tolist() == [Fraction(0), Fraction(1)]


@pytest.mark.parametrize("entry", [0.5, True, "1", None])
def test_other_entries_are_refused(entry) -> None:
    with pytest.raises(ValueError, match=r"row\[1\]=.*integer or a Fraction"):
        as_fractions([1, entry], "row")
