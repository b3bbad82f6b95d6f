"""Exact linear algebra over the rational numbers, on rows of fractions."""

from collections.abc import Sequence
from fractions import Fraction

import flint

Row = list[Fraction]


def rational_matrix(rows: Sequence[Sequence[Fraction | int]]) -> flint.fmpq_mat:
    """The rows as python-flint has them."""
    return flint.fmpq_mat([[flint.fmpq(x.numerator, x.denominator) for x in row] for row in rows])


def fractions(matrix: flint.fmpq_mat) -> list[Row]:
    """The rows of a matrix of python-flint."""
    return [[Fraction(int(x.p), int(x.q)) for x in row] for row in matrix.tolist()]


def echelon(rows: Sequence[Sequence[Fraction | int]]) -> tuple[list[Row], list[int]]:
    """The rows of the reduced echelon form that are not zero, and the column of each one's pivot.

    >>> echelon([[0, 2, 4], [0, 1, 2]])
    ([[Fraction(0, 1), Fraction(1, 1), Fraction(2, 1)]], [1])
    """
    reduced, rank = rational_matrix(rows).rref()
    nonzero = fractions(reduced)[:rank]
    return nonzero, [next(column for column, entry in enumerate(row) if entry) for row in nonzero]


def rational_rank(rows: Sequence[Sequence[Fraction | int]]) -> int:
    """The rank.

    >>> rational_rank([[1, Fraction(1, 3)], [3, 1]])
    1
    """
    return int(rational_matrix(rows).rank())


def coordinates_in(basis: Sequence[Row], target: Row) -> Row | None:
    """Coefficients c with Σ_h c_h basis_h = target, if there are any.

    >>> basis = [[Fraction(1), Fraction(1)], [Fraction(0), Fraction(2)]]
    >>> coordinates_in(basis, [Fraction(1), Fraction(0)])
    [Fraction(1, 1), Fraction(-1, 2)]
    """
    solution = [Fraction(0)] * len(basis)
    for row, pivot in zip(*echelon(list(zip(*basis, target, strict=True))), strict=True):
        if pivot == len(basis):
            return None
        solution[pivot] = row[-1]
    return solution


def null_space(rows: Sequence[Sequence[Fraction | int]]) -> list[Row]:
    """A basis of the vectors that are orthogonal to all rows.

    >>> null_space([[1, 2]])
    [[Fraction(-2, 1), Fraction(1, 1)]]
    """
    reduced, pivots = echelon(rows)
    basis = []
    for free in sorted(set(range(len(rows[0]))) - set(pivots)):
        vector = [Fraction(int(column == free)) for column in range(len(rows[0]))]
        for row, pivot in zip(reduced, pivots, strict=True):
            vector[pivot] = -row[free]
        basis.append(vector)
    return basis
