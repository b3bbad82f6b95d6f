"""Absolute encodings: a vector for each position, learned or sinusoidal in two dimensions."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int, Num

from convattn.encodings.base import Encoding, score_dtype
from convattn.encodings.majorants import magnitude
from convattn.operators.attention import HIGHEST
from convattn.operators.shifts import TokenGrid


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class AbsoluteEncoding(Encoding):
    """Scores P_q W_qry,h W_key,hᵀ P_kᵀ: the last term of C20 eq. 7, the one without content.

    Attributes:
        query, key: W_qry,h and W_key,h, `[heads, D_p, D_k]`.
        table: A learned P, `[rows, columns, D_p]` (or `[length, D_p]`), or None for sinusoids,
            which exist at every position and so serve every image size.

    Raises:
        ValueError: From `positional_scores` where a learned table is smaller than the grid.

    Source: C20 eqs. 3 and 7; L21 §3.1, "remark on the positional encoding".
    """

    query: Num[Array, "heads position_features key_features"]
    key: Num[Array, "heads position_features key_features"]
    table: Array | None = field(default=None)

    def positions(self, grid: TokenGrid) -> Float[Array, "keys position_features"]:
        """P for every key of the grid, row-major."""
        dtype = score_dtype(self.query, self.key)
        if self.table is None:
            return sinusoidal_positions(grid.key_positions, self.query.shape[1]).astype(dtype)
        sides = self.table.shape[:-1]
        if len(sides) != len(grid.keys) or any(
            have < need for have, need in zip(sides, grid.keys, strict=False)
        ):
            raise ValueError(
                f"the learned table has positions {sides}, but the grid, its ring included, has "
                f"{grid.keys}; learn a larger table or use sinusoids (table=None)"
            )
        block = self.table[tuple(slice(0, n) for n in grid.keys)]
        return block.reshape(-1, block.shape[-1]).astype(dtype)

    def positional_scores(self, grid: TokenGrid) -> Float[Array, "heads queries keys"]:
        """P_q W_qry,h W_key,hᵀ P_kᵀ for every query and key."""
        left, right = self.factors(grid)
        return jnp.einsum("hqe,hke->hqk", left, right, precision=HIGHEST)

    def positional_scorer(
        self, grid: TokenGrid
    ) -> Callable[[Int[Array, " block"]], Float[Array, "heads block keys"]]:
        """The scores of some queries at a time, given by their flat numbers, which may be traced.

        Both factors are multiplied out once, for all blocks.
        """
        left, right = self.factors(grid)
        return lambda queries: jnp.einsum(
            "hqe,hke->hqk", left[:, queries], right, precision=HIGHEST
        )

    def factors(
        self, grid: TokenGrid
    ) -> tuple[Float[Array, "heads queries key_features"], Float[Array, "heads keys key_features"]]:
        """P_q W_qry,h of every query and P_k W_key,h of every key."""
        positions = self.positions(grid)
        rows = np.ravel_multi_index(tuple(grid.query_positions.T), grid.keys)
        dtype = positions.dtype
        left = jnp.einsum(
            "qd,hde->hqe", positions[rows], self.query.astype(dtype), precision=HIGHEST
        )
        right = jnp.einsum("kd,hde->hke", positions, self.key.astype(dtype), precision=HIGHEST)
        return left, right

    def score_majorant(self, grid: TokenGrid) -> Float[Array, "heads queries keys"]:
        """|P_q||W_qry,h||W_key,h|ᵀ|P_k|ᵀ for every query and key."""
        positions = magnitude(self.positions(grid))
        rows = np.ravel_multi_index(tuple(grid.query_positions.T), grid.keys)
        left = jnp.einsum("qd,hde->hqe", positions[rows], magnitude(self.query))
        right = jnp.einsum("kd,hde->hke", positions, magnitude(self.key))
        return jnp.einsum("hqe,hke->hqk", left, right)

    @property
    def roundings(self) -> int:
        """Those of a score beyond 16."""
        return 2 * self.query.shape[1] + self.query.shape[2]


def sinusoidal_positions(
    positions: Int[np.ndarray, "positions axes"], features: int
) -> Float[Array, "positions features"]:
    """sin and cos of each coordinate over wavelengths from 2π to 10000·2π.

    Each axis takes an equal share of the features, half sines, half cosines (Vaswani et al.
    2017, taken to two dimensions by concatenation).

    Args:
        positions: Integer coordinates; shifts may be negative.
        features: A multiple of twice the number of axes.

    Raises:
        ValueError: For another number of features.

    >>> sinusoidal_positions(np.array([[0, 0]]), 4).tolist()
    [[0.0, 1.0, 0.0, 1.0]]
    """
    axes = positions.shape[-1]
    if features < 2 * axes or features % (2 * axes):
        raise ValueError(
            f"features={features}, but sinusoids on {axes} axes take a multiple of {2 * axes}"
        )
    count = features // (2 * axes)
    rates = np.exp(-math.log(10000.0) * np.arange(count) / count)
    blocks = []
    for axis in range(axes):
        angles = positions[:, axis : axis + 1] * rates
        blocks += [np.sin(angles), np.cos(angles)]
    return jnp.asarray(np.concatenate(blocks, axis=-1).astype(jnp.result_type(float)))
