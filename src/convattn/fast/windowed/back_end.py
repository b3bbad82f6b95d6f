"""Attention that skips the keys outside a window of shifts, for heads whose weights fall off.

Each head keeps the keys q + δ with low ≤ δ ≤ high on each axis, and its softmax is over the kept
keys that the grid has, ring included. `skipped_weight` bounds what is lost (`window.py`), and
without windows the back end takes those of `choose_windows`, which lose less than one rounding.

The queries are cut into tiles (`tiles.py`). A tile reads the rectangle of keys that its windows
reach, and its weights depend on the tile only through the part of the windows that lies in the
grid: inner tiles share one weight matrix, so that they are one product, heads × queries of a tile
by keys of a tile by images × tiles × channels. No array is as large as queries × keys, unless
a window covers the image.

Letters of the products: b image, i and j row and column of a tile, u and v query in the tile (row,
column), x and y key of the tile, h head.
"""

import math
from functools import reduce
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Num

from convattn.encodings.base import RelativePosition
from convattn.encodings.layer import AttentionLayer
from convattn.fast.backend import BackEnd, Work
from convattn.fast.dropout import keep_scale
from convattn.fast.maps import HeadMaps, arrange_maps, sum_dtype
from convattn.fast.options import DEFAULT_OPTIONS, AttentionOptions, Window
from convattn.fast.products import product
from convattn.fast.windowed.tile_plan import HeadGroup, plan_groups, plane_tiles, tile_work
from convattn.fast.windowed.tiles import Tiles, skewed, tile_keys, visible
from convattn.fast.windowed.window import choose_windows, window_problem
from convattn.operators.arrays import is_traced, known_size, promoted
from convattn.operators.shifts import TokenGrid

_TYPICAL_REACH = 4  # of the windows that `work` prices where none are given


def refusal(layer: AttentionLayer, grid: TokenGrid, options: AttentionOptions) -> str | None:
    """Why the layer has no windows, or what is wrong with those that are given."""
    if grid.ahead is not None:
        return "it has a causal mask, which windows do not know; use shift, chunked or dense"
    if layer.content is not None:
        return (
            "it has content scores, and no window of shifts holds their weight; use "
            "backend='chunked' or 'dense'"
        )
    if not isinstance(layer.encoding, RelativePosition):
        return (
            f"the scores of its {type(layer.encoding).__name__} are not a function of the shift "
            "key - query alone, so that there is no window of shifts; use backend='chunked' or "
            "'dense'"
        )
    if options.windows is not None:
        return window_problem(options.windows, layer.heads, grid)
    if is_traced(layer.encoding):
        return (
            "the parameters of its encoding are traced (jit, grad or vmap), and no windows are "
            "given; pass windows=convattn.fast.choose_windows(layer.encoding, grid), worked out "
            "beforehand on concrete parameters, or take another back end"
        )
    return None


def attend(
    layer: AttentionLayer,
    grid: TokenGrid,
    tokens: Num[Array, "batch *grid features"],
    options: AttentionOptions,
) -> Num[Array, "batch *grid out_features"]:
    """Σ_h g_h Ã_h X W_val,h W_out,h with Ã_h the softmax over the window of head h."""
    encoding = layer.encoding
    if not isinstance(encoding, RelativePosition):
        raise ValueError(refusal(layer, grid, options))
    windows, plane = _on_a_plane(options.windows or choose_windows(encoding, grid), grid)
    batch, features = tokens.shape[0], tokens.shape[-1]
    dtype = sum_dtype(layer, tokens)
    groups = plan_groups(windows, plane, known_size(batch), _mixed_width(layer, features))
    mixing = sum(len(group.heads) * group.products_per_query for group in groups) / layer.heads
    maps = arrange_maps(layer, grid, known_size(batch) * math.prod(grid.queries), mixing, dtype)
    if not jnp.issubdtype(tokens.dtype, jnp.inexact):
        tokens = tokens.astype(dtype)
    tokens = tokens.reshape(batch, *plane.queries, features)
    head_tiles = (HeadTiles.make(encoding, grid, plane, group, maps) for group in groups)
    result = reduce(jnp.add, (_attend_group(tiles, tokens, options, dtype) for tiles in head_tiles))
    return result.reshape(batch, *grid.queries, result.shape[-1])


