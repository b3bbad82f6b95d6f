"""A mixture of offsets and of the uniform row: the leak of S.finite, for any nonnegative weights.

Let w_δ ≥ 0 at some offsets. The softmax of log(1 + N·w_δ) at the offsets and 0 at every other of N
keys is, at a query whose offsets are all keys,

    (Σ_δ w_δ S_δ + J) / (1 + Σ_δ w_δ),

S_δ the unit row at q + δ and J the uniform row: the sum of the weights is N + N·Σ w_δ, an offset
has (1 + N·w_δ) of it and any other key 1. So the shares of the offsets and of J do not depend on N,
and value maps that fit once fit every image. A leak ε is w_δ = 1/ε - 1 at one offset.
"""

import math
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int, Num

from convattn.encodings.base import OffsetTable, score_dtype
from convattn.encodings.majorants import ScoreError, magnitude
from convattn.operators.roundoff import EXP_ERROR, gamma, unit_roundoff
from convattn.operators.shifts import Shift


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class MixtureEncoding(OffsetTable):
    """Scores log(1 + N·w_hδ) at the offsets, 0 elsewhere.

    Attributes:
        weights: w_hδ ≥ 0, the share of each offset relative to that of the uniform row.
        offsets: The shifts that have an entry; every other shift has the score 0.

    Source: S.kernel of this project's ledger; S.finite for one offset.

    >>> encoding = MixtureEncoding(jnp.array([[1.0, 2.0]]), ((0,), (1,)))
    >>> scores = encoding.shift_scores(np.array([[0], [1], [2], [3]]), 4)
    >>> (16 * jax.nn.softmax(scores)).round(3).tolist()  # a quarter, a half, a quarter of uniform
    [[5.0, 9.0, 1.0, 1.0]]
    """

    weights: Num[Array, "heads offsets"]
    offsets: tuple[Shift, ...] = field(metadata={"static": True})

    def entries(self) -> int:
        """How many entries the arrays hold."""
        return self.weights.shape[1]

    def shift_scores(
        self, shifts: Int[np.ndarray, "shifts axes"], number_of_keys: int | Array
    ) -> Float[Array, "heads shifts"]:
        """log(1 + N·w_hδ) at each shift."""
        dtype = score_dtype(self.weights)
        values = jnp.log1p(number_of_keys * self.weights.astype(dtype))
        background = jnp.zeros((values.shape[0], 1), dtype)
        return jnp.concatenate([values, background], axis=-1)[:, self.rows(shifts)]

    def check(self) -> None:
        """Refuse negative weights.

        Raises:
            ValueError: As described above, and as `OffsetTable.check` does.
        """
        super().check()
        if (self.weights < 0).any():
            raise ValueError(
                f"encoding.weights has the entry {float(self.weights.min())}, but expected "
                "nonnegative shares of a mixture; is a sign in the value map meant?"
            )

    def shift_majorant(
        self, shifts: Int[np.ndarray, "shifts axes"], number_of_keys: int
    ) -> Float[Array, "heads shifts"]:
        """The sum of the magnitudes of its terms at each shift."""
        return MixtureEncoding(magnitude(self.weights), self.offsets).shift_scores(
            shifts, number_of_keys
        )

    def score_error(self, number_of_keys: int) -> ScoreError:
        """Of log1p(x), x = N·w; S is the largest score, and the others are 0.

        The stored w (three roundings from the rational one: to float64, to the dtype, and a cast),
        N and the product make at most γ_6 of x, which moves log1p(x) by at most γ_6·x/(1+x) ≤
        γ_6·log1p(x), and log1p counts as eight roundings. So e = γ_15·S.

        Raises:
            ValueError: Where weights underflow.
        """
        dtype, largest = score_dtype(self.weights), float(jnp.max(self.weights, initial=0.0))
        height = math.log1p(number_of_keys * largest) * (1 + 2.0**-20)
        error = gamma(EXP_ERROR + 7, unit_roundoff(dtype)) * height
        if math.exp(-height) / number_of_keys < 4 * float(jnp.finfo(dtype).tiny):
            raise ValueError(
                f"scores up to {height:.3g} make weights that underflow in {dtype}: there is no "
                "bound; use a wider dtype"
            )
        return ScoreError(dtype, error, height, 0.0)
