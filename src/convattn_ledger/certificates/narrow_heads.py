"""Certificates of S.width: heads of dimension d_H that suffice for every kernel of a size."""

from fractions import Fraction
from typing import Any

import numpy as np

from convattn.constructions.geometry import ConvolutionGeometry
from convattn.constructions.narrow_heads import NONE, exact_layout, limit_layout


def narrow_heads_body(
    kernel_size: int,
    patch_size: int,
    in_channels: int,
    out_channels: int,
    head_dim: int,
    regime: str,
    *,
    axes: int = 2,
) -> dict[str, Any]:
    """The heads of the library: their rows of attention and their coordinates.

    Args:
        regime: `"limit"`, where the weights 1 stand for ε, or `"finite"`.

    Source: S.width of this project's ledger.

    >>> body = narrow_heads_body(3, 16, 3, 3, 64, "finite")
    >>> body["count"], body["heads"][0]["weights"][:5]
    (28, ['1', '0', '0', '0', '0'])
    """
    geometry = ConvolutionGeometry.of((kernel_size,) * axes, patch_size)
    side = 2 if out_channels < in_channels else 1
    reads = [(index >= 0).any(axis=side) for index in geometry.tap_index]  # [offset, pixel]
    pixels = reads[0]
    for axis in reads[1:]:
        pixels = np.kron(pixels, axis)
    supports = np.repeat(pixels, min(in_channels, out_channels), axis=1).astype(bool)
    centre = geometry.offsets.index((0,) * axes)
    heads = (
        exact_layout(supports, centre, head_dim)
        if regime == "finite"
        else limit_layout(supports, centre, head_dim, 1.0)
    )
    weights = heads.weights.copy()
    if regime == "limit":
        weights[:, centre] = 0
    return {
        "kernel_size": [kernel_size] * axes,
        "patch_size": [patch_size] * axes,
        "in_channels": in_channels,
        "out_channels": out_channels,
        "head_dimension": head_dim,
        "regime": regime,
        "count": len(weights),
        "heads": [
            {
                "weights": [str(Fraction(weight)) for weight in row],
                "coordinates": [int(j) for j in coordinates if j != NONE],
            }
            for row, coordinates in zip(weights, heads.coordinates, strict=True)
        ],
    }
