"""S.dp1: a single positional feature, r_δ = log t_δ, and heads that look at it with v_h = h.

The weights of head h before normalisation are the powers t_δ^h at the offsets and 1 at every
other key, so the heads together hold a Vandermonde matrix in the numbers {1, t_δ}. The value
maps undo it, and they must undo the normalisation too: Z_h(N) = N + Σ_δ (t_δ^h - 1), which
knows the number of keys. `head_gains` returns it, and the layer multiplies it in.

In the limit M → ∞ of r_δ = M + log t_δ nothing is left outside the offsets, and Z_h = Σ_δ t_δ^h.
Softmax does not see a constant, so the class computes log t_δ at the offsets and -M elsewhere,
which keeps the digits of log t_δ.
"""

import math
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float, Int, Num

from convattn.encodings.base import OffsetTable, score_dtype
from convattn.encodings.majorants import ScoreError, magnitude
from convattn.operators.attention import HIGHEST
from convattn.operators.roundoff import EXP_ERROR, gamma, unit_roundoff
from convattn.operators.shifts import Shift


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ScalarEncoding(OffsetTable):
    """Scores v_h·r_δ with r_δ = log t_δ at the offsets and 0 (-M in the limit form) elsewhere.

    Attributes:
        exponents: v_h.
        log_bases: Log t_δ at each offset; the t_δ are positive, distinct and not one.
        logit: M, or None for the exact form at finite parameters.
        offsets: The shifts that have an entry.

    Source: S.dp1 of this project's ledger, D_p = 1; C20 Theorem 1 asks for D_p ≥ 3.

    >>> encoding = ScalarEncoding(jnp.array([1.0]), jnp.log(jnp.array([3.0])), None, ((0,),))
    >>> print(jnp.exp(encoding.shift_scores(np.array([[0], [7]]), 5)).round(4))
    [[3. 1.]]
    """

    exponents: Num[Array, " heads"]
    log_bases: Num[Array, "offsets"]
    logit: Num[Array, ""] | None
    offsets: tuple[Shift, ...] = field(metadata={"static": True})

    @property
    def is_exact_form(self) -> bool:
        """Whether it is exact at finite parameters."""
        return self.logit is None

    def entries(self) -> int:
        """How many entries the arrays hold."""
        return self.log_bases.shape[0]

    def shift_scores(
        self, shifts: Int[np.ndarray, "shifts axes"], number_of_keys: int | Array
    ) -> Float[Array, "heads shifts"]:
        """v_h times the single feature of each shift."""
        dtype = score_dtype(self.exponents, self.log_bases)
        outside = jnp.zeros((), dtype) if self.logit is None else -self.logit.astype(dtype)
        feature = jnp.concatenate([self.log_bases.astype(dtype), outside[None]])
        feature = feature[self.rows(shifts)]
        return self.exponents[:, None].astype(dtype) * feature[None, :]

    def head_gains(self, number_of_keys: int | Array) -> Float[Array, " heads"]:
        """Z_h(N) = N + Σ_δ (t_δ^h - 1), or Σ_δ t_δ^h in the limit form."""
        dtype = score_dtype(self.exponents, self.log_bases)
        powers = jnp.exp(
            jnp.einsum(
                "h,o->ho",
                self.exponents.astype(dtype),
                self.log_bases.astype(dtype),
                precision=HIGHEST,
            )
        )
        outside = number_of_keys - len(self.offsets) if self.logit is None else 0
        return powers.sum(axis=-1) + outside

    def shift_majorant(
        self, shifts: Int[np.ndarray, "shifts axes"], number_of_keys: int
    ) -> Float[Array, "heads shifts"]:
        """The sum of the magnitudes of its terms at each shift."""
        logit = None if self.logit is None else -magnitude(self.logit)
        parts = magnitude(self.exponents), magnitude(self.log_bases)
        return ScalarEncoding(*parts, logit, self.offsets).shift_scores(shifts, number_of_keys)

    def gain_majorant(self, number_of_keys: int) -> Float[Array, " heads"]:
        """Σ_δ t_δ^h + |N - T|, the gain without its sign."""
        exponents, logs = self.exponents[:, None], self.log_bases[None]
        product = magnitude(exponents) * magnitude(logs)
        powers = lax.stop_gradient(jnp.exp(exponents * logs)) * (
            1 + product - lax.stop_gradient(product)
        )
        outside = number_of_keys - len(self.offsets) if self.logit is None else 0
        return powers.sum(axis=-1) + abs(outside)

    def score_error(self, number_of_keys: int) -> ScoreError:
        """Of h·log t: the logarithm, its storing and the product make e = γ_11·h·log t.

        The gain Σ_δ t_δ^h + (N - T), or the sum alone in the limit form, has T exponentials of such
        scores, each eight roundings, and at most T + 1 roundings of sums.
        """
        dtype = score_dtype(self.exponents, self.log_bases)
        u = unit_roundoff(dtype)
        bases = np.abs(np.asarray(self.log_bases, np.float64)).max()
        height = float(np.asarray(self.exponents, np.float64).max() * bases)
        error = gamma(EXP_ERROR + 3, u) * height
        sums = gamma(len(self.offsets) + 1, u)
        gain = error + math.log1p(EXP_ERROR * u) + math.log1p(sums) + math.log1p(u)
        return ScoreError(dtype, error, height, gain)
