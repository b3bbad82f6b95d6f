"""Attention that factors over the axes: scores f(q_1, k_1) + g(q_2, k_2), a full rectangle of keys.

e^(f + g) = e^f·e^g, and the sum over a rectangle of products is the product of the sums, so each
row is the outer product of two softmax rows. With positions as pairs A = A_row ⊗ A_column, and
applying it to H × W tokens axis by axis takes HW(H + W) products for each feature, not (HW)².
"""

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Shaped

from convattn.attention import HIGHEST, attention_weights
from convattn.encodings.axis_scores import AxisScores


def separable_weights(parts: AxisScores) -> tuple[Array, ...]:
    """For each axis the softmax `[heads, queries, keys]`; the attention is the product of them.

    >>> parts = AxisScores((jnp.zeros((1, 1, 2)), jnp.zeros((1, 1, 4))), ((0, 0), (0, 0)))
    >>> rows, columns = separable_weights(parts)
    >>> rows[1].tolist(), columns[0].tolist()
    ([[0.5, 0.5]], [[0.25, 0.25, 0.25, 0.25]])
    """
    pairs = zip(parts.scores, parts.groups, strict=True)
    return tuple(attention_weights(scores)[np.asarray(groups)] for scores, groups in pairs)


def attend_by_axes(
    rows: Float[Array, "heads query_rows rows"],
    columns: Float[Array, "heads query_columns columns"],
    keys: Float[Array, "batch rows columns features"],
) -> Float[Array, "heads batch query_rows query_columns features"]:
    """What each head attends to: mix along the rows, then along the columns.

    >>> halves = jnp.full((1, 1, 2), 0.5)
    >>> attend_by_axes(halves, halves, jnp.array([[[[1.0], [2.0]], [[3.0], [6.0]]]])).tolist()
    [[[[[3.0]]]]]
    """
    mixed = jnp.einsum("hqr,brcf->hbqcf", rows, keys, precision=HIGHEST)
    return jnp.einsum("hpc,hbqcf->hbqpf", columns, mixed, precision=HIGHEST)


def mixed_difference(
    rows: Shaped[np.ndarray, "rows columns"],
) -> Shaped[np.ndarray, "smaller_rows smaller_columns"]:
    """w(i, j)·w(i+1, j+1) - w(i, j+1)·w(i+1, j): zero everywhere iff positive w is a product.

    >>> mixed_difference(np.outer([1, 2], [3, 5])).tolist(), mixed_difference(np.eye(2)).tolist()
    ([[0]], [[1.0]])
    """
    return rows[:-1, :-1] * rows[1:, 1:] - rows[:-1, 1:] * rows[1:, :-1]
