"""The relative encoding of C20 eq. 8: a vector r_δ for every shift, shared by the heads."""

from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int, Num

from convattn.encodings.absolute import sinusoidal_positions
from convattn.encodings.base import RelativePosition, score_dtype
from convattn.encodings.majorants import magnitude
from convattn.operators.attention import HIGHEST


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class RelativeEncoding(RelativePosition):
    """Scores v_h Ŵ_key,hᵀ r_δᵀ: the last term of C20 eq. 8, the one without content.

    Attributes:
        query: v_h, `[heads, D_k]`.
        position_key: Ŵ_key,h, `[heads, D_p, D_k]`.
        table: A learned r_δ, `[2n_1 - 1, 2n_2 - 1, D_p]` (or `[2n - 1, D_p]`) for shifts up to n -
            1 on each axis; None for sinusoids as in Dai et al. 2019, which exist at every shift.

    Raises:
        ValueError: From `shift_scores` for a shift that a learned table does not hold.

    Source: C20 eq. 8.
    """

    query: Num[Array, "heads key_features"]
    position_key: Num[Array, "heads position_features key_features"]
    table: Array | None = field(default=None)

    def vectors(
        self, shifts: Int[np.ndarray, "shifts axes"]
    ) -> Float[Array, "shifts position_features"]:
        """r_δ for each shift."""
        dtype = score_dtype(self.query, self.position_key)
        if self.table is None:
            return sinusoidal_positions(shifts, self.position_key.shape[1]).astype(dtype)
        reach = np.array([(n - 1) // 2 for n in self.table.shape[:-1]])
        if shifts.shape[-1] != len(reach) or (np.abs(shifts) > reach).any():
            raise ValueError(
                f"the grid has shifts up to {np.abs(shifts).max(axis=0).tolist()}, but the learned "
                f"table holds shifts up to {reach.tolist()}; learn a larger table or use sinusoids "
                "(table=None)"
            )
        return self.table[tuple((shifts + reach).T)].astype(dtype)

    def shift_scores(
        self, shifts: Int[np.ndarray, "shifts axes"], number_of_keys: int | Array
    ) -> Float[Array, "heads shifts"]:
        """v_h Ŵ_key,hᵀ r_δᵀ for each head and shift."""
        vectors = self.vectors(shifts)
        target = jnp.einsum(
            "he,hde->hd",
            self.query.astype(vectors.dtype),
            self.position_key.astype(vectors.dtype),
            precision=HIGHEST,
        )
        return jnp.einsum("hd,sd->hs", target, vectors, precision=HIGHEST)

    def shift_majorant(
        self, shifts: Int[np.ndarray, "shifts axes"], number_of_keys: int
    ) -> Float[Array, "heads shifts"]:
        """The sum of the magnitudes of its terms at each shift."""
        vectors = magnitude(self.vectors(shifts))
        parts = magnitude(self.query), magnitude(self.position_key)
        return jnp.einsum("he,hde,sd->hs", *parts, vectors)

    @property
    def roundings(self) -> int:
        """Those of a score beyond 16."""
        return self.position_key.shape[1] + self.position_key.shape[2]
