"""Inverses and linear relations of rational matrices, exactly."""

from fractions import Fraction
from numbers import Rational
from typing import Any

import flint
import numpy as np
from jaxtyping import Shaped


def as_fractions(value: Any, name: str) -> Shaped[np.ndarray, "..."]:
    """Integers and fractions as an object array of `Fraction`.

    Raises:
        ValueError: For anything else; a float stands for no rational in particular.

    >>> as_fractions([1, Fraction(1, 2)], "row").tolist()
    [Fraction(1, 1), Fraction(1, 2)]
    """
    array = np.asarray(value, object)
    result = np.empty(array.shape, object)
    for index in np.ndindex(array.shape):
        entry = array[index]
        number = entry.item() if isinstance(entry, np.generic) else entry
        if not isinstance(number, Rational) or isinstance(number, bool):
            raise ValueError(
                f"{name}{list(index)}={number!r}, but should be an integer or a Fraction; the "
                "floating-point variant takes floats"
            )
        result[index] = Fraction(number)
    return result


def transposed_inverse(
    matrix: Shaped[np.ndarray, "rows columns"],
) -> Shaped[np.ndarray, "rows columns"]:
    """(Mᵀ)⁻¹ of an invertible matrix of fractions.

    Raises:
        ZeroDivisionError: For a singular one.

    >>> transposed_inverse(as_fractions([[1, 1], [0, 2]], "m")).astype(float).tolist()
    [[1.0, 0.0], [-0.5, 0.5]]
    """
    return _from_flint(_to_flint(matrix.T).inv(), matrix.shape)


def linear_relation(matrix: Shaped[np.ndarray, "rows columns"]) -> list[int] | None:
    """Coprime integers c ≠ 0 with Σ_k c_k row_k = 0, or None if the rows are independent.

    >>> linear_relation(as_fractions([[1, 2], [2, 4], [0, 1]], "m"))
    [2, -1, 0]
    """
    reduced, rank = _to_flint(matrix.T).rref()
    rows = matrix.shape[0]
    if rank == rows:
        return None
    pivots = [next(c for c in range(rows) if reduced[r, c] != 0) for r in range(rank)]
    free = next(column for column in range(rows) if column not in pivots)
    solution = [Fraction(0)] * rows
    solution[free] = Fraction(-1)
    for row, pivot in enumerate(pivots):
        entry = reduced[row, free]
        solution[pivot] = Fraction(int(entry.p), int(entry.q))
    scale = int(np.lcm.reduce([number.denominator for number in solution]))
    numbers = [int(number * scale) for number in solution]
    return [number // int(np.gcd.reduce(numbers)) for number in numbers]


def _to_flint(matrix: Shaped[np.ndarray, "rows columns"]) -> flint.fmpq_mat:
    rows, columns = matrix.shape
    return flint.fmpq_mat(
        rows, columns, [flint.fmpq(f.numerator, f.denominator) for f in matrix.reshape(-1)]
    )


def _from_flint(matrix: flint.fmpq_mat, shape: tuple[int, ...]) -> np.ndarray:
    result = np.empty(shape, object)
    for row, column in np.ndindex(shape):
        entry = matrix[row, column]
        result[row, column] = Fraction(int(entry.p), int(entry.q))
    return result
