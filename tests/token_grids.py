"""Grids on which encodings are tested, and their scores by a double loop over queries and keys."""

from collections.abc import Callable, Sequence
from itertools import product

import jax
import numpy as np

from convattn.operators.shifts import Shift, TokenGrid

# Every axis has its own size, and no ring is the same before and after.
SEQUENCES = (TokenGrid((5,), ((1, 2),)), TokenGrid((1,), ((3, 1),)), TokenGrid((6,), ((0, 0),)))
IMAGES = (
    TokenGrid((3, 4), ((1, 0), (2, 1))),
    TokenGrid((1, 1), ((2, 1), (0, 3))),
    TokenGrid((2, 5), ((0, 0), (0, 0))),
)
GRIDS = SEQUENCES + IMAGES

compiled_scores = jax.jit(lambda encoding, grid: encoding.positional_scores(grid), static_argnums=1)


def places(grid: TokenGrid) -> tuple[list[Shift], list[Shift]]:
    """Where queries and keys stand, counted from the first key, rows before columns."""
    firsts = [before for before, _ in grid.ring]
    lasts = [after for _, after in grid.ring]
    queries = [
        tuple(f + index for f, index in zip(firsts, indices, strict=True))
        for indices in product(*(range(n) for n in grid.queries))
    ]
    sides = [f + n + after for f, n, after in zip(firsts, grid.queries, lasts, strict=True)]
    return queries, list(product(*(range(side) for side in sides)))


def slow_scores(
    grid: TokenGrid, heads: int, score: Callable[[int, Shift, Shift], float]
) -> np.ndarray:
    """`score(head, query, key)` for every query and key: `[heads, queries, keys]`."""
    queries, keys = places(grid)
    return np.array([[[score(h, q, k) for k in keys] for q in queries] for h in range(heads)])


def slow_shift_scores(
    grid: TokenGrid, heads: int, score: Callable[[int, Shift], float]
) -> np.ndarray:
    """The same for a score that depends on the shift key - query alone."""

    def of_pair(head: int, query: Shift, key: Shift) -> float:
        return score(head, tuple(k - q for q, k in zip(query, key, strict=True)))

    return slow_scores(grid, heads, of_pair)


def sinusoid(place: Sequence[int], features: int) -> np.ndarray:
    """Each axis: sines, then cosines, at the rates 10000^(-i/n)."""
    count = features // (2 * len(place))
    rates = [10000.0 ** (-i / count) for i in range(count)]
    vector: list[float] = []
    for x in place:
        vector += [np.sin(x * rate) for rate in rates] + [np.cos(x * rate) for rate in rates]
    return np.array(vector)


def interior(grid: TokenGrid, offsets: tuple[Shift, ...]) -> list[int]:
    """The rows of the queries all of whose offsets are keys."""
    queries, keys = places(grid)
    known = set(keys)
    return [
        row
        for row, query in enumerate(queries)
        if all(
            tuple(q + d for q, d in zip(query, offset, strict=True)) in known for offset in offsets
        )
    ]
