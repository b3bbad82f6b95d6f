"""Attention that factors over the axes: a row softmax and a column softmax for each head.

Where the scores are f_h(q_1, k_1) + g_h(q_2, k_2) (S.separable of this project's ledger), head h is
R_h ⊗ C_h, and applying it axis by axis takes HW(H + W) products for each channel, not (HW)². It is
exact: nothing is left out. The ring of zero tokens takes its share of the softmax and adds nothing
to the sums, so its columns are dropped after the softmax.

Heads that share their row attentions and their column attentions, as heads on a grid of centres do,
are mixed together (`axis_product`); free heads are taken one after the other (`axis_mixing`).
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float, Num

from convattn.encodings.axis_scores import AxisScores, SeparableEncoding
from convattn.encodings.layer import AttentionLayer
from convattn.fast.backend import BackEnd, Work
from convattn.fast.maps import HeadMaps, arrange_maps, sum_dtype
from convattn.fast.options import DEFAULT_OPTIONS, AttentionOptions
from convattn.fast.separable.axis_mixing import mix_mix_map
from convattn.fast.separable.axis_product import Arithmetic, mix_map_mix
from convattn.operators.arrays import known_size, promoted
from convattn.operators.attention import attention_weights
from convattn.operators.shifts import TokenGrid

_GRID_WASTE = 1.25  # heads stand on a grid if it has at most so many pairs for each head


class AxisFactors(NamedTuple):
    """The row attentions [r, i, k] and column attentions [c, j, l], and each head's groups."""

    rows: Array
    columns: Array
    row_groups: tuple[int, ...]
    column_groups: tuple[int, ...]

    @property
    def on_grid(self) -> bool:
        """Whether the pairs of groups that are heads fill their rectangle, or nearly."""
        pairs = self.rows.shape[0] * self.columns.shape[0]
        return pairs <= _GRID_WASTE * len(self.row_groups)


def refusal(layer: AttentionLayer, grid: TokenGrid, options: AttentionOptions) -> str | None:
    """Everything but content-free heads whose scores are a sum over two axes."""
    if not isinstance(layer.encoding, SeparableEncoding):
        return _no_sum(layer)
    if layer.content is not None:
        return (
            "content scores do not factor over the axes; take 'dot_product', 'chunked' or 'dense'"
        )
    if len(grid.queries) != 2:
        return f"the grid has {len(grid.queries)} axis, so there is nothing to factor; take 'dense'"
    if options.dropout is not None:
        return (
            "it never forms the weights that dropout would zero; take 'dense', 'chunked', or a "
            "dropout rate of 0"
        )
    return None


def _no_sum(layer: AttentionLayer) -> str:
    """The refusal of an encoding."""
    return (
        f"the scores of {type(layer.encoding).__name__} are no sum of a row term and a column "
        "term; take 'shift' for tables of offsets, 'windowed' for Gaussians, or 'chunked', which "
        "serves every layer"
    )


def _separable_encoding(layer: AttentionLayer) -> SeparableEncoding:
    """The encoding of a layer that is served."""
    if not isinstance(layer.encoding, SeparableEncoding):
        raise ValueError(_no_sum(layer))
    return layer.encoding


def attend(
    layer: AttentionLayer,
    grid: TokenGrid,
    tokens: Num[Array, "batch rows columns features"],
    options: AttentionOptions,
) -> Float[Array, "batch rows columns out_features"]:
    """Σ_h g_h (R_h ⊗ C_h) X W_val,h W_out,h."""
    factors = axis_factors(_separable_encoding(layer).axis_scores(grid), grid)
    dtype = promoted(sum_dtype(layer, tokens), factors.rows.dtype)
    mixing = float(sum(grid.queries))
    maps = arrange_maps(
        layer, grid, known_size(tokens.shape[0]) * math.prod(tokens.shape[1:-1]), mixing, dtype
    )
    if not factors.on_grid or maps.before is not None or maps.after is None:
        return _apply_free(factors, maps, tokens, dtype, options)
    if rows_first(factors, tokens.shape[-1], maps.after.shape[-1]):
        factors = AxisFactors(
            factors.columns, factors.rows, factors.column_groups, factors.row_groups
        )
        result = _apply_grid(factors, maps.after, tokens.transpose(1, 2, 0, 3), dtype, options)
        return result.transpose(2, 1, 0, 3)
    result = _apply_grid(factors, maps.after, tokens.transpose(2, 1, 0, 3), dtype, options)
    return result.transpose(2, 0, 1, 3)


