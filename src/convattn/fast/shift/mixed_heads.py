"""What every head sees, Σ_δ a_hδ X_(q+δ) + c_h Σ_k X_k: in the box of queries that see every
offset, and on the border, where each query has its own a and c.

Tokens are `[batch, *grid, 1 or heads, features]`: all heads read the same, or each its own.
"""

import math

import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.core import max_dim, min_dim
from jaxtyping import Float, Int, Num

from convattn.fast.products import product
from convattn.fast.shift.shifted_products import Box, shifted
from convattn.operators.shifts import Queries, Shift, TokenGrid, axis_queries, count


def all_queries(grid: TokenGrid) -> tuple[Queries, ...]:
    """Every query, on each axis.

    >>> all_queries(TokenGrid((5, 4), ((0, 0), (1, 1))))
    (range(0, 5), range(0, 4))
    """
    return tuple(axis_queries(0, size) for size in grid.queries)


def interior(
    grid: TokenGrid, offsets: tuple[Shift, ...], queries: tuple[Queries, ...] | None = None
) -> Box:
    """For each axis those of the queries that see every offset.

    Args:
        queries: Those of each axis to compute; None for all.

    >>> interior(TokenGrid((5, 4), ((0, 0), (1, 1))), ((-1, -1), (1, 1)))
    (range(1, 4), range(0, 4))
    >>> interior(TokenGrid((8,), ((0, 0),)), ((-1,), (1,)), (range(0, 8, 2),))
    (range(2, 7, 2),)
    """
    box = []
    sides = zip(grid.queries, grid.ring, queries or all_queries(grid), strict=True)
    for axis, (size, (before, after), side) in enumerate(sides):
        reach = [offset[axis] for offset in offsets] or [0]
        first = max(0, -min(reach) - before)
        start = side.start + max(0, -(-(first - side.start) // side.step)) * side.step
        stop = min_dim(side.stop, min_dim(size, size + after - max(reach)))
        box.append(axis_queries(start, max_dim(start, stop), side.step))
    return tuple(box)


def border_queries(queries: tuple[range, ...], box: Box) -> Int[np.ndarray, "border axes"]:
    """The queries outside the box, row-major.

    >>> border_queries((range(4),), (range(1, 3),)).tolist()
    [[0], [3]]
    >>> border_queries((range(0, 8, 2),), (range(2, 7, 2),)).tolist()
    [[0]]
    """
    mesh = np.meshgrid(*(np.array(side, int) for side in queries), indexing="ij")
    positions = np.stack([axis.reshape(-1) for axis in mesh], axis=-1)
    starts, stops = np.array([(side.start, side.stop) for side in box]).T
    return positions[~((positions >= starts) & (positions < stops)).all(axis=-1)]


def mixed_box(
    tokens: Num[Array, "batch *grid readers features"],
    at_offsets: Float[Array, "heads offsets"],
    offsets: tuple[Shift, ...],
    box: Box,
    dtype: np.dtype,
    precision: lax.PrecisionLike,
) -> Num[Array, "batch queries heads features"]:
    """Σ_δ a_hδ X_(q+δ) for the queries of the box, row-major; zero without offsets."""
    pieces = [shifted(tokens, offset, box) for offset in offsets]
    batch, readers, features = tokens.shape[0], tokens.shape[-2], tokens.shape[-1]
    if not offsets:
        queries = math.prod(map(count, box))
        return jnp.zeros((batch, queries, len(at_offsets), features), dtype)
    if readers == 1:
        stacked = jnp.stack([piece.reshape(-1, features) for piece in pieces], axis=1)
        mixed = product("ht,ntd->nhd", at_offsets, stacked, dtype=dtype, precision=precision)
        return mixed.reshape(batch, -1, *mixed.shape[1:])
    total: Array | float = 0.0
    for index, piece in enumerate(pieces):
        share = jnp.repeat(at_offsets[:, index], features)[None, None]
        total = total + piece.reshape(batch, -1, readers * features).astype(dtype) * share
    return jnp.asarray(total).reshape(batch, -1, readers, features)


def mixed_border(
    tokens: Num[Array, "batch *grid readers features"],
    at_offsets: Float[Array, "heads offsets border"],
    offsets: tuple[Shift, ...],
    queries: Int[np.ndarray, "border axes"],
    dtype: np.dtype,
    precision: lax.PrecisionLike,
) -> Num[Array, "batch border heads features"]:
    """Σ_δ a_hδ(q) X_(q+δ) for the given queries; at least one offset.

    What is no token (the ring's keys are zero) is read at the nearest token and weighted by zero.
    """
    grid = tokens.shape[1:-2]
    keys = queries[None] + np.array(offsets)[:, None]
    inside = ((keys >= 0) & (keys < np.array(grid))).all(axis=-1)
    nearest = np.clip(keys, 0, np.array(grid) - 1)
    index = np.ravel_multi_index(tuple(np.moveaxis(nearest, -1, 0)), grid)
    rows = tokens.reshape(tokens.shape[0], -1, *tokens.shape[-2:])
    gathered = rows[:, index]
    shares = jnp.where(inside, at_offsets, 0)
    if gathered.shape[-2] == 1:
        gathered = gathered[..., 0, :]
        formula = "htn,btnd->bnhd"
    else:
        formula = "htn,btnhd->bnhd"
    return product(formula, shares, gathered, dtype=dtype, precision=precision)


def presence(
    grid: TokenGrid, offsets: tuple[Shift, ...], queries: Int[np.ndarray, "border axes"]
) -> tuple[np.ndarray, np.ndarray]:
    """Which offsets are keys (ring included): the patterns that occur, and the one of each query.

    >>> queries = np.array([[0], [1], [2]])
    >>> patterns, which = presence(TokenGrid((3,), ((0, 0),)), ((-1,), (1,)), queries)
    >>> patterns[:, which].astype(int).tolist()
    [[0, 1, 1], [1, 1, 0]]
    """
    lowest = -np.array([before for before, _ in grid.ring])
    keys = queries[None] + np.array(offsets).reshape(-1, 1, queries.shape[1])
    present = ((keys >= lowest) & (keys < lowest + np.array(grid.keys))).all(axis=-1)
    patterns, which = np.unique(present, axis=1, return_inverse=True)
    return patterns, which.reshape(-1)


def framed(
    inside: Num[Array, "batch *box features"],
    edge: Num[Array, "batch border features"],
    border: Int[np.ndarray, "border axes"],
    box: Box,
    queries: tuple[range, ...],
) -> Num[Array, "batch *queries features"]:
    """The box and the queries around it in one array."""
    around = []
    for axis_range, side in zip(queries, box, strict=True):
        before = (side.start - axis_range.start) // side.step
        around.append((before, len(axis_range) - before - len(side)))
    padded = jnp.pad(inside, [(0, 0), *around, (0, 0)])
    starts = np.array([queries.start for queries in queries])
    indices = ((border - starts) // np.array([side.step for side in box])).T
    return padded.at[(slice(None), *indices)].set(edge, unique_indices=True)
