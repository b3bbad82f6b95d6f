"""Layers whose attention depends on positions alone: the same for every image, and never stored.

Of scores that depend on the shift of the key alone one table is enough, from which the row of any
query is read; so a layer of a million pairs takes a few kilobytes. Others are computed whole.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float

from convattn.diagnosis.layers import LayerAttention, layer_attention
from convattn.encodings.base import RelativePosition
from convattn.encodings.layer import AttentionLayer
from convattn.operators.shifts import TokenGrid
from convattn_lab.analysis.snapshots import query_attention

MAX_WEIGHTS = 12_000_000  # weights of a layer that are measured at once, in float64


@dataclass(frozen=True)
class PositionalLayer:
    """A layer without content on images of one size.

    Attributes:
        name: What it is called.
        layer: What attends.
        image_size: Of what it is given, in pixels.
    """

    name: str
    layer: AttentionLayer
    image_size: tuple[int, int]

    @property
    def grid(self) -> tuple[int, int]:
        """The tokens that ask, without a ring that is filled."""
        rows, columns = self.layer.token_grid(self.image_size).queries
        if self.layer.padding is not None:
            sides = [axis.queries for axis in self.layer.filled_axes(self.image_size)]
            rows, columns = (side[-1] + 1 - side.start for side in sides)
        return rows, columns

    def reader(self) -> Any:
        """From a query to its row: `[heads, rows, columns]` of the grid, the ring left out."""
        grid = self.layer.token_grid(self.image_size)
        irregular = self.layer.padding is not None or self.layer.register is not None
        if irregular or not isinstance(self.layer.encoding, RelativePosition):
            return row_reader(self.measured(self.image_size))
        table = _shift_table(self.layer.encoding, grid)
        (top, _), (left, _) = grid.ring
        rows, columns = self.grid

        def row(query: tuple[int, int]) -> Float[np.ndarray, "heads rows columns"]:
            attention = query_attention(table, query, (rows, columns))
            return attention[:, top : top + rows, left : left + columns]

        return row

    def measured(self, size: tuple[int, int] | None = None) -> LayerAttention:
        """All attention, at a size of which that is not too much to be held."""
        size = size or self.measured_size()
        return replace(layer_attention(self.layer, None, size), name=self.name)

    def measured_size(self) -> tuple[int, int]:
        """The images' size, or so much of it that at most `MAX_WEIGHTS` weights are formed."""
        size, patch = list(self.image_size), self.layer.patch_size
        while True:
            grid = self.layer.token_grid(size)
            weights = self.layer.heads * math.prod(grid.queries) * grid.number_of_keys
            axis = int(np.argmax(size))
            if weights <= MAX_WEIGHTS or size[axis] <= 8 * patch[axis]:
                return size[0], size[1]
            size[axis] -= patch[axis]


def _shift_table(
    encoding: RelativePosition, grid: TokenGrid
) -> Float[np.ndarray, "heads row_shifts column_shifts"]:
    """The scores of all shifts of a grid, as the snapshots of runs hold them."""
    scores = np.asarray(encoding.shift_scores(grid.shifts, grid.number_of_keys), np.float64)
    return scores.reshape(len(scores), *map(len, grid.shift_ranges))


def row_reader(layer: LayerAttention, image: int = 0) -> Any:
    """From a query to its row in one image of a layer whose attention is known."""
    rows, columns = layer.grid
    pairs = layer.attention[image][:, -rows * columns :, -rows * columns :]

    def row(query: tuple[int, int]) -> Float[np.ndarray, "heads rows columns"]:
        attention = pairs[:, query[0] * columns + query[1]].astype(np.float64)
        return attention.reshape(-1, rows, columns)

    return row
