"""One axis cut into tiles of queries, each with the keys that its queries' windows reach.

Queries q = start, …, start + size - 1 of a tile reach the keys start + low, …, start + size - 1 +
high. A weight matrix of such a tile has the weights of query start + u at columns u, …, u + w - 1,
w = high - low + 1: it is the table of weights by shift, *skewed*. Tiles whose windows lie in the
grid all have the same matrix; those at the border, before and after these, have one each.
"""

from itertools import pairwise
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Bool, Shaped


class Tiles(NamedTuple):
    """Neighbouring tiles of one axis.

    Attributes:
        start: The first query of the first tile.
        size: Queries of each tile; the last may reach beyond the image.
        number: How many tiles.
        first, keys: A tile reads `keys` keys, from its first query + `first` on. Of a tile that
            stands alone, only keys of the image are counted: those of the ring are zero tokens.
        alike: Whether all tiles have the same weights.
    """

    start: int
    size: int
    number: int
    first: int
    keys: int
    alike: bool


def cut_tiles(
    queries: int,
    ring: tuple[int, int],
    window: tuple[int, int],
    size: int,
    *,
    together: bool = False,
) -> list[Tiles]:
    """Cut an axis into tiles of `size` queries: the first border, the inner ones, the last border.

    Args:
        together: Leave all tiles together.

    >>> for tiles in cut_tiles(11, (0, 0), (-1, 1), 2): print(tiles)
    Tiles(start=0, size=2, number=1, first=0, keys=3, alike=True)
    Tiles(start=2, size=2, number=4, first=-1, keys=4, alike=True)
    Tiles(start=10, size=2, number=1, first=-1, keys=2, alike=True)
    """
    low, high = window
    starts = range(0, queries, size)
    inside = [
        start + low >= -ring[0] and start + size - 1 + high < queries + ring[1] for start in starts
    ]
    before = inside.index(True) if any(inside) else len(inside)
    ends = [0, len(inside)] if together else [0, before, before + sum(inside), len(inside)]
    tiles = []
    for begin, end in pairwise(ends):
        if begin == end:
            continue
        start, number = begin * size, end - begin
        first, stop = start + low, start + size + high
        if number == 1:
            first = min(max(first, 0), queries)
            stop = max(min(stop, queries), first)
        alike = number == 1 or all(inside[begin:end])
        tiles.append(Tiles(start, size, number, first - start, stop - first, alike))
    return tiles


def visible(
    tiles: Tiles, queries: int, ring: tuple[int, int], window: tuple[int, int]
) -> Bool[np.ndarray, "number size shifts"]:
    """For each query and each shift of the window, whether the key is in the grid.

    Of tiles that are alike, the first stands for all. Queries beyond the image, whose results are
    dropped, see what the last query sees, so that they see something.

    >>> visible(Tiles(8, 2, 1, -1, 2, True), 9, (0, 0), (-1, 1)).tolist()
    [[[True, True, False], [True, True, False]]]
    """
    number = 1 if tiles.alike else tiles.number
    query = tiles.start + np.arange(number * tiles.size).reshape(number, tiles.size, 1)
    key = np.minimum(query, queries - 1) + np.arange(window[0], window[1] + 1)
    return (key >= -ring[0]) & (key < queries + ring[1])


def skewed(weights: Shaped[Array, "*others size shifts"]) -> Shaped[Array, "*others size keys"]:
    """Move row u by u columns to the right: from shifts to the size + shifts - 1 keys of a tile.

    The rows are written one after the other, each with `size` zeros behind it, and read again in
    rows that are one entry shorter.

    >>> skewed(jnp.array([[1, 2], [3, 4], [5, 6]])).tolist()
    [[1, 2, 0, 0], [0, 3, 4, 0], [0, 0, 5, 6]]
    """
    *others, size, shifts = weights.shape
    longer = jnp.pad(weights, [(0, 0)] * (weights.ndim - 1) + [(0, size)])
    flat = longer.reshape(*others, size * (size + shifts))
    return flat[..., : size * (size + shifts - 1)].reshape(*others, size, size + shifts - 1)


def tile_keys(tokens: Shaped[Array, "..."], axis: int, tiles: Tiles) -> Shaped[Array, "..."]:
    """The keys of every tile: `axis` becomes the two axes [number, keys], zeros beyond the image.

    The tokens are cut into blocks of `size`, and a tile is some neighbouring blocks.

    >>> tile_keys(jnp.arange(1, 6), 0, Tiles(0, 2, 2, -1, 4, True)).tolist()
    [[0, 1, 2, 3], [2, 3, 4, 5]]
    """
    length = tokens.shape[axis]
    step = tiles.size if tiles.number > 1 else tiles.keys
    repeats = -(-tiles.keys // tiles.size) if tiles.number > 1 else 1
    first = tiles.start + tiles.first
    stop = first + (tiles.number + repeats - 1) * step
    lower = min(max(first, 0), length)
    upper = max(min(stop, length), lower)
    padded = lax.slice_in_dim(tokens, lower, upper, axis=axis)
    widths = [(0, 0)] * tokens.ndim
    zeros = min(max(-first, 0), stop - first)
    widths[axis] = (zeros, stop - first - zeros - (upper - lower))
    padded = jnp.pad(padded, widths)
    before, after = tokens.shape[:axis], tokens.shape[axis + 1 :]
    blocks = padded.reshape(*before, tiles.number + repeats - 1, step, *after)
    slices = [
        lax.slice_in_dim(blocks, repeat, repeat + tiles.number, axis=axis)
        for repeat in range(repeats)
    ]
    return lax.slice_in_dim(jnp.concatenate(slices, axis + 1), 0, tiles.keys, axis=axis + 1)
