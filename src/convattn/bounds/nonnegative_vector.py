"""Whether a space of vectors holds a nonnegative one: decided exactly, with a proof either way.

Let B be a matrix of rationals. Gordan: exactly one of these is so.

- Some y = cB has y ≥ 0 and y ≠ 0.
- Some z > 0 has B z = 0.

(Not both: y·z would be positive and zero.) To find out which, look for z = 1 + x with x ≥ 0 and
B x = -B 1, by the first phase of the simplex method in fractions. Where its least sum of
artificial variables is 0, z is found. Otherwise the dual solution π has πB ≤ 0 and -πB 1 > 0, so
that y = -πB is nonnegative and not zero. Bland's rule keeps it from turning in circles.
"""

from collections.abc import Sequence
from fractions import Fraction

import flint

Vector = tuple[Fraction, ...]


def nonnegative_vector(
    basis: Sequence[Sequence[Fraction]],
) -> tuple[Vector | None, Vector | None]:
    """The coefficients c of a nonnegative y = cB ≠ 0, or a positive z with B z = 0.

    Args:
        basis: The rows of B, at least one, exact.

    Returns:
        (c, None) or (None, z).

    >>> [str(entry) for entry in nonnegative_vector([[Fraction(1), Fraction(-1)]])[1]]
    ['1', '1']
    >>> [str(entry) for entry in nonnegative_vector([[Fraction(-1), Fraction(0)]])[0]]
    ['-1']
    """
    for index, row in enumerate(basis):  # often one row will do
        sign = 1 if min(row) >= 0 else -1
        if any(row) and min(sign * entry for entry in row) >= 0:
            return tuple(Fraction(sign * (k == index)) for k in range(len(basis))), None
    right = [-sum(row, Fraction(0)) for row in basis]
    point, dual = first_phase(basis, right)
    if point is not None:
        return None, tuple(1 + entry for entry in point)
    return tuple(-entry for entry in dual), None


def first_phase(
    matrix: Sequence[Sequence[Fraction]], right: Sequence[Fraction]
) -> tuple[Vector | None, Vector]:
    """x ≥ 0 with matrix x = right, or π with π matrix ≤ 0 and π·right > 0.

    >>> first_phase([[Fraction(2)]], [Fraction(3)])[0], first_phase([[Fraction(2)]], [Fraction(-3)])
    ((Fraction(3, 2),), (None, (Fraction(-1, 1),)))
    """
    height, width = len(matrix), len(matrix[0])
    signs = [-1 if entry < 0 else 1 for entry in right]
    table = [
        [flint.fmpq(sign * entry.numerator, entry.denominator) for entry in (*row, last)]
        for row, last, sign in zip(matrix, right, signs, strict=True)
    ]
    for number, line in enumerate(table):  # the artificial variables stand before the right side
        line[width:width] = [flint.fmpq(int(k == number)) for k in range(height)]
    cost = [-sum((line[c] for line in table), flint.fmpq(0)) for c in range(width + height + 1)]
    cost[width : width + height] = [flint.fmpq(0)] * height
    chosen = list(range(width, width + height))
    while True:
        enter = next((c for c in range(width + height) if cost[c] < 0), None)
        if enter is None:
            break
        ratios = [
            (line[-1] / line[enter], chosen[r], r)
            for r, line in enumerate(table)
            if line[enter] > 0
        ]
        least = min(ratio for ratio, *_ in ratios)
        leave = min((name, r) for ratio, name, r in ratios if ratio == least)[1]
        pivot = table[leave][enter]
        table[leave] = [entry / pivot for entry in table[leave]]
        for line in [*table[:leave], *table[leave + 1 :], cost]:
            factor = line[enter]
            if factor:
                line[:] = [a - factor * b for a, b in zip(line, table[leave], strict=True)]
        chosen[leave] = enter
    if cost[-1] == 0:
        values = {name: line[-1] for name, line in zip(chosen, table, strict=True)}
        return tuple(_fraction(values.get(c, flint.fmpq(0))) for c in range(width)), ()
    reduced = cost[width : width + height]  # 1 - π, up to the signs of the rows
    dual = (sign * (1 - entry) for sign, entry in zip(signs, reduced, strict=True))
    return None, tuple(_fraction(flint.fmpq(entry)) for entry in dual)


def _fraction(entry: flint.fmpq) -> Fraction:
    return Fraction(int(entry.p), int(entry.q))
