"""Certificates of lower bounds: a kernel and a nonsingular minor of its flattened form F."""

from collections.abc import Sequence
from itertools import product
from random import Random
from typing import Any

import flint
import numpy as np

from convattn.bounds.residue_blocks import AxisBlock, axis_blocks
from convattn.constructions.geometry import ConvolutionGeometry

PRIME = 2**61 - 1
MAX_HEADS, MAX_ENTRIES = 128, 50_000  # of a certificate that the checker reads in seconds
ATTEMPTS = 20


def kernel_fields(kernel: np.ndarray, patch_size: Sequence[int]) -> dict[str, Any]:
    """What the body of a certificate about one kernel says of it.

    >>> kernel_fields(np.ones((3, 1, 2), int), [2])["kernel"]
    [1, 1, 1, 1, 1, 1]
    """
    return {
        "kernel_size": list(kernel.shape[:-2]),
        "patch_size": list(patch_size),
        "in_channels": kernel.shape[-2],
        "out_channels": kernel.shape[-1],
        "kernel": kernel.reshape(-1).tolist(),
    }


def pixel_bound_body(kernel_size: int, in_channels: int, out_channels: int) -> dict[str, Any]:
    """P = 1: the n-th tap is the unit matrix of the n-th channel pair, n = min(K², in·out).

    The minor on these channel pairs and taps is the identity, so K² heads are needed as soon as
    in·out ≥ K².

    Source: L21 Theorem 5, sharpened from min(K², in) to min(K², in·out).
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
    return _bound_body(kernel, 1, rows, columns)


def box_bound_body(kernel_size: int, patch_size: int) -> dict[str, Any]:
    """P ≥ 2: the 3 × 3 box kernel and the nine rows q - p ∈ {P-1, 0, -(P-1)}².

    On one axis the minor on the offsets -1, 0, 1 has determinant one for every P ≥ 2, and the
    minor in two dimensions is its product with itself. The box stands in the middle of a K × K
    kernel, which has m = 1 for 3 ≤ K ≤ 2P + 1.

    Source: L21 Theorem 6, sharpened to every P ≥ 2 and the whole range of Corollary 4.
    """
    reach, last = (kernel_size - 1) // 2, patch_size - 1
    kernel = np.zeros((kernel_size, kernel_size, 1, 1), int)
    kernel[reach - 1 : reach + 2, reach - 1 : reach + 2] = 1
    places = [(0, last), (0, 0), (last, 0)]  # (p, q) on one axis
    rows = [[a[0], b[0], a[1], b[1], 0, 0] for a, b in product(places, places)]
    columns = [list(offset) for offset in product((-1, 0, 1), repeat=2)]
    return _bound_body(kernel, patch_size, rows, columns)


def generic_bound_body(
    kernel_size: int, patch_size: int, in_channels: int, out_channels: int, axes: int = 2
) -> dict[str, Any]:
    """A kernel of small integers that takes min((2m+1)^axes, (2P-1)^axes·in·out) heads.

    Kernels are drawn until one has that rank modulo a prime, as almost all have; the pivots of the
    elimination are the rows and columns of the minor.

    Raises:
        ValueError: For an even kernel, more heads or larger kernels than a certificate holds, and
            where no kernel of the rank was found.

    Source: S.heads of this project's ledger.

    >>> body = generic_bound_body(3, 4, 1, 1)
    >>> body["heads"], body["determinant"] != 0
    (9, True)
    """
    if kernel_size % 2 == 0:
        raise ValueError(
            f"kernel_size={kernel_size}, but should be odd: S.heads counts (2m+1)^axes offsets"
        )
    block = axis_blocks(kernel_size, patch_size, 1)[0]
    columns = list(product(block.columns, repeat=axes))
    pairs = in_channels * out_channels
    heads = min(len(columns), block.window**axes * pairs)
    entries = kernel_size**axes * pairs
    if heads > MAX_HEADS or entries > MAX_ENTRIES:
        raise ValueError(
            f"the bound is of {heads} heads, for a kernel of {entries} numbers, but a certificate "
            f"should have at most {MAX_HEADS} heads and {MAX_ENTRIES} numbers; take a smaller "
            "kernel or fewer channels"
        )
    draws = Random("a generic kernel")
    shape = (*(kernel_size,) * axes, in_channels, out_channels)
    for _ in range(ATTEMPTS):
        kernel = np.array([draws.randrange(6) for _ in range(entries)]).reshape(shape)
        rows, chosen = independent_rows(kernel, block, columns)
        if len(rows) == heads:
            return _bound_body(kernel, patch_size, rows, chosen)
    raise ValueError(
        f"none of {ATTEMPTS} kernels has rank {heads} for K = {kernel_size}, P = {patch_size} and "
        f"{pairs} channel pairs; if none has, S.heads fails there"
    )


def independent_rows(
    kernel: np.ndarray, block: AxisBlock, columns: list[tuple[int, ...]]
) -> tuple[list[list[int]], list[list[int]]]:
    """Rows (p.., q.., i, j) and columns of F whose minor is not 0, as many as its rank there.

    A row depends on q - p alone, and as many channel pairs as columns suffice. The rank is taken
    modulo a prime, so a minor that this prime divides may be missed.
    """
    names, lines = [], []
    channels = list(product(range(kernel.shape[-2]), range(kernel.shape[-1])))
    used = [pair for pair in channels if kernel[(..., *pair)].any()][: len(columns)]
    for difference in product(block.rows, repeat=kernel.ndim - 2):
        places = [
            tuple(block.tap(s, c) for s, c in zip(difference, column, strict=True))
            for column in columns
        ]
        pixels = [max(0, -s) for s in difference] + [max(0, s) for s in difference]
        for pair in used:
            names.append([*pixels, *pair])
            lines.append([0 if None in taps else int(kernel[(*taps, *pair)]) for taps in places])
    if not columns or not lines:
        return [], []
    chosen = _pivots(list(zip(*lines, strict=True)))
    return (
        [names[row] for row in chosen],
        [list(columns[column]) for column in _pivots([lines[row] for row in chosen])],
    )


def _pivots(matrix: Sequence[Sequence[int]]) -> list[int]:
    """The columns of a matrix that no earlier ones combine to, modulo the prime."""
    flat = [entry for line in matrix for entry in line]
    if not flat:
        return []
    reduced, rank = flint.nmod_mat(len(matrix), len(matrix[0]), flat, PRIME).rref()
    table = reduced.table()
    return [
        next(column for column, entry in enumerate(table[row]) if int(entry)) for row in range(rank)
    ]


def minor(
    kernel: np.ndarray, patch_size: int, rows: list[list[int]], columns: list[list[int]]
) -> list[list[int]]:
    """The entries W_(Pδ+q-p)[i, j] of F at these rows (p.., q.., i, j) and columns δ."""
    axes = kernel.ndim - 2
    geometry = ConvolutionGeometry.of(kernel.shape[:axes], patch_size)
    places = [
        [geometry.axis_offsets[axis].index(column[axis]) for axis in range(axes)]
        for column in columns
    ]
    entries = []
    for row in rows:
        line = []
        for place in places:
            taps = tuple(
                int(geometry.tap_index[axis][place[axis], row[axis], row[axes + axis]])
                for axis in range(axes)
            )
            line.append(0 if -1 in taps else int(kernel[(*taps, *row[2 * axes :])]))
        entries.append(line)
    return entries


def _bound_body(
    kernel: np.ndarray, patch_size: int, rows: list[list[int]], columns: list[list[int]]
) -> dict[str, Any]:
    determinant = int(flint.fmpz_mat(minor(kernel, patch_size, rows, columns)).det())
    if determinant == 0:
        raise ValueError(f"the minor on rows {rows} and columns {columns} is singular")
    axes = kernel.ndim - 2
    return {
        **kernel_fields(kernel, [patch_size] * axes),
        "rows": rows,
        "columns": columns,
        "determinant": determinant,
        "heads": len(rows),
        "tokens_per_side": [
            max(abs(column[axis]) for column in columns) + 1 for axis in range(axes)
        ],
    }
