"""Which value maps turn given attention into a convolution: exact linear algebra over fractions.

Heads with fixed rows a_qk^(h) compute Σ_h a_qk^(h) X_k W^(h), a convolution of a row of pixels
computes Σ_Δ [k = q + Δ] X_k W_Δ. C20's Lemma 3 compares spans at each query q; its repair stacks
the queries.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from jaxtyping import Int

from convattn.operators.shifts import axis_taps
from convattn_ledger.rational_matrices import Row, coordinates_in, rational_rank

Matrix = list[Row]


def tap_matrices(kernel_size: int, pixels: int) -> list[Matrix]:
    """For each tap Δ the matrix with the row e_(q+Δ) at q, zero where q + Δ is no pixel.

    >>> [[int(entry) for entry in row] for row in tap_matrices(3, 2)[0]]  # Δ = -1
    [[0, 0], [1, 0]]
    """
    return [
        [[Fraction(int(k == q + tap)) for k in range(pixels)] for q in range(pixels)]
        for tap in axis_taps(kernel_size)
    ]


def spans_hold(heads: Sequence[Matrix], taps: Sequence[Matrix]) -> bool:
    """C20's condition: at every query the taps' rows lie in the span of the heads' rows.

    >>> heads = [[[Fraction(1), Fraction(0)]] * 2, [[Fraction(0), Fraction(1)]] * 2]
    >>> spans_hold(heads, tap_matrices(1, 2)), shared_map_exists(heads, tap_matrices(1, 2))
    (True, False)
    """
    for query in range(len(taps[0])):
        rows, targets = [head[query] for head in heads], [tap[query] for tap in taps]
        if rational_rank(rows) != rational_rank(rows + targets):
            return False
    return True


def shared_map_exists(heads: Sequence[Matrix], taps: Sequence[Matrix]) -> bool:
    """The repaired condition: the same with the rows of all queries side by side."""
    rows = [[entry for row in head for entry in row] for head in heads]
    targets = [[entry for row in tap for entry in row] for tap in taps]
    return rational_rank(rows) == rational_rank(rows + targets)


def solve_value_maps(
    heads: Sequence[Matrix],
    taps: Sequence[Matrix],
    kernel: Int[np.ndarray, "taps in_channels out_channels"],
) -> list[np.ndarray] | None:
    """W^(h) with Σ_h a_qk^(h) W^(h) = Σ_Δ [k = q + Δ] W_Δ for all q and k, if there are any.

    Returns:
        Fractions, one `[in_channels, out_channels]` for each head, or None.

    >>> identity = tap_matrices(1, 2)
    >>> solve_value_maps(identity, identity, np.array([[[7]]]))[0].tolist()
    [[Fraction(7, 1)]]
    """
    pairs = [(q, k) for q, row in enumerate(taps[0]) for k in range(len(row))]
    basis = [[head[q][k] for q, k in pairs] for head in heads]
    maps = [np.full(kernel.shape[1:], Fraction(0), object) for _ in heads]
    for i, j in np.ndindex(*kernel.shape[1:]):
        weights = kernel[:, i, j].tolist()
        target = [
            sum((w * tap[q][k] for w, tap in zip(weights, taps, strict=True)), Fraction(0))
            for q, k in pairs
        ]
        entries = coordinates_in(basis, target)
        if entries is None:
            return None
        for head, entry in zip(maps, entries, strict=True):
            head[i, j] = entry
    return maps
