"""Attention that factors over the axes: scores f(q_1, k_1) + g(q_2, k_2), a full rectangle of keys.

e^(f + g) = e^f·e^g, and the sum over a rectangle of products is the product of the sums, so each
row is the outer product of two softmax rows. With positions as pairs A = A_row ⊗ A_column, and
applying it to H × W tokens axis by axis takes HW(H + W) products for each feature, not (HW)².
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Shaped

from convattn.attention import HIGHEST, attention_weights
from convattn.encodings.base import RelativePosition
from convattn.shifts import TokenGrid


class AxisScores(NamedTuple):
    """The scores of one axis each, `[heads, queries, keys]`, that add up to those of the grid."""

    rows: Array
    columns: Array


def axis_scores(encoding: RelativePosition, grid: TokenGrid) -> AxisScores:
    """f_h(δ_1) and g_h(δ_2) of relative scores f_h(δ_1) + g_h(δ_2), up to a constant of the head.

    They are the table's rows through δ_2 = 0 and, less the entry at 0, through δ_1 = 0. Whether the
    scores are such a sum is for the caller to compare.

    >>> from convattn.encodings import QuadraticEncoding
    >>> encoding = QuadraticEncoding(jnp.array([1.0]), jnp.array([[0.0, 1.0]]))
    >>> scores = axis_scores(encoding, TokenGrid((1, 2), ((0, 0), (0, 0))))
    >>> scores.rows.tolist(), scores.columns.tolist()
    ([[[-1.0]]], [[[0.0, 1.0], [-3.0, 0.0]]])
    """
    found = []
    for axis in (0, 1):
        shifts = np.zeros((len(grid.shift_ranges[axis]), 2), np.int64)
        shifts[:, axis] = grid.shift_ranges[axis]
        table = encoding.shift_scores(shifts, grid.number_of_keys)
        line = TokenGrid((grid.queries[axis],), (grid.ring[axis],))
        found.append(table[:, line.shift_index()])
    centre = encoding.shift_scores(np.zeros((1, 2), np.int64), grid.number_of_keys)
    return AxisScores(found[0], found[1] - centre[:, :, None])


def separable_weights(scores: AxisScores) -> AxisScores:
    """The row softmax and the column softmax, whose product is the attention.

    >>> rows, columns = separable_weights(AxisScores(jnp.zeros((1, 1, 2)), jnp.zeros((1, 1, 4))))
    >>> rows.tolist(), columns.tolist()
    ([[[0.5, 0.5]]], [[[0.25, 0.25, 0.25, 0.25]]])
    """
    return AxisScores(attention_weights(scores.rows), attention_weights(scores.columns))


def attend_by_axes(
    weights: AxisScores, keys: Float[Array, "batch rows columns features"]
) -> Float[Array, "heads batch query_rows query_columns features"]:
    """What each head attends to: mix along the rows, then along the columns.

    >>> weights = separable_weights(AxisScores(jnp.zeros((1, 1, 2)), jnp.zeros((1, 1, 2))))
    >>> attend_by_axes(weights, jnp.array([[[[1.0], [2.0]], [[3.0], [6.0]]]])).ravel().tolist()
    [3.0]
    """
    mixed = jnp.einsum("hqr,brcf->hbqcf", weights.rows, keys, precision=HIGHEST)
    return jnp.einsum("hpc,hbqcf->hbqpf", weights.columns, mixed, precision=HIGHEST)


def mixed_difference(
    rows: Shaped[np.ndarray, "rows columns"],
) -> Shaped[np.ndarray, "smaller_rows smaller_columns"]:
    """w(i, j)·w(i+1, j+1) - w(i, j+1)·w(i+1, j): zero everywhere iff positive w is a product.

    >>> mixed_difference(np.outer([1, 2], [3, 5])).tolist(), mixed_difference(np.eye(2)).tolist()
    ([[0]], [[1.0]])
    """
    return rows[:-1, :-1] * rows[1:, 1:] - rows[:-1, 1:] * rows[1:, :-1]
