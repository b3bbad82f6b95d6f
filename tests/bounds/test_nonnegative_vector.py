"""The first phase of the simplex method, by hand, and Gordan's alternatives."""

from fractions import Fraction

import pytest

from convattn.bounds.nonnegative_vector import first_phase, nonnegative_vector


def fractions(rows):
    return [[Fraction(entry) for entry in row] for row in rows]


@pytest.mark.parametrize("right", [Fraction(3), Fraction(1, 2), Fraction(0)])
def test_a_solution_that_is_not_negative(right):
    point, _ = first_phase(fractions([[2]]), [right])
    assert point == (right / 2,)
    point, _ = first_phase(fractions([[-2]]), [-right])
    assert point == (right / 2,)


@pytest.mark.parametrize("right", [Fraction(-3), Fraction(-1, 2), Fraction(-1)])
def test_a_proof_that_there_is_none(right):
    """2x is not negative: π = -1 has π·2 ≤ 0 and π·right > 0."""
    assert first_phase(fractions([[2]]), [right]) == (None, (-1,))
    assert first_phase(fractions([[-2]]), [-right]) == (None, (1,))


def test_two_equations_of_either_sign():
    """x + y = 3/4 and x - y = -1/4 have the solution (1/4, 1/2); with -5/4, -1/4 and 1."""
    rows = fractions([[1, 1], [1, -1]])
    point, _ = first_phase(rows, [Fraction(3, 4), Fraction(-1, 4)])
    assert point == (Fraction(1, 4), Fraction(1, 2))
    right = [Fraction(3, 4), Fraction(-5, 4)]
    point, dual = first_phase(rows, right)
    assert point is None
    assert all(sum(p * row[c] for p, row in zip(dual, rows, strict=True)) <= 0 for c in range(2))
    assert sum(p * r for p, r in zip(dual, right, strict=True)) > 0


def test_a_positive_vector_across_the_rows():
    """z_1 + z_2 = 2z_3 and z_1 = z_2 with three columns and two rows: z is a multiple of ones."""
    coefficients, positive = nonnegative_vector(fractions([[1, 1, -2], [1, -1, 0]]))
    assert coefficients is None
    assert len(positive) == 3
    assert len(set(positive)) == 1
    assert positive[0] > 0


def test_a_row_that_will_do_by_itself():
    assert nonnegative_vector(fractions([[1, -1], [0, 0], [0, -2]])) == ((0, 0, -1), None)
    assert nonnegative_vector(fractions([[3, -1], [1, 2]])) == ((0, 1), None)
