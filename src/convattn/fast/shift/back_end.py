"""Heads that look at a few shifts: slices and a sum, never a row of weights.

Where the scores are a table over a few offsets and one common score elsewhere, head h computes
A_q X = Σ_δ a_hδ X_(q+δ) + c_h Σ_k X_k, `offset_weights` says from what. N tokens, T offsets and H
heads take no more than O(N·T·H) weights, and less where every offset is a key of every query: then
a and c do not depend on the query. Such queries fill a box, all of them if the ring is as wide as
the offsets reach. In the box, with W_h the maps of the heads, there are three ways:

- *taps*: K_δ = Σ_h a_hδ W_h first, then Σ_δ X_(q+δ) K_δ: a convolution, and once for each image
  the product Σ_k X_k · Σ_h c_h W_h;
- *heads*: U_h = Σ_δ a_hδ X_(q+δ) + c_h Σ_k X_k first, then Σ_h U_h W_h: where there are fewer
  heads than offsets, or fewer tokens than it takes to repay reading all W_h;
- *apart*: the value map first, then as before on head_dim channels, then the output map.

Outside the box, which is a border as wide as the offsets reach, each query has its own a and c, and
reads its T tokens one by one (the first way is not open there).

Queries that a stride or a filled ring leaves out are not computed, but for the value map of
*apart*.

*Measured* (two CPU cores, float32): docs/performance.md. What it takes beyond the convolution is
the mean: a sum over all tokens and one addition to all of them, forward and backward. Elementwise
sums in place of the products that mix slices made *heads* ten times slower, and weights with a
leading axis for the heads in place of matrices made the gradients of *taps* up to twenty times
slower.
"""

import math

import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Num

from convattn.encodings.base import OffsetTable, PositionalEncoding
from convattn.encodings.layer import AttentionLayer
from convattn.fast.backend import BackEnd, Work
from convattn.fast.maps import sum_dtype
from convattn.fast.options import DEFAULT_OPTIONS, AttentionOptions
from convattn.fast.products import is_highest, product
from convattn.fast.shift.mixed_heads import (
    all_queries,
    border_queries,
    framed,
    interior,
    mixed_border,
    mixed_box,
    presence,
)
from convattn.fast.shift.offset_weights import (
    OffsetWeights,
    offset_weights,
    read_offsets,
)
from convattn.fast.shift.order import MIXED, cheapest_way, costs
from convattn.fast.shift.shifted_products import shifted, shifted_products
from convattn.operators.arrays import known_size
from convattn.operators.shifts import Queries, TokenGrid, count, symbolic_axes

_SYMBOLIC_SIDE = 32  # the tokens that an axis of symbolic size is expected to have


def refusal(layer: AttentionLayer, grid: TokenGrid, options: AttentionOptions) -> str | None:
    """Why it cannot serve: scores that are not a sparse offset table, content, dropout.

    >>> import convattn as ca
    >>> layer = ca.conv_to_attention(jnp.ones((3, 1, 1)), encoding="quadratic")
    >>> print(refusal(layer, TokenGrid((4,), layer.ring), AttentionOptions())[-52:])
    use separable or windowed where they serve, or dense
    """
    encoding = layer.encoding
    if not isinstance(encoding, OffsetTable):
        return _no_table(encoding)
    if layer.content is not None:
        return "the layer has content scores, which differ at every key; use chunked or dense"
    if options.dropout is not None:
        return (
            "dropout draws a number for each weight, and the weights are never formed; use dense "
            "or chunked, or dropout_rate=0"
        )
    if not encoding.offsets or len(encoding.offsets[0]) != len(grid.queries):
        return (
            f"its offsets {encoding.offsets[:1]} do not have the {len(grid.queries)} axes of the "
            "grid; build the encoding for images of that rank"
        )
    queries = options.queries or all_queries(grid)
    is_inside = interior(grid, encoding.offsets, queries) == queries
    furthest = max(offset[0] for offset in encoding.offsets)
    if grid.ahead is not None and not (is_inside and furthest <= grid.ahead):
        return "queries under its causal mask do not see every offset; use chunked or dense"
    if symbolic_axes(grid.queries) and not is_inside:
        return (
            f"queries at the border, which do not see every offset with ring={grid.ring}, have "
            "weights of their own; leave ring out"
        )
    return None