def work(
    layer: AttentionLayer,
    grid: TokenGrid,
    batch: int,
    features: int,
    options: AttentionOptions = DEFAULT_OPTIONS,
) -> Work:
    """That of the windows, or of nine shifts on each axis, and of the maps."""
    typical = ((-_TYPICAL_REACH, _TYPICAL_REACH),) * len(grid.queries)
    windows, plane = _on_a_plane(options.windows or (typical,) * layer.heads, grid)
    width = _mixed_width(layer, features)
    tiles = [
        tile_work(plane, group.reach, len(group.heads), batch, width, group.sizes)
        for group in plan_groups(windows, plane, batch, width)
    ]
    total = Work(*(sum(numbers) for numbers in zip(*tiles, strict=True)))
    tokens = batch * math.prod(grid.queries)
    maps = [array.size for array in (layer.value, layer.output) if array is not None]
    return total._replace(products=total.products + float(tokens * sum(maps)))


def _mixed_width(layer: AttentionLayer, features: int) -> int:
    """How many channels of each head are mixed, about: those of its values."""
    return features if layer.value is None else min(features, layer.value.shape[2])


def _on_a_plane(
    windows: tuple[Window, ...], grid: TokenGrid
) -> tuple[tuple[Window, ...], TokenGrid]:
    """Windows without shifts that never occur, and a sequence as an image of one row.

    >>> _on_a_plane((((-9, 1),),), TokenGrid((4,), ((1, 0),)))
    ((((0, 0), (-4, 1)),), TokenGrid(queries=(1, 4), ring=((0, 0), (1, 0))))
    """
    missing = 2 - len(grid.queries)
    plane = TokenGrid((1,) * missing + grid.queries, ((0, 0),) * missing + grid.ring)
    clipped = tuple(
        ((0, 0),) * missing
        + tuple(
            (max(int(low), shifts.start), min(int(high), shifts.stop - 1))
            for (low, high), shifts in zip(window, grid.shift_ranges, strict=True)
        )
        for window in windows
    )
    return clipped, plane


class HeadTiles(NamedTuple):
    """What the tiles of a group of heads share.

    Attributes:
        plane, group: The grid, and the heads.
        all_heads: How many heads the layer has.
        scores: Of the shifts of `group.reach`, -∞ outside the window of each head.
        maps: Of these heads.
    """

    plane: TokenGrid
    group: HeadGroup
    all_heads: int
    scores: Float[Array, "heads row_shifts column_shifts"]
    maps: HeadMaps

    @classmethod
    def make(
        cls,
        encoding: RelativePosition,
        grid: TokenGrid,
        plane: TokenGrid,
        group: HeadGroup,
        maps: HeadMaps,
    ) -> "HeadTiles":
        """From all heads of an encoding, and all their maps."""
        heads = encoding.heads
        if group.heads != tuple(range(heads)):
            chosen = np.array(group.heads)
            encoding = encoding.take_heads(group.heads)
            maps = HeadMaps(*(None if array is None else array[chosen] for array in maps))
        axes = [np.arange(low, high + 1) for low, high in group.reach]
        shifts = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
        own = []
        for window in group.windows:
            low, high = np.array(window).T
            own.append(((shifts >= low) & (shifts <= high)).all(axis=-1))
        scores = encoding.shift_scores(shifts[:, -len(grid.queries) :], grid.number_of_keys)
        # Softmax in at least float32, like `attention_weights`.
        scores = scores.astype(promoted(scores.dtype, jnp.float32))
        scores = jnp.where(np.stack(own), scores, -jnp.inf)
        sides = (len(axis) for axis in axes)
        return cls(plane, group, heads, scores.reshape(-1, *sides), maps)


