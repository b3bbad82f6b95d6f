"""Certificates of S.headdim: heads of dimension d_H that a kernel takes, and that suffice."""

from itertools import product
from math import prod
from random import Random
from typing import Any

import flint
import numpy as np

from convattn.bounds.head_width import map_widths
from convattn.bounds.residue_blocks import axis_blocks
from convattn_ledger.certificates.lower_bound import independent_rows, minor


def triangular_kernel(
    kernel_size: int, in_channels: int, out_channels: int, *, axes: int = 2
) -> np.ndarray:
    """W_0 is the unit matrix on the first channels; off it, pairs (i, j) with i < j are drawn.

    Where there are more channels on one side than on the other, those beyond the square are free.

    >>> triangular_kernel(3, 2, 2)[1, 1].tolist()[1]
    [0, 1]
    """
    draws = Random("a triangular kernel")
    kernel = np.zeros((*(kernel_size,) * axes, in_channels, out_channels), int)
    square = min(in_channels, out_channels)
    for i, j in product(range(in_channels), range(out_channels)):
        if i < j or i >= square:
            for tap in product(range(kernel_size), repeat=axes):
                kernel[(*tap, i, j)] = draws.randrange(1, 6)
    centre = ((kernel_size - 1) // 2,) * axes
    for i in range(square):
        kernel[(*centre, i, i)] = 1
    return kernel


def head_dimension_body(
    kernel_size: int,
    patch_size: int,
    in_channels: int,
    out_channels: int,
    head_dim: int,
    regime: str,
    *,
    axes: int = 2,
) -> dict[str, Any]:
    """A triangular kernel, a minor of its offsets but 0, and the two numbers of heads.

    Args:
        regime: `"limit"` or `"finite"`.

    Source: S.headdim of this project's ledger.

    >>> body = head_dimension_body(3, 16, 3, 3, 64, "limit")
    >>> body["necessary"], body["sufficient"]
    (20, 20)
    """
    kernel = triangular_kernel(kernel_size, in_channels, out_channels, axes=axes)
    block = axis_blocks(kernel_size, patch_size, 1)[0]
    offsets = [offset for offset in product(block.columns, repeat=axes) if any(offset)]
    rows, columns = independent_rows(kernel, block, offsets)
    if not rows:
        raise ValueError(
            f"in_channels={in_channels} and out_channels={out_channels} leave the kernel without "
            "an entry off the diagonal, or it reads no other token; take more channels or a "
            "larger kernel"
        )

    def parts(width: int) -> int:
        return -(-width // head_dim)

    full = patch_size**axes * min(in_channels, out_channels)
    sizes = ((kernel_size,) * axes, (patch_size,) * axes, (1,) * axes)
    tokens = [1 + max(abs(column[axis]) for column in columns) for axis in range(axes)]
    necessary = len(rows) + parts(full)
    sufficient = sum(map(parts, map_widths(*sizes, in_channels, out_channels)))
    if regime == "finite":
        necessary, sufficient = max(necessary + 1, parts(2 * full)), sufficient + parts(full)
        tokens[0] = max(tokens[0], block.columns[-1] + 2)
    return {
        "kernel_size": list(sizes[0]),
        "patch_size": list(sizes[1]),
        "in_channels": in_channels,
        "out_channels": out_channels,
        "kernel": kernel.reshape(prod(kernel.shape)).tolist(),
        "head_dimension": head_dim,
        "regime": regime,
        "rows": rows,
        "columns": columns,
        "determinant": int(flint.fmpz_mat(minor(kernel, patch_size, rows, columns)).det()),
        "tokens_per_side": tokens,
        "necessary": necessary,
        "sufficient": sufficient,
    }
