from fractions import Fraction

from certificate_builder import determinant
from hypothesis import given
from hypothesis import strategies as st

from convattn_check.cost import Work
from convattn_check.elimination import eliminate

entries = st.integers(-3, 3)


def matrices(height, width):
    row = st.lists(entries, min_size=width, max_size=width)
    return st.lists(row, min_size=height, max_size=height)


def rank(matrix):
    """By Gauss over the rationals."""
    rows, order = [list(map(Fraction, row)) for row in matrix], 0
    for column in range(len(rows[0])):
        pivot = next((r for r in range(order, len(rows)) if rows[r][column]), None)
        if pivot is not None:
            rows[order], rows[pivot] = rows[pivot], rows[order]
            for r in range(order + 1, len(rows)):
                factor = rows[r][column] / rows[order][column]
                rows[r] = [a - factor * b for a, b in zip(rows[r], rows[order], strict=True)]
            order += 1
    return order


@given(st.integers(1, 5).flatmap(lambda n: matrices(n, n)))
def test_determinant_is_laplace(matrix):
    before = [list(row) for row in matrix]
    order, value = eliminate(matrix)
    assert value == determinant(matrix)
    assert (value != 0) == (order == len(matrix))
    assert matrix == before


@given(st.tuples(st.integers(1, 5), st.integers(1, 5)).flatmap(lambda s: matrices(*s)))
def test_rank_is_gauss(matrix):
    assert eliminate(matrix)[0] == rank(matrix)


@given(matrices(5, 2), matrices(2, 5))
def test_rank_of_products(left, right):
    columns = list(zip(*right, strict=True))
    matrix = [[sum(a * b for a, b in zip(r, c, strict=True)) for c in columns] for r in left]
    order, value = eliminate(matrix)
    assert order == rank(matrix) <= 2
    assert value == 0


def test_entries_stay_integers_when_columns_are_skipped():
    matrix = [[0, 2, 4, 1], [0, 3, 6, 5], [0, 7, 14, 11]]
    assert eliminate(matrix) == (2, 0)
    assert eliminate([[0, 0], [0, 0]]) == (0, 0)
    assert eliminate([[1, 2, 0], [0, 3, 0]]) == (2, 0)
    assert eliminate([[0, 3, 1], [2, 0, 5], [4, 1, 1]]) == (3, 56)


def test_the_steps_of_several_eliminations_are_counted_together():
    """Below a pivot in column c each row of n entries takes three products for n - c of them."""
    work = Work("two eliminations")
    triangle = [[1, 2, 3], [0, 4, 5], [0, 0, 6]]
    assert eliminate(triangle, work) == (3, 24)
    assert work.steps == (2 * 9 + 6) * 8 * 8
    assert eliminate([[2**60, 0], [0, 2**90]], work) == (2, 2**150)
    assert work.steps == (2 * 9 + 6) * 8 * 8 + 6 * 10 * 11
