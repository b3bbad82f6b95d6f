"""The learned encoding of C20 §4.3: one vector for each row shift, one for each column shift."""

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int, Num

from convattn.encodings.axis_scores import AxisScores, axis_shifts, free_groups
from convattn.encodings.base import RelativePosition, check_axes, score_dtype
from convattn.encodings.majorants import magnitude
from convattn.operators.arrays import promoted
from convattn.operators.attention import HIGHEST
from convattn.operators.shifts import TokenGrid


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class LearnedEncoding(RelativePosition):
    """Scores v_h·concat(row_(δ_1), column_(δ_2)) = f_h(δ_1) + g_h(δ_2).

    A table of 2n - 1 vectors holds the shifts -(n-1), …, n-1 and so serves every image of at
    most n tokens on that axis (ring included).

    Attributes:
        query: v_h, `[heads, D_p]`, cut into one block for each axis.
        tables: For each axis `[2n - 1, features]`; the features add up to D_p.

    Raises:
        ValueError: From `shift_scores` and `axis_scores` for a shift that the tables do not hold.

    Source: C20 §4.3, after Ramachandran et al. 2019 and Bello et al. 2019.

    >>> table = jnp.array([[0.0], [1.0], [5.0]])
    >>> encoding = LearnedEncoding(jnp.array([[2.0]]), (table,))
    >>> encoding.shift_scores(np.array([[1], [-1]]), 2).tolist()
    [[10.0, 0.0]]
    """

    query: Num[Array, "heads position_features"]
    tables: tuple[Num[Array, "_ _"], ...]

    def shift_scores(
        self, shifts: Int[np.ndarray, "shifts axes"], number_of_keys: int | Array
    ) -> Float[Array, "heads shifts"]:
        """f_h(δ_1) + g_h(δ_2), each read from its table."""
        check_axes(shifts, len(self.tables), "LearnedEncoding")
        dtype = score_dtype(self.query, *self.tables)
        total = jnp.zeros((self.query.shape[0], shifts.shape[0]), dtype)
        for axis, scores in enumerate(self.table_scores()):
            total = total + scores[:, self.rows(axis, shifts[:, axis])]
        return total

    def table_scores(self) -> list[Float[Array, "heads rows"]]:
        """For each axis, the score of every vector of its table."""
        dtype = score_dtype(self.query, *self.tables)
        blocks = np.cumsum([table.shape[1] for table in self.tables])[:-1]
        queries = jnp.split(self.query.astype(dtype), blocks, axis=-1)
        return [
            jnp.einsum("hd,sd->hs", query, table.astype(dtype), precision=HIGHEST)
            for table, query in zip(self.tables, queries, strict=True)
        ]

    def rows(self, axis: int, shifts: Int[np.ndarray, "*shape"]) -> Int[np.ndarray, "*shape"]:
        """Where the table of an axis holds these shifts, or `ValueError`."""
        reach = (self.tables[axis].shape[0] - 1) // 2
        needed = int(np.abs(shifts).max(initial=0))
        if needed > reach:
            raise ValueError(
                f"axis {axis} of the image has shifts up to {needed}, but its table of "
                f"{self.tables[axis].shape[0]} vectors holds shifts up to {reach}; create the "
                "encoding for larger images, or crop"
            )
        return shifts + reach

    def axis_scores(self, grid: TokenGrid) -> AxisScores:
        """f_h(δ_1) and g_h(δ_2): every head has its own rows and its own columns."""
        check_axes(grid.query_positions, len(self.tables), "LearnedEncoding")
        scores = tuple(
            table[:, self.rows(axis, axis_shifts(grid, axis))]
            for axis, table in enumerate(self.table_scores())
        )
        return AxisScores(scores, free_groups(self.heads, len(scores)))

    def shift_majorant(
        self, shifts: Int[np.ndarray, "shifts axes"], number_of_keys: int
    ) -> Float[Array, "heads shifts"]:
        """The sum of the magnitudes of its terms at each shift."""
        tables = tuple(magnitude(table) for table in self.tables)
        return LearnedEncoding(magnitude(self.query), tables).shift_scores(shifts, number_of_keys)

    @property
    def roundings(self) -> int:
        """Those of a score beyond 16."""
        return self.query.shape[1]


def initial_learned_encoding(
    key: Array, heads: int, tokens: Sequence[int], features: int, dtype: jnp.dtype = jnp.float32
) -> LearnedEncoding:
    """Random tables for images of at most `tokens` on each axis, D_p = axes · `features`.

    >>> initial_learned_encoding(jax.random.key(0), 9, (4, 5), 8).heads
    9
    """
    query_key, *table_keys = jax.random.split(key, 1 + len(tokens))
    width = features * len(tokens)
    norm = np.sqrt(width)
    query = jax.random.normal(query_key, (heads, width), dtype)
    query = query.astype(promoted(dtype, norm)) / norm
    tables = tuple(
        jax.random.normal(table_key, (2 * n - 1, features), dtype)
        for table_key, n in zip(table_keys, tokens, strict=True)
    )
    return LearnedEncoding(query.astype(dtype), tables)