def _attend_group(
    tiles: HeadTiles,
    tokens: Num[Array, "batch rows columns features"],
    options: AttentionOptions,
    dtype: np.dtype,
) -> Num[Array, "batch rows columns out_features"]:
    """What some heads add to the result."""

    def multiply(formula: str, *operands: Array) -> Array:
        return product(formula, *operands, dtype=dtype, precision=options.precision)

    maps, plane = tiles.maps, tiles.plane
    values, letters = tokens, "f"
    if maps.before is not None:
        values, letters = multiply("brcd,hdf->brchf", tokens, maps.before), "hf"
    rows, columns = plane_tiles(plane, tiles.group.reach, tiles.group.sizes)
    bands = []
    for down in rows:
        band = tile_keys(values, 1, down)
        blocks = []
        for across in columns:
            weights, indices = _tile_weights(tiles, down, across), "ijhvyux"
            if options.dropout is not None:
                positions = _tile_pairs(plane, down, across)
                scale = keep_scale(
                    options.dropout, tokens.shape[0], tiles.all_heads, *positions, weights.dtype
                )
                scale = jnp.moveaxis(scale[:, np.array(tiles.group.heads)], 1, 3)
                weights, indices = weights[None] * scale, "bijhvyux"
            else:
                alike = tuple(
                    axis for axis, axis_tiles in enumerate((down, across)) if axis_tiles.alike
                )
                weights = weights.squeeze(alike)
                indices = "".join("ij"[axis] for axis in (0, 1) if axis not in alike) + "hvyux"
            keys = tile_keys(band, 3, across)
            if maps.after is None:
                block = multiply(f"{indices},bixjy{letters}->biujvf", weights, keys)
            else:
                block = multiply(f"{indices},bixjy{letters}->biujvhf", weights, keys)
                block = multiply("biujvhf,hfo->biujvo", block, maps.after)
            shape = down.number * down.size, across.number * across.size
            blocks.append(block.reshape(block.shape[0], *shape, block.shape[-1]))
        bands.append(jnp.concatenate(blocks, axis=2))
    height, breadth = plane.queries
    return jnp.concatenate(bands, axis=1)[:, :height, :breadth]


def _tile_weights(
    tiles: HeadTiles, down: Tiles, across: Tiles
) -> Float[Array, "row_tiles column_tiles heads columns column_keys rows row_keys"]:
    """The weights of a tile's queries on the keys that it reads, times gains that are in no map.

    Where all tiles of an axis are alike there is one of them.
    """
    reach, plane = tiles.group.reach, tiles.plane
    (top, _), (left, _) = reach
    rows = visible(down, plane.queries[0], plane.ring[0], reach[0])[:, None, None, :, :, None, None]
    columns = visible(across, plane.queries[1], plane.ring[1], reach[1])[None, :, None, None, None]
    # Two selections, so that no mask of all pairs is worked out while the program is compiled.
    scores = jnp.where(columns, tiles.scores[:, None, :, None, :], -jnp.inf)
    weights = jax.nn.softmax(jnp.where(rows, scores, -jnp.inf), axis=(4, 6))
    if tiles.maps.gains is not None:
        gains = tiles.maps.gains.astype(weights.dtype)
        weights = weights * gains[:, None, None, None, None]
    weights = skewed(weights)  # row tile, column tile, head, row, row shift, column, column key
    weights = skewed(jnp.moveaxis(weights, (3, 4), (5, 6)))
    row_keys = slice(down.first - top, down.first - top + down.keys)
    column_keys = slice(across.first - left, across.first - left + across.keys)
    return weights[:, :, :, :, column_keys, :, row_keys]


def _tile_pairs(plane: TokenGrid, down: Tiles, across: Tiles) -> tuple[Array, Array]:
    """The flat positions of queries `[i, j, v, 1, u, 1]` and of keys `[i, j, 1, y, 1, x]`."""
    indices = []
    for tiles in (down, across):
        first = tiles.start + tiles.size * np.arange(tiles.number)[:, None]
        indices.append((first + np.arange(tiles.size), first + tiles.first + np.arange(tiles.keys)))
    (rows, row_keys), (columns, column_keys) = indices
    queries = rows[:, None, None, None, :, None] * plane.queries[1]
    queries = queries + columns[None, :, :, None, None, None]
    keys = (row_keys + plane.ring[0][0])[:, None, None, None, None, :] * plane.keys[1]
    keys = keys + (column_keys + plane.ring[1][0])[None, :, None, :, None, None]
    return jnp.asarray(queries), jnp.asarray(keys)


WINDOWED = BackEnd("windowed", refusal, attend, work)
