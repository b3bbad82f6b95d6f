"""Absolute rows and columns: a vector for each row, one for each column, and no cross terms.

The absolute encoding of C20 gives the scores P_q W_qry W_keyᵀ P_kᵀ. Let P_(i,j) = [R_i, C_j], a row
vector and a column vector side by side, and the maps be W_qry = diag(A, B), W_key = diag(A', B') in
blocks. Then

    s(q, k) = R_(q_1) A A'ᵀ R_(k_1)ᵀ + C_(q_2) B B'ᵀ C_(k_2)ᵀ,

a sum over the axes, so that attention is the product of a row softmax and a column softmax. Maps
that are not block diagonal add the cross terms R_(q_1) M C_(k_2)ᵀ and C_(q_2) M' R_(k_1)ᵀ. With
them the row of one query still is a product u(k_1)·v(k_2), but u and v depend on the whole of q:
each query has a pair of factors of its own, and mixing the tokens with its u takes HW products, so
that all queries together take (HW)² as before.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int, Num

from convattn.encodings.absolute import sinusoidal_positions
from convattn.encodings.axis_scores import AxisScores, free_groups, sum_over_axes
from convattn.encodings.base import Encoding, check_axes, score_dtype
from convattn.encodings.majorants import magnitude
from convattn.operators.attention import HIGHEST
from convattn.operators.shifts import TokenGrid


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class AxialEncoding(Encoding):
    """Scores Σ_a P^a_(q_a) W^a_qry,h (P^a_(k_a) W^a_key,h)ᵀ, a sum over the axes a.

    Attributes:
        query, key: W^a_qry,h and W^a_key,h for each axis, `[heads, features_a, key_features_a]`.
        tables: Learned P^a for each axis, `[n_a, features_a]`, or None for sinusoids, which exist
            at every position and so serve every image size.

    Raises:
        ValueError: From `positional_scores` and `axis_scores` for a grid of another number of axes,
            and where a learned table is smaller than the grid.

    Source: C20 eqs. 3 and 7 with block-diagonal maps; S.separable of this project's ledger.

    >>> one = jnp.ones((1, 1, 1))
    >>> tables = jnp.array([[1.0], [2.0]]), jnp.array([[1.0], [10.0]])
    >>> encoding = AxialEncoding((one, one), (one, one), tables)
    >>> encoding.positional_scores(TokenGrid((1, 2), ((0, 1), (0, 0))))[0].tolist()
    [[2.0, 11.0, 3.0, 12.0], [11.0, 101.0, 12.0, 102.0]]
    """

    query: tuple[Num[Array, "heads _ _"], ...]
    key: tuple[Num[Array, "heads _ _"], ...]
    tables: tuple[Num[Array, "_ _"], ...] | None = field(default=None)

    def positions(self, grid: TokenGrid, axis: int) -> Float[Array, "keys position_features"]:
        """P^a for every key of one axis."""
        dtype = score_dtype(*self.query, *self.key, *(self.tables or ()))
        count = grid.keys[axis]
        if self.tables is None:
            line = np.arange(count)[:, None]
            return sinusoidal_positions(line, self.query[axis].shape[1]).astype(dtype)
        table = self.tables[axis]
        if table.shape[0] < count:
            raise ValueError(
                f"the learned table of axis {axis} has {table.shape[0]} positions, but the grid, "
                f"its ring included, has {count}; learn a larger table or use sinusoids "
                "(tables=None)"
            )
        return table[:count].astype(dtype)

    def axis_scores(self, grid: TokenGrid) -> AxisScores:
        """The term of each axis: every head has its own rows and its own columns."""
        scores = tuple(
            jnp.einsum("hqe,hke->hqk", left, right, precision=HIGHEST)
            for left, right in self.factors(grid)
        )
        return AxisScores(scores, free_groups(self.heads, len(scores)))

    def factors(self, grid: TokenGrid) -> list[tuple[Array, Array]]:
        """For each axis P^a W^a_qry,h of its queries and P^a W^a_key,h of its keys."""
        check_axes(grid.query_positions, len(self.query), "AxialEncoding")
        factors = []
        for axis, (query, key) in enumerate(zip(self.query, self.key, strict=True)):
            positions = self.positions(grid, axis)
            dtype, before = positions.dtype, grid.ring[axis][0]
            own = positions[before : before + grid.queries[axis]]
            left = jnp.einsum("qd,hde->hqe", own, query.astype(dtype), precision=HIGHEST)
            right = jnp.einsum("kd,hde->hke", positions, key.astype(dtype), precision=HIGHEST)
            factors.append((left, right))
        return factors

    def positional_scorer(
        self, grid: TokenGrid
    ) -> Callable[[Int[Array, " block"]], Float[Array, "heads block keys"]]:
        """The scores of some queries at a time, given by their flat numbers, which may be traced.

        The factors of each axis are multiplied out once, for all blocks.
        """
        factors = self.factors(grid)

        def of_block(queries: Int[Array, " block"]) -> Float[Array, "heads block keys"]:
            total = jnp.zeros((self.heads, len(queries), 1), factors[0][0].dtype)
            for position, (left, right) in zip(
                jnp.unravel_index(queries, grid.queries), factors, strict=True
            ):
                here = jnp.einsum("hqe,hke->hqk", left[:, position], right, precision=HIGHEST)
                total = total[..., :, None] + here[..., None, :]
                total = total.reshape(*here.shape[:2], -1)
            return total

        return of_block

    def positional_scores(self, grid: TokenGrid) -> Float[Array, "heads queries keys"]:
        """The sum over the axes for every query and key."""
        return sum_over_axes(self.axis_scores(grid))

    def check(self) -> None:
        """Refuse maps of different shapes, and tables whose vectors they do not take.

        Raises:
            ValueError: As described above, and as `Encoding.check` does.
        """
        super().check()
        query, key = ([array.shape for array in part] for part in (self.query, self.key))
        if query != key:
            raise ValueError(
                f"encoding.key has the shapes {key}, but expected those of query: {query}"
            )
        if self.tables is not None:
            features = [table.shape[1] for table in self.tables]
            taken = [shape[1] for shape in query]
            if features != taken:
                raise ValueError(
                    f"encoding.tables has {features} features, but expected {taken}, which the "
                    "maps take"
                )

    def score_majorant(self, grid: TokenGrid) -> Float[Array, "heads queries keys"]:
        """The sum over the axes of |P^a_q||W^a_qry||W^a_key|ᵀ|P^a_k|ᵀ."""
        total = jnp.zeros((self.heads, 1, 1))
        for axis, (query, key) in enumerate(zip(self.query, self.key, strict=True)):
            positions = magnitude(self.positions(grid, axis))
            own = positions[grid.ring[axis][0] :][: grid.queries[axis]]
            left = jnp.einsum("qd,hde->hqe", own, magnitude(query))
            here = jnp.einsum("hqe,kd,hde->hqk", left, positions, magnitude(key))
            total = total[:, :, None, :, None] + here[:, None, :, None, :]
            total = total.reshape(self.heads, total.shape[1] * total.shape[2], -1)
        return total

    @property
    def roundings(self) -> int:
        """Those of a score beyond 16."""
        return sum(2 * part.shape[1] + part.shape[2] for part in self.query)
