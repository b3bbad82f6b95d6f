"""Rank and determinant of an integer matrix, without a single fraction.

Bareiss: eliminating below a pivot p with the update (p·a - b·c) / p', where p' is the pivot before,
keeps every entry an integer: it is a minor of the matrix (Sylvester's identity), so the division is
exact. The last pivot is the determinant, up to the sign of the row swaps. The rank is that over the
rationals, and so over every field of characteristic 0; modulo a prime it may be less.
"""

from collections.abc import Sequence

from convattn_check.cost import Work, longest


def eliminate(matrix: Sequence[Sequence[int]], work: Work | None = None) -> tuple[int, int]:
    """(rank, determinant); the determinant is 0 if the matrix is not square.

    `work` counts on over several eliminations.

    >>> eliminate([[0, 2], [3, 4]]), eliminate([[1, 2, 3], [2, 4, 6]])
    ((2, -6), (1, 0))
    """
    work = work or Work("the elimination")
    rows = [list(row) for row in matrix]
    height, width = len(rows), len(rows[0])
    rank, previous, sign = 0, 1, 1
    for column in range(width):
        chosen = next((r for r in range(rank, height) if rows[r][column]), None)
        if chosen is None:
            continue
        if chosen != rank:
            rows[rank], rows[chosen] = rows[chosen], rows[rank]
            sign = -sign
        top, pivot = rows[rank], rows[rank][column]
        long = longest(top)
        for row in rows[rank + 1 :]:
            factor = row[column]
            work.add(3 * (width - column), long, longest(row))
            for c in range(column, width):
                row[c] = (row[c] * pivot - factor * top[c]) // previous
        rank, previous = rank + 1, pivot
    return rank, sign * previous if rank == height == width else 0
