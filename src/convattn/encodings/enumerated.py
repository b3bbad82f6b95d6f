"""S.dp2: two positional features suffice for one-hot attention, in two dimensions too.

Number the offsets that matter, n = 0, 1, …; let every other shift share one spare number. With
r_δ = (n, n²) and v_h = -α(-2 n_h, 1) the score is

    v_h·r_δ = -α(n² - 2 n n_h) = -α(n - n_h)² + α n_h²,

and softmax drops the constant: among the numbers, n_h alone attains the maximum, and every other
number is at least 1 away. One numbering serves every image size, because whatever lies outside the
offsets shares the spare number. The class computes the centred form -α(n - n_h)².
"""

from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int, Num

from convattn.encodings.base import OffsetTable, score_dtype
from convattn.encodings.majorants import distances, magnitude
from convattn.operators.shifts import Shift


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class EnumeratedEncoding(OffsetTable):
    """Scores -α_h (n(δ) - n_h)², where n(δ) is the number of the shift.

    Attributes:
        alpha: α_h > 0; one-hot in the limit α → ∞.
        targets: n_h, the number that the head looks for.
        offsets: The numbered shifts, in the order of `codes`.
        codes: Distinct integers, one for each offset.
        spare: The number of every other shift, different from all codes.

    Source: S.dp2 of this project's ledger, D_p = 2; C20 Lemma 2 asks for D_p ≥ 3.

    >>> encoding = EnumeratedEncoding(jnp.array([1.0]), jnp.array([1.0]), ((0,), (1,)), (0, 1), 2)
    >>> encoding.shift_scores(np.array([[-5], [0], [1]]), 9).tolist()
    [[-1.0, -1.0, -0.0]]
    """

    alpha: Num[Array, " heads"]
    targets: Num[Array, " heads"]
    offsets: tuple[Shift, ...] = field(metadata={"static": True})
    codes: tuple[int, ...] = field(metadata={"static": True})
    spare: int = field(metadata={"static": True})

    def entries(self) -> int:
        """How many entries the arrays hold."""
        return len(self.codes)

    def shift_codes(self, shifts: Int[np.ndarray, "shifts axes"]) -> Int[np.ndarray, " shifts"]:
        """n(δ) for each shift."""
        return np.array([*self.codes, self.spare])[self.rows(shifts)]

    def shift_scores(
        self, shifts: Int[np.ndarray, "shifts axes"], number_of_keys: int | Array
    ) -> Float[Array, "heads shifts"]:
        """The centred form."""
        dtype = score_dtype(self.alpha, self.targets)
        codes = jnp.asarray(self.shift_codes(shifts), dtype)
        difference = codes[None, :] - self.targets[:, None].astype(dtype)
        return -self.alpha[:, None].astype(dtype) * difference**2

    def shift_majorant(
        self, shifts: Int[np.ndarray, "shifts axes"], number_of_keys: int
    ) -> Float[Array, "heads shifts"]:
        """The sum of the magnitudes of its terms at each shift."""
        codes = self.shift_codes(shifts)[:, None]
        squares = distances(codes, self.targets[:, None])[..., 0] ** 2
        return magnitude(self.alpha)[:, None] * squares