def axis_factors(axis_scores: AxisScores, grid: TokenGrid) -> AxisFactors:
    """The softmaxes of the axes over all keys, of which those of the image are kept."""
    weights = [
        attention_weights(scores)[..., before : before + n]
        for scores, (before, _), n in zip(axis_scores.scores, grid.ring, grid.queries, strict=True)
    ]
    return AxisFactors(weights[0], weights[1], axis_scores.groups[0], axis_scores.groups[1])


def rows_first(factors: AxisFactors, features: int, out: int) -> bool:
    """Whether mixing the rows before the maps and the columns after takes fewer products."""
    if not factors.on_grid:
        return False
    (r, height, _), (c, width, _) = factors.rows.shape, factors.columns.shape
    return r * height * features + c * width * out < c * width * features + r * height * out


def _apply_grid(
    factors: AxisFactors,
    maps: Num[Array, "heads features out_features"],
    tokens: Num[Array, "columns rows batch features"],
    dtype: np.dtype,
    options: AttentionOptions,
) -> Float[Array, "rows columns batch out_features"]:
    """The sum over heads on a grid."""
    r, c = factors.rows.shape[0], factors.columns.shape[0]
    pairs = np.asarray(factors.column_groups), np.asarray(factors.row_groups)
    table = jnp.zeros((c, r, *maps.shape[1:]), maps.dtype)
    table = table.at[pairs].add(maps).transpose(0, 2, 1, 3)
    arithmetic = Arithmetic(dtype, options.precision)
    return mix_map_mix(arithmetic, factors.rows, factors.columns, table, tokens)


def _apply_free(
    factors: AxisFactors,
    maps: HeadMaps,
    tokens: Num[Array, "batch rows columns features"],
    dtype: np.dtype,
    options: AttentionOptions,
) -> Float[Array, "batch rows columns out_features"]:
    """The sum over the heads, one after the other."""
    arithmetic = Arithmetic(dtype, options.precision)
    rows = factors.rows[np.asarray(factors.row_groups, int)]
    columns = factors.columns[np.asarray(factors.column_groups, int)]
    if maps.before is None and maps.after is not None:
        return mix_mix_map(arithmetic, rows, columns, maps.after, tokens)

    def one_head(
        row: Array, column: Array, before: Array | None, after: Array | None, gain: Array | None
    ) -> Array:
        values = tokens if before is None else arithmetic("bkld,de->bkle", tokens, before)
        if after is not None:
            return mix_mix_map(arithmetic, row[None], column[None], after[None], values)
        mixed = arithmetic("jl,bkld->bkjd", column, values)
        mixed = arithmetic("ik,bkjd->bijd", row, mixed)
        return mixed if gain is None else mixed * gain.astype(dtype)

    operands = (rows, columns, maps.before, maps.after, maps.gains)
    shape = jax.eval_shape(one_head, *jax.tree.map(lambda array: array[0], operands))

    def add(total: Array, head: Any) -> tuple[Array, None]:
        return total + one_head(*head), None

    return lax.scan(add, jnp.zeros(shape.shape, shape.dtype), operands)[0]


def work(
    layer: AttentionLayer,
    grid: TokenGrid,
    batch: int,
    features: int,
    options: AttentionOptions = DEFAULT_OPTIONS,
) -> Work:
    """H + W products for each token, head and channel (fewer on a grid), and the maps."""
    encoding, heads, out = _separable_encoding(layer), layer.heads, features
    rows, columns = jax.eval_shape(lambda: axis_factors(encoding.axis_scores(grid), grid)[:2])
    (r, height, _), (c, width, _) = rows.shape, columns.shape
    if r * c > _GRID_WASTE * heads:
        r = c = heads
    tokens = batch * height * width
    products = 0.0
    for array in (layer.value, layer.output):
        if array is not None:
            products += tokens * array.size
            out = array.shape[2]
    channels = features if layer.value is None else layer.value.shape[2]
    products += tokens * (c * width * channels + r * height * out)
    moved = 2.0 * tokens * (c * channels + r * out)
    exponentials = float(math.prod(rows.shape) + math.prod(columns.shape))
    return Work(products, moved, exponentials, 12.0 + (0 if c < heads else 6 * heads))


SEPARABLE = BackEnd("separable", refusal, attend, work)
