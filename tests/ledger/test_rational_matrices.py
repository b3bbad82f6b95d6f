"""Exact linear algebra: what is found fits, and is all that there is."""

from fractions import Fraction
from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from convattn_ledger.rational_matrices import coordinates_in, null_space, rational_rank

small = st.integers(-3, 3)


def matrices(rows, columns):
    row = st.lists(small, min_size=columns, max_size=columns)
    return st.lists(row, min_size=rows, max_size=rows)


def fractions(rows):
    return [[Fraction(entry) for entry in row] for row in rows]


@given(matrices(3, 4), st.lists(st.fractions(-5, 5), min_size=3, max_size=3))
def test_a_combination_of_the_rows_is_found_again(rows, coefficients):
    basis = fractions(rows)
    target = [sum(c * row[k] for c, row in zip(coefficients, basis, strict=True)) for k in range(4)]
    coordinates = coordinates_in(basis, target)
    again = [sum(c * row[k] for c, row in zip(coordinates, basis, strict=True)) for k in range(4)]
    assert again == target


def test_what_is_outside_the_span_has_none():
    basis = fractions([[1, 0, 0], [0, 1, 0]])
    assert coordinates_in(basis, fractions([[0, 0, 1]])[0]) is None
    assert coordinates_in(fractions([[1, 1, 0], [2, 2, 0]]), fractions([[1, 0, 0]])[0]) is None


@given(matrices(3, 5))
def test_the_null_space_is_orthogonal_and_whole(rows):
    basis = null_space(fractions(rows))
    for vector, row in product(basis, rows):
        assert sum(a * b for a, b in zip(vector, row, strict=True)) == 0
    assert len(basis) == 5 - np.linalg.matrix_rank(np.array(rows, float))


def test_the_rank_is_exact_where_floats_round():
    third = Fraction(1, 3)
    assert rational_rank([[third, 1], [1, 3 + Fraction(1, 10**40)]]) == 2
    assert rational_rank([[third, 1], [1, 3]]) == 1
