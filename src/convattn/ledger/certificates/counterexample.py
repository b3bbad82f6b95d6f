"""Certificates against the print: C20's Lemma 3, its rank remark, α = 46, and the bare border."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import flint
import numpy as np

from convattn.ledger.certificates.canonical import certificate, rational
from convattn.operators.shifts import axis_taps

Row = list[Fraction]


def no_shared_map_certificate(
    statement: str,
    kernel_size: int,
    pixels: int,
    heads: Sequence[dict[str, Any]],
    claim: str = "C20.lemma3",
) -> dict[str, Any]:
    """C20 Lemma 3: the span condition holds at every query, but no one Φ serves all queries.

    Args:
        heads: Each either `{"rows": …}` or `{"relative": …}`, as docs/certificates.md describes.
    """
    attention = [head_rows(head, pixels) for head in heads]
    inclusion = []
    for query in range(pixels):
        basis = [rows[query] for rows in attention]
        keys = [query + tap for tap in axis_taps(kernel_size) if 0 <= query + tap < pixels]
        units = [[Fraction(int(key == k)) for k in range(pixels)] for key in keys]
        inclusion.append([[rational(c) for c in combination(basis, unit)] for unit in units])
    stacked = [[entry for row in rows for entry in row] for rows in attention]
    separator, tap = find_separator(stacked, kernel_size, pixels)
    body = {
        "kernel_size": [kernel_size],
        "pixels": [pixels],
        "heads": list(heads),
        "inclusion": inclusion,
        "separator": [rational(entry) for entry in separator],
        "tap": tap,
    }
    return certificate(claim, "no_shared_map", statement, body)


def head_rows(head: dict[str, Any], pixels: int) -> list[Row]:
    """The attention matrix of a head given by rows, or by unnormalised weights for each shift."""
    if "rows" in head:
        return [[Fraction(entry) for entry in row] for row in head["rows"]]
    weights = {shift: Fraction(weight) for shift, weight in head["relative"]}
    rows = [[weights[k - q] for k in range(pixels)] for q in range(pixels)]
    return [[entry / sum(row) for entry in row] for row in rows]


def combination(basis: Sequence[Row], target: Row) -> Row:
    """Coefficients c with Σ_h c_h basis_h = target, exactly.

    Raises:
        ValueError: Where the target is not in the span.

    >>> basis = [[Fraction(1), Fraction(1)], [Fraction(0), Fraction(2)]]
    >>> combination(basis, [Fraction(1), Fraction(0)])
    [Fraction(1, 1), Fraction(-1, 2)]
    """
    columns = len(basis)
    system = [[basis[h][k] for h in range(columns)] + [target[k]] for k in range(len(target))]
    reduced, rank = _fraction_matrix(system).rref()
    solution = [Fraction(0)] * columns
    for row in range(rank):
        pivot = next(c for c in range(columns + 1) if reduced[row, c] != 0)
        if pivot == columns:
            raise ValueError(f"the target {target} is not in the span of the {columns} rows")
        solution[pivot] = _fraction(reduced[row, columns])
    return solution


def find_separator(stacked: Sequence[Row], kernel_size: int, pixels: int) -> tuple[Row, int]:
    """y orthogonal to every head's stacked rows but not to a tap's: what proves that no Φ exists.

    Raises:
        ValueError: Where there is none, that is, where a shared Φ exists.
    """
    for tap in axis_taps(kernel_size):
        wanted = [Fraction(int(k == q + tap)) for q, k in product(range(pixels), range(pixels))]
        for vector in null_space(stacked):
            if sum(a * b for a, b in zip(vector, wanted, strict=True)) != 0:
                return vector, tap
    raise ValueError("every tap lies in the span of the stacked rows: a shared map exists")


def null_space(rows: Sequence[Row]) -> list[Row]:
    """A basis of the vectors orthogonal to all rows, exactly."""
    width = len(rows[0])
    reduced, rank = _fraction_matrix(rows).rref()
    pivots = [next(c for c in range(width) if reduced[row, c] != 0) for row in range(rank)]
    basis = []
    for free in sorted(set(range(width)) - set(pivots)):
        vector = [Fraction(0)] * width
        vector[free] = Fraction(1)
        for row, pivot in enumerate(pivots):
            vector[pivot] = -_fraction(reduced[row, free])
        basis.append(vector)
    return basis


def _fraction_matrix(rows: Sequence[Row]) -> flint.fmpq_mat:
    return flint.fmpq_mat(
        [[flint.fmpq(entry.numerator, entry.denominator) for entry in row] for row in rows]
    )


def _fraction(entry: flint.fmpq) -> Fraction:
    return Fraction(int(entry.p), int(entry.q))


def rank_certificate(
    statement: str, value: list[list[int]], output: list[list[int]]
) -> dict[str, Any]:
    """C20's remark on D_h and D_out: the rank of W_val W_out is not D_out - D_h."""
    product_rank = int((flint.fmpz_mat(value) * flint.fmpz_mat(output)).rank())
    body = {
        "head_dimension": len(output),
        "out_channels": len(output[0]),
        "in_channels": len(value),
        "value": value,
        "output": output,
        "rank": product_rank,
    }
    return certificate("C20.rank", "rank", statement, body)


def saturation_certificate(
    statement: str, alpha: int, exponent: int, conclusion: str
) -> dict[str, Any]:
    """C20's α = 46: whether the nearest neighbours' weight stays above 2^exponent or vanishes."""
    body = {
        "alpha": alpha,
        "exponent": exponent,
        "e_lower": rational(Fraction(2718281828459, 10**12)),
        "e_upper": rational(Fraction(2718281828460, 10**12)),
        "conclusion": conclusion,
    }
    return certificate("C20.alpha46", "saturation", statement, body)


def border_certificate(
    claim: str,
    statement: str,
    kernel: list[list[int]],
    image_size: tuple[int, int],
    patch_size: int,
    queries: tuple[tuple[int, int], tuple[int, int]],
) -> dict[str, Any]:
    """Without a ring: the zero-padded convolution of a constant image differs at two tokens."""
    weights = np.array(kernel)
    reach = [(k - 1) // 2 for k in weights.shape]
    widths = [(r, k - 1 - r) for r, k in zip(reach, weights.shape, strict=True)]
    padded = np.pad(np.ones(image_size, int), widths)
    windows = np.lib.stride_tricks.sliding_window_view(padded, weights.shape)
    image = (windows * weights).sum((-2, -1))
    sums = [
        image[
            row * patch_size : (row + 1) * patch_size,
            column * patch_size : (column + 1) * patch_size,
        ]
        .reshape(-1)
        .tolist()
        for row, column in queries
    ]
    body = {
        "kernel_size": list(weights.shape),
        "image_size": list(image_size),
        "patch_size": [patch_size] * 2,
        "kernel": weights.reshape(-1).tolist(),
        "queries": [list(query) for query in queries],
        "sums": sums,
    }
    return certificate(claim, "border", statement, body)
