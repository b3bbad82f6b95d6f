"""Eigenvectors of a symmetric matrix, the same to the last bit on every machine.

Certificates are compared byte by byte, while LAPACK's results differ between processors: in their
last bits, and where eigenvalues are multiple in the whole basis. Jacobi's method in Python's own
floats takes additions, products, quotients and square roots, each rounded as IEEE 754 says.

Each rotation makes the entry at (p, q) zero: with θ = (a_qq - a_pp)/(2a_pq), the smaller root t of
t² + 2θt - 1 = 0 is the tangent of its angle; the squares off the diagonal lose 2a_pq² of their sum.
"""

import math
from collections.abc import Sequence

SWEEPS = 60
SMALL = 2.0**-60  # of the largest entry: below the rounding of what is on the diagonal


def symmetric_eigenvectors(
    matrix: Sequence[Sequence[int | float]],
) -> tuple[list[float], list[list[float]]]:
    """Eigenvalues, the largest first, and one row for the eigenvector of each.

    Args:
        matrix: Square; only what is on and above the diagonal is read.

    Raises:
        ValueError: Where it does not converge: for entries that are not finite.

    Source: Jacobi 1846; Golub and Van Loan, Matrix Computations, section 8.5.

    >>> values, vectors = symmetric_eigenvectors([[2, 1], [1, 2]])
    >>> [round(value, 12) for value in values], [round(entry, 6) for entry in vectors[0]]
    ([3.0, 1.0], [0.707107, 0.707107])
    """
    size = len(matrix)
    a = [[float(matrix[min(i, j)][max(i, j)]) for j in range(size)] for i in range(size)]
    vectors = [[float(i == j) for j in range(size)] for i in range(size)]
    limit = SMALL * max((abs(entry) for row in a for entry in row), default=0.0)
    pairs = [(p, q) for p in range(size) for q in range(p + 1, size)]
    for _ in range(SWEEPS):
        if all(abs(a[p][q]) <= limit for p, q in pairs):
            break
        for p, q in pairs:
            if abs(a[p][q]) > limit:
                _rotate(a, vectors, p, q)
    else:
        raise ValueError(
            f"Jacobi's method has not converged in {SWEEPS} sweeps; expected finite entries, "
            f"got {[list(row) for row in matrix]}"
        )
    order = sorted(range(size), key=lambda index: -a[index][index])
    return [a[index][index] for index in order], [vectors[index] for index in order]


def _rotate(a: list[list[float]], vectors: list[list[float]], p: int, q: int) -> None:
    """Turn the axes p and q so that a_pq becomes zero."""
    theta = (a[q][q] - a[p][p]) / (2 * a[p][q])
    tangent = math.copysign(1.0, theta) / (abs(theta) + math.sqrt(theta * theta + 1))
    cosine = 1 / math.sqrt(tangent * tangent + 1)
    sine = tangent * cosine
    for row in a:
        row[p], row[q] = cosine * row[p] - sine * row[q], sine * row[p] + cosine * row[q]
    for rows in (a, vectors):
        pairs = list(zip(rows[p], rows[q], strict=True))
        rows[p] = [cosine * one - sine * other for one, other in pairs]
        rows[q] = [sine * one + cosine * other for one, other in pairs]
    a[p][q] = a[q][p] = 0.0
