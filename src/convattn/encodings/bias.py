"""The relative bias of L21: a table of scores by shift, zero where the table has no entry.

L21 Lemma 2 puts M at one shift and zero elsewhere. Over N keys the softmax of that is

    e^M/(e^M + N - 1) at the shift,   1/(e^M + N - 1) at every other key:

the uniform distribution J with weight ε = N/(e^M + N - 1), and the one-hot with weight 1 - ε. So a
*uniform weight* ε that shall be the same on every image needs M(N) = log(1 + N(1/ε - 1)): with
`uniform_weight` set, the table is multiplied by that M(N) when the layer meets its keys.
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
from convattn.operators.roundoff import EXP_ERROR, gamma, unit_roundoff
from convattn.operators.shifts import Shift


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class BiasEncoding(OffsetTable):
    """Scores b_h(δ), or M(N)·b_h(δ) with a leak.

    Attributes:
        values: The bias of each head at each of `offsets`.
        uniform_weight: ε in (0, 1), or None for a table in plain units.
        offsets: The shifts that have an entry; every other shift has bias 0.

    Source: L21 eq. 4 and Lemma 2 (whose b is indexed by query - key: δ = -(x_i - x_j)).

    >>> encoding = BiasEncoding(jnp.array([[1.0]]), jnp.array(0.5), ((1,),))
    >>> scores = encoding.shift_scores(np.array([[0], [1], [2]]), 3)
    >>> (6 * jax.nn.softmax(scores)).round(3).tolist()  # half one-hot, half uniform
    [[1.0, 4.0, 1.0]]
    """

    values: Num[Array, "heads offsets"]
    uniform_weight: Num[Array, ""] | None
    offsets: tuple[Shift, ...] = field(metadata={"static": True})

    @property
    def is_exact_form(self) -> bool:
        """Whether it is exact at finite parameters."""
        return self.uniform_weight is not None

    def entries(self) -> int:
        """How many entries the arrays hold."""
        return self.values.shape[1]

    def scale(self, number_of_keys: int | Array) -> Float[Array, ""]:
        """M(N) = log(1 + N(1/ε - 1)), or one without a leak; N may be traced."""
        dtype = score_dtype(self.values)
        if self.uniform_weight is None:
            return jnp.ones((), dtype)
        uniform_weight = self.uniform_weight.astype(dtype)
        return jnp.log1p(number_of_keys * ((1 - uniform_weight) / uniform_weight))

    def shift_scores(
        self, shifts: Int[np.ndarray, "shifts axes"], number_of_keys: int | Array
    ) -> Float[Array, "heads shifts"]:
        """The entry of each shift, times M(N) if there is a leak."""
        dtype = score_dtype(self.values)
        values = self.values.astype(dtype) * self.scale(number_of_keys)
        background = jnp.zeros((values.shape[0], 1), dtype)
        return jnp.concatenate([values, background], axis=-1)[:, self.rows(shifts)]

    def check(self) -> None:
        """Refuse a leak outside (0, 1).

        Raises:
            ValueError: As described above, and as `OffsetTable.check` does.
        """
        super().check()
        if self.uniform_weight is not None and not 0 < self.uniform_weight < 1:
            raise ValueError(
                f"encoding.uniform_weight={float(self.uniform_weight)} in "
                f"{self.uniform_weight.dtype}, but expected a number strictly between 0 and 1; has "
                "one near them been rounded?"
            )

    def shift_majorant(
        self, shifts: Int[np.ndarray, "shifts axes"], number_of_keys: int
    ) -> Float[Array, "heads shifts"]:
        """The sum of the magnitudes of its terms at each shift."""
        values = BiasEncoding(magnitude(self.values), None, self.offsets)
        table = values.shift_scores(shifts, number_of_keys)
        if self.uniform_weight is None:
            return table
        weight = self.uniform_weight

        def scale(uniform_weight: Array) -> Array:
            return jnp.log1p(number_of_keys * ((1 - uniform_weight) / uniform_weight))

        height, slope = jax.value_and_grad(scale)(lax.stop_gradient(weight))
        return table * (height - slope * (weight - lax.stop_gradient(weight)))

    def score_error(self, number_of_keys: int) -> ScoreError:
        """Of M(N) = log1p(x), x = N(1/ε - 1), in the dtype of the scores, u its roundoff.

        exp, log and log1p count as eight roundings. x takes six (a quotient may be a product with a
        reciprocal), which move log1p(x) by at most γ_7·x/(1+x) ≤ γ_7·log1p(x). So e = γ_15·M(N),
        and the other scores are zero.
        """
        if self.uniform_weight is None:
            return super().score_error(number_of_keys)
        dtype, uniform_weight = score_dtype(self.values), float(self.uniform_weight)
        height = math.log1p(number_of_keys * (1 - uniform_weight) / uniform_weight)
        error = gamma(EXP_ERROR + 7, unit_roundoff(dtype)) * height
        return ScoreError(dtype, error, height, 0.0)