def _no_table(encoding: PositionalEncoding) -> str:
    """The refusal of an encoding."""
    return (
        f"the scores of {type(encoding).__name__} are not a sparse offset table with one score "
        "elsewhere; use separable or windowed where they serve, or dense"
    )


def offset_encoding(layer: AttentionLayer) -> OffsetTable:
    """The encoding of a layer that is served."""
    if not isinstance(layer.encoding, OffsetTable):
        raise ValueError(_no_table(layer.encoding))
    return layer.encoding


def attend(
    layer: AttentionLayer,
    grid: TokenGrid,
    tokens: Num[Array, "batch *grid features"],
    options: AttentionOptions,
) -> Num[Array, "batch *queries out_features"]:
    """Σ_h g_h (Σ_δ a_hδ X_(q+δ) + c_h Σ_k X_k) W_val,h W_out,h, in the cheapest way."""
    dtype, precision = sum_dtype(layer, tokens), options.precision
    if is_highest(precision) or not jnp.issubdtype(tokens.dtype, jnp.inexact):
        tokens = tokens.astype(dtype)
    batch = tokens.shape[0]
    encoding = offset_encoding(layer)
    offsets = read_offsets(encoding, grid)
    box = interior(grid, offsets, options.queries)
    queries = options.queries or all_queries(grid)
    sizes = tuple(map(count, queries))
    known = known_size(batch) * math.prod(known_size(size, _SYMBOLIC_SIDE) for size in sizes)
    way = cheapest_way(layer, len(offsets), known, tokens.shape[-1])
    tokens, maps = read_values(layer, tokens, way, dtype, precision)
    if grid.ahead is None:
        total = sum_of_tokens(tokens, len(box), dtype)[:, None]
    else:  # of the keys that each query sees
        total = shifted(jnp.cumsum(tokens, axis=1, dtype=dtype), (grid.ahead,), box)

    def mapped(attended: Array, everywhere: Array) -> Array:
        """Σ_h (U_h + c_h Σ_k X_k) W_h for U `[batch, queries, heads, width]`."""
        mixed = attended + everywhere[None, ..., None] * total
        if maps is None:
            return mixed[:, :, 0]
        rows, below = mixed.reshape(-1, math.prod(mixed.shape[2:])), maps.reshape(-1, maps.shape[2])
        result = product("nk,ko->no", rows, below, dtype=dtype, precision=precision)
        return result.reshape(*mixed.shape[:2], -1)

    def weights(present: np.ndarray, positions: Queries | None = None) -> OffsetWeights:
        offset_table = offset_weights(encoding, grid, offsets, present, positions)
        if maps is None:  # the heads differ in their weights alone
            offset_table = OffsetWeights(
                *(array.sum(axis=0, keepdims=True) for array in offset_table)
            )
        return OffsetWeights(*(array.astype(dtype) for array in offset_table))

    edge: Array | None = None
    if box != queries:
        border = border_queries(queries, box)
        patterns, which = presence(grid, offsets, border)
        weights_at_border = weights(patterns)
        shares, everywhere = (
            weights_at_border.at_offsets[..., which],
            weights_at_border.everywhere[:, which].T,
        )
        edge = mapped(mixed_border(tokens, shares, offsets, border, dtype, precision), everywhere)
        if len(border) == math.prod(sizes):
            return edge.reshape(batch, *sizes, -1)
    weights_inside = weights(np.ones((len(offsets), 1), bool), positions=box[0])
    shares, everywhere = weights_inside.at_offsets[..., 0], weights_inside.everywhere.T
    if grid.ahead is not None:
        slices = jnp.stack([shifted(tokens, offset, box) for offset in offsets], axis=1)
        formula = "htn,btnxd->bnhd" if slices.shape[-2] == 1 else "htn,btnhd->bnhd"
        attended = product(
            formula, weights_inside.at_offsets, slices, dtype=dtype, precision=precision
        )
        inside = mapped(attended, everywhere)
    elif way == "taps" and maps is not None and offsets:
        rows = maps.reshape(maps.shape[0], -1)
        taps = product("th,hk->tk", shares.T, rows, dtype=dtype).reshape(-1, *maps.shape[1:])
        inside = shifted_products(tokens[..., 0, :], taps, offsets, box, dtype, precision)
        mean_map = product("qh,hk->qk", everywhere, rows, dtype=dtype).reshape(maps.shape[1:])
        once = product("bd,do->bo", total[:, 0, 0], mean_map, dtype=dtype, precision=precision)
        inside = inside + _at_every_query(once, inside.shape[1:-1], dtype)
    else:
        inside = mapped(mixed_box(tokens, shares, offsets, box, dtype, precision), everywhere)
        inside = inside.reshape(batch, *map(count, box), -1)
    return inside if edge is None else framed(inside, edge, border, box, queries)


