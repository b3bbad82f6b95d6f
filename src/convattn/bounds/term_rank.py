"""The term rank of a pattern of zeros, which no rank of a matrix with these zeros exceeds.

A square minor that is not zero has a product of nonzero entries in its expansion, one in each of
its rows and columns: a matching of rows and columns. So the rank is at most the largest matching,
and that is found by augmenting paths (Kőnig).
"""

from collections.abc import Sequence


def term_rank(neighbours: Sequence[Sequence[int]], copies: int = 1) -> int:
    """How many columns can be matched to rows, each row standing for so many alike.

    Args:
        neighbours: For each column, the rows in which it may have a nonzero entry.
        copies: How many rows there are of each.

    Returns:
        The size of a largest matching.

    Source: S.heads of this project's ledger.

    >>> term_rank([[0], [0], [0, 1]])  # three columns; the first two have one row in common
    2
    >>> term_rank([[0], [0], [0, 1]], copies=2)
    3
    """
    columns_of_row: dict[int, set[int]] = {}
    row_of_column: dict[int, int] = {}
    dead: set[int] = set()  # rows of failed searches: no later path leads through them
    for column in range(len(neighbours)):
        reached_from: dict[int, int] = {}
        row = _free_row(column, neighbours, copies, columns_of_row, dead, reached_from)
        if row is None:
            dead.update(reached_from)
            continue
        while True:
            moved = reached_from[row]
            before = row_of_column.get(moved)
            columns_of_row.setdefault(row, set()).add(moved)
            row_of_column[moved] = row
            if before is None:
                break
            columns_of_row[before].remove(moved)
            row = before
    return len(row_of_column)


def _free_row(
    column: int,
    neighbours: Sequence[Sequence[int]],
    copies: int,
    columns_of_row: dict[int, set[int]],
    dead: set[int],
    reached_from: dict[int, int],
) -> int | None:
    """The end of a shortest alternating path from a column to a row that has a copy left."""
    queue = [column]
    for current in queue:
        for row in neighbours[current]:
            if row in dead or row in reached_from:
                continue
            reached_from[row] = current
            if len(columns_of_row.get(row, ())) < copies:
                return row
            queue.extend(columns_of_row[row])
    return None
