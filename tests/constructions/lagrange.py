"""The coefficients that undo powers, by elimination in fractions rather than by products."""

from fractions import Fraction


def solve(matrix: list[list[Fraction]], right: list[list[Fraction]]) -> list[list[Fraction]]:
    """X with matrix·X = right, by Gauss and Jordan."""
    rows = [[*left, *others] for left, others in zip(matrix, right, strict=True)]
    size = len(rows)
    for column in range(size):
        pivot = next(row for row in range(column, size) if rows[row][column])
        rows[column], rows[pivot] = rows[pivot], rows[column]
        scale = rows[column][column]
        rows[column] = [entry / scale for entry in rows[column]]
        for row in range(size):
            if row != column and rows[row][column]:
                factor = rows[row][column]
                rows[row] = [a - factor * b for a, b in zip(rows[row], rows[column], strict=True)]
    return [row[size:] for row in rows]


def coefficients(bases, exact: bool) -> list[list[Fraction]]:
    """V with Σ_h V_hδ z^h one at z = t_δ and zero at the other bases, and at 1 if exact."""
    first = 0 if exact else 1
    nodes = [*bases, 1] if exact else list(bases)
    powers = [[Fraction(z) ** h for h in range(first, len(bases) + 1)] for z in nodes]
    identity = [[Fraction(z == t) for t in bases] for z in nodes]
    return solve(powers, identity)


def amplification(bases, exact: bool) -> Fraction:
    """κ = max over δ and nodes of Σ_h |V_hδ| z^h."""
    first = 0 if exact else 1
    rows = coefficients(bases, exact)
    nodes = [*bases, 1] if exact else list(bases)
    return max(
        sum(abs(row[column]) * Fraction(z) ** (first + h) for h, row in enumerate(rows))
        for column in range(len(bases))
        for z in nodes
    )
