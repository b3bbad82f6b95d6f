"""Certificates of what the bare grid and a finite sharpness cost: S.padding and S.saturation."""

from collections.abc import Iterator
from typing import Any

from convattn.ledger.certificates.counterexample import border_certificate
from convattn.ledger.certificates.total_variation import (
    bias_variation_certificate,
    quadratic_variation_certificate,
)

# Kernel size, patch size, tokens on each axis, two queries. The third grid is so small that 10
# dimensions of other kernels are computed there.
BORDERS = (
    (3, 1, (6, 8), ((0, 0), (1, 1))),
    (3, 2, (3, 4), ((0, 0), (1, 1))),
    (5, 1, (4, 4), ((0, 0), (0, 1))),
    (5, 4, (2, 3), ((0, 0), (0, 1))),
)
QUADRATIC = ((1, 2), (3, 2), (10, 2), (40, 2), (3, 1))  # α, axes
BIAS = ((3, 9), (10, 100), (40, 1156))  # M, N


def bare_grid_certificates() -> Iterator[tuple[str, dict[str, Any]]]:
    """File name and certificate, one after the other."""
    for kernel, patch, tokens, queries in BORDERS:
        rows, columns = tokens
        yield (
            f"S.padding-border-K{kernel}-P{patch}.json",
            border_certificate(
                "S.padding",
                f"On a bare grid of {rows}x{columns} tokens of {patch}x{patch} pixels no softmax "
                f"layer is the zero-padded {kernel}x{kernel} box sum: the sums of the taps inside "
                f"differ between the queries {queries[0]} and {queries[1]}.",
                [[1] * kernel] * kernel,
                (rows * patch, columns * patch),
                patch,
                queries,
            ),
        )
    for alpha, axes in QUADRATIC:
        yield (
            f"S.saturation-quadratic-{alpha}-axes{axes}.json",
            quadratic_variation_certificate(
                "S.saturation",
                f"Quadratic heads with alpha = {alpha} on {axes} axes are less than "
                f"1 - theta^-{axes} from the nearest key's row, at every query of every grid.",
                alpha,
                axes,
            ),
        )
    for logit, keys in BIAS:
        yield (
            f"S.saturation-bias-{logit}-N{keys}.json",
            bias_variation_certificate(
                "S.saturation",
                f"A bias M = {logit} at one of {keys} keys leaves (N - 1)/(e^M + N - 1) to the "
                "others.",
                logit,
                keys,
            ),
        )
