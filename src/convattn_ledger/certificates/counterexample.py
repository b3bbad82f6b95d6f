"""Certificates against the print: C20's Lemma 3, its rank remark, α = 46, and the bare border."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import flint

from convattn.operators.shifts import axis_taps
from convattn_ledger.certificates.canonical import rational
from convattn_ledger.rational_matrices import Row, coordinates_in, null_space


def no_shared_map_body(
    kernel_size: int, pixels: int, heads: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """C20 Lemma 3: the span condition holds at every query, but no one Φ serves all queries.

    Args:
        heads: Each either `{"rows": …}` or `{"relative": …}`, as docs/certificates.md describes.

    Raises:
        ValueError: Where a span does not hold, or one Φ serves all queries.
    """
    attention = [head_rows(head, pixels) for head in heads]
    inclusion = []
    for query in range(pixels):
        basis = [rows[query] for rows in attention]
        keys = [query + tap for tap in axis_taps(kernel_size) if 0 <= query + tap < pixels]
        rows = [coordinates_in(basis, [Fraction(key == k) for k in range(pixels)]) for key in keys]
        coefficients = [row for row in rows if row is not None]
        if len(coefficients) < len(rows):
            raise ValueError(f"a tap of query {query} is not in the span of the {len(heads)} rows")
        inclusion.append([[rational(c) for c in row] for row in coefficients])
    stacked = [[entry for row in rows for entry in row] for rows in attention]
    separator, tap = _separator(stacked, kernel_size, pixels)
    return {
        "kernel_size": [kernel_size],
        "pixels": [pixels],
        "heads": list(heads),
        "inclusion": inclusion,
        "separator": [rational(entry) for entry in separator],
        "tap": tap,
    }


def head_rows(head: dict[str, Any], pixels: int) -> list[Row]:
    """The attention matrix of a head given by rows, or by unnormalised weights for each shift."""
    if "rows" in head:
        return [[Fraction(entry) for entry in row] for row in head["rows"]]
    weights = {shift: Fraction(weight) for shift, weight in head["relative"]}
    rows = [[weights[k - q] for k in range(pixels)] for q in range(pixels)]
    return [[entry / sum(row) for entry in row] for row in rows]


def _separator(stacked: Sequence[Row], kernel_size: int, pixels: int) -> tuple[Row, int]:
    """y orthogonal to every head's stacked rows but not to a tap's, which no Φ allows; the tap."""
    for tap in axis_taps(kernel_size):
        target = [int(k == q + tap) for q, k in product(range(pixels), range(pixels))]
        for vector in null_space(stacked):
            if sum(a * b for a, b in zip(vector, target, strict=True)) != 0:
                return vector, tap
    raise ValueError("every tap lies in the span of the stacked rows: a shared map exists")


def rank_body(value: list[list[int]], output: list[list[int]]) -> dict[str, Any]:
    """C20's remark on D_h and D_out: the rank of W_val W_out is not D_out - D_h."""
    return {
        "head_dimension": len(output),
        "out_channels": len(output[0]),
        "in_channels": len(value),
        "value": value,
        "output": output,
        "rank": int((flint.fmpz_mat(value) * flint.fmpz_mat(output)).rank()),
    }


def saturation_body(alpha: int, exponent: int, conclusion: str) -> dict[str, Any]:
    """C20's α = 46: whether the nearest neighbours' weight stays above 2^exponent or vanishes."""
    return {
        "alpha": alpha,
        "exponent": exponent,
        "e_lower": rational(Fraction(2718281828459, 10**12)),
        "e_upper": rational(Fraction(2718281828460, 10**12)),
        "conclusion": conclusion,
    }


def border_body(
    kernel_size: int, patch_size: int, tokens: Sequence[int], queries: Sequence[Sequence[int]]
) -> dict[str, Any]:
    """Without a ring: the zero-padded box sum of a constant image differs at two tokens.

    Args:
        kernel_size: Odd.
        tokens, queries: The tokens on each axis, and two of them.
    """
    sides, reach = [n * patch_size for n in tokens], kernel_size // 2
    # How many taps of an axis lie inside the image, pixel by pixel.
    inside = [[min(i + reach + 1, n) - max(i - reach, 0) for i in range(n)] for n in sides]
    pixels = [
        [axis[q * patch_size : (q + 1) * patch_size] for axis, q in zip(inside, query, strict=True)]
        for query in queries
    ]
    return {
        "kernel_size": [kernel_size] * 2,
        "image_size": sides,
        "patch_size": [patch_size] * 2,
        "kernel": [1] * kernel_size**2,
        "queries": [list(query) for query in queries],
        "sums": [[down * right for down, right in product(*pair)] for pair in pixels],
    }