def sum_of_tokens(
    tokens: Num[Array, "batch *grid heads width"], axes: int, dtype: np.dtype
) -> Num[Array, "batch heads width"]:
    """Σ_k X_k, as a product with ones: XLA's reductions run on one core of a CPU."""
    rows = tokens.reshape(tokens.shape[0], -1, math.prod(tokens.shape[1 + axes :]))
    ones = jnp.ones((rows.shape[0], 1, rows.shape[1]), dtype)
    total = product("bqn,bnd->bqd", ones, rows.astype(dtype), dtype=dtype)
    return total.reshape(tokens.shape[0], *tokens.shape[1 + axes :])


def _at_every_query(
    once: Num[Array, "batch out_features"], extent: tuple[int, ...], dtype: np.dtype
) -> Num[Array, "batch *extent out_features"]:
    """The same vector at every query, so that its derivative is a product as well."""
    ones = jnp.ones((once.shape[0], *extent, 1), dtype)  # the product of symbols has no sign
    return product("b...q,bqo->b...o", ones, once[:, None], dtype=dtype)


def read_values(
    layer: AttentionLayer,
    tokens: Num[Array, "batch *grid features"],
    way: str,
    dtype: np.dtype,
    precision: lax.PrecisionLike,
) -> tuple[Array, Array | None]:
    """What the heads read, `[batch, *grid, 1 or heads, width]`, and the maps that follow."""
    value, output = layer.value, layer.output
    if way == "apart" and value is not None:
        columns = jnp.moveaxis(value, 0, 1).reshape(value.shape[1], -1)
        rows = tokens.reshape(-1, tokens.shape[-1])
        values = product("nd,dk->nk", rows, columns, dtype=dtype, precision=precision)
        return values.reshape(*tokens.shape[:-1], value.shape[0], value.shape[2]), output
    if value is not None and output is not None:
        return tokens[..., None, :], product("hde,heo->hdo", value, output, dtype=dtype)
    return tokens[..., None, :], output if value is None else value


def work(
    layer: AttentionLayer,
    grid: TokenGrid,
    batch: int,
    features: int,
    options: AttentionOptions = DEFAULT_OPTIONS,
) -> Work:
    """The cheapest way over the queries, the slices it writes, and the gathered border."""
    offsets = read_offsets(offset_encoding(layer), grid)
    box = interior(grid, offsets, options.queries)
    queries = options.queries or all_queries(grid)
    tokens = batch * math.prod(map(count, queries))
    way = cheapest_way(layer, len(offsets), tokens, features)
    cost = costs(layer, len(offsets), tokens, features)[way]
    border = batch * len(border_queries(queries, box))
    moved = cost.moved + (tokens + border) * (len(offsets) + 2) * features
    exponentials = layer.heads * (2 + 2 * len(offsets))
    return Work(cost.products + MIXED * cost.mixed, moved, float(exponentials), 40.0)


SHIFT = BackEnd("shift", refusal, attend, work, selective=True)
