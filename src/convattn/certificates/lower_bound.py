"""Certificates of lower bounds: a kernel and a nonsingular minor of its flattened form F."""

from itertools import product
from typing import Any

import flint
import numpy as np

from convattn.certificates.canonical import certificate
from convattn.constructions.geometry import ConvolutionGeometry


def pixel_bound_certificate(
    claim: str, statement: str, kernel_size: int, in_channels: int, out_channels: int
) -> dict[str, Any]:
    """P = 1: the n-th tap is the unit matrix of the n-th channel pair, n = min(K², in·out).

    The minor on these channel pairs and taps is the identity, so K² heads are needed as soon as
    in·out ≥ K².

    **Source:** L21 Theorem 5, sharpened from min(K², in) to min(K², in·out).
    """
    pairs = list(product(range(in_channels), range(out_channels)))
    kernel = np.zeros((kernel_size, kernel_size, in_channels, out_channels), int)
    taps = list(product(range(kernel_size), repeat=2))
    size = min(len(taps), len(pairs))
    for tap, pair in zip(taps[:size], pairs[:size], strict=True):
        kernel[(*tap, *pair)] = 1
    reach = (kernel_size - 1) // 2
    rows = [[0, 0, 0, 0, *pair] for pair in pairs[:size]]
    columns = [[tap - reach for tap in pair] for pair in taps[:size]]
    return _certificate(claim, statement, kernel, 1, rows, columns)


def box_bound_certificate(
    claim: str, statement: str, kernel_size: int, patch_size: int
) -> dict[str, Any]:
    """P ≥ 2: the 3 × 3 box kernel and the nine rows q - p ∈ {P-1, 0, -(P-1)}².

    On one axis the minor on the offsets -1, 0, 1 has determinant one for every P ≥ 2, and the
    minor in two dimensions is its product with itself. The box stands in the middle of a K × K
    kernel, which has m = 1 for 3 ≤ K ≤ 2P + 1.

    **Source:** L21 Theorem 6, sharpened to every P ≥ 2 and the whole range of Corollary 4.
    """
    reach, last = (kernel_size - 1) // 2, patch_size - 1
    kernel = np.zeros((kernel_size, kernel_size, 1, 1), int)
    kernel[reach - 1 : reach + 2, reach - 1 : reach + 2] = 1
    places = [(0, last), (0, 0), (last, 0)]  # (p, q) on one axis
    rows = [[a[0], b[0], a[1], b[1], 0, 0] for a, b in product(places, places)]
    columns = [list(offset) for offset in product((-1, 0, 1), repeat=2)]
    return _certificate(claim, statement, kernel, patch_size, rows, columns)


def minor(
    kernel: np.ndarray, patch_size: int, rows: list[list[int]], columns: list[list[int]]
) -> list[list[int]]:
    """The entries W_(Pδ+q-p)[i, j] of F at these rows (p, q, i, j) and columns δ."""
    geometry = ConvolutionGeometry.of(kernel.shape[:2], patch_size)
    index = geometry.tap_index
    entries = []
    for p1, p2, q1, q2, i, j in rows:
        line = []
        for first, second in columns:
            places = (
                geometry.axis_offsets[0].index(first),
                geometry.axis_offsets[1].index(second),
            )
            taps = int(index[0][places[0], p1, q1]), int(index[1][places[1], p2, q2])
            line.append(0 if -1 in taps else int(kernel[taps[0], taps[1], i, j]))
        entries.append(line)
    return entries


def _certificate(
    claim: str,
    statement: str,
    kernel: np.ndarray,
    patch_size: int,
    rows: list[list[int]],
    columns: list[list[int]],
) -> dict[str, Any]:
    determinant = int(flint.fmpz_mat(minor(kernel, patch_size, rows, columns)).det())
    if determinant == 0:
        raise ValueError(f"{claim}: the minor on rows {rows} and columns {columns} is singular")
    body = {
        "kernel_size": list(kernel.shape[:2]),
        "patch_size": [patch_size] * 2,
        "in_channels": kernel.shape[2],
        "out_channels": kernel.shape[3],
        "kernel": kernel.reshape(-1).tolist(),
        "rows": rows,
        "columns": columns,
        "determinant": determinant,
        "heads": len(rows),
        "tokens_per_side": [max(abs(column[axis]) for column in columns) + 1 for axis in range(2)],
    }
    return certificate(claim, "lower_bound", statement, body)
