"""Scores that are a sum over the axes, in parts: what attention needs to factor over the axes.

Where s_h(q, k) = f_h(q_1, k_1) + g_h(q_2, k_2) and the keys fill a rectangle, softmax is the outer
product of a row softmax and a column softmax (S.separable of this project's ledger), because
e^(f + g) = e^f·e^g. Heads with the same f share their row softmax: they are one *group* there.
"""

from typing import NamedTuple, Protocol, runtime_checkable

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from convattn.operators.shifts import TokenGrid


class AxisScores(NamedTuple):
    """The scores of each axis, and which of them each head takes.

    Attributes:
        scores: For each axis a, `[groups, queries, keys]` of that axis alone, ring included.
        groups: For each axis, the group of each head; static.

    The score of head h at (q, k) is the sum over a of `scores[a][groups[a][h], q_a, k_a]`.
    """

    scores: tuple[Array, ...]
    groups: tuple[tuple[int, ...], ...]


@runtime_checkable
class SeparableEncoding(Protocol):
    """An encoding of one or two axes whose scores are a sum over them."""

    @property
    def heads(self) -> int:
        """How many heads there are."""
        ...

    def axis_scores(self, grid: TokenGrid) -> AxisScores:
        """The terms of the sum, which add up to `positional_scores` without another constant."""
        ...


def free_groups(heads: int, axes: int) -> tuple[tuple[int, ...], ...]:
    """Groups of one head each: nothing is shared.

    >>> free_groups(3, 2)
    ((0, 1, 2), (0, 1, 2))
    """
    return (tuple(range(heads)),) * axes


def axis_shifts(grid: TokenGrid, axis: int) -> Int[np.ndarray, "queries keys"]:
    """δ = key - query on one axis, for its queries and its keys, ring included.

    >>> axis_shifts(TokenGrid((2, 9), ((1, 0), (0, 0))), 0).tolist()
    [[-1, 0, 1], [-2, -1, 0]]
    """
    queries = grid.ring[axis][0] + np.arange(grid.queries[axis])
    return np.arange(grid.keys[axis])[None, :] - queries[:, None]


def sum_over_axes(parts: AxisScores) -> Float[Array, "heads queries keys"]:
    """The scores of every query with every key of the grid, from those of its axes.

    >>> rows, columns = jnp.array([[[1.0], [2.0]]]), jnp.array([[[10.0, 20.0]], [[30.0, 40.0]]])
    >>> sum_over_axes(AxisScores((rows, columns), ((0, 0), (0, 1)))).tolist()
    [[[11.0, 21.0], [12.0, 22.0]], [[31.0, 41.0], [32.0, 42.0]]]
    """
    total = jnp.zeros((len(parts.groups[0]), 1, 1), jnp.result_type(*parts.scores))
    for scores, groups in zip(parts.scores, parts.groups, strict=True):
        here = scores[np.asarray(groups, np.int32)]
        total = total[:, :, None, :, None] + here[:, None, :, None, :]
        total = total.reshape(total.shape[0], total.shape[1] * total.shape[2], -1)
    return total
