"""The quadratic encoding of C20: an isotropic Gaussian around a centre.

C20 eq. 9 writes the score as a product of three features,

    v·r_δ = -α(1, -2Δ_1, -2Δ_2)·(|δ|², δ_1, δ_2) = -α|δ - Δ|² + α|Δ|²,

and softmax drops the constant α|Δ|². The right-hand side without it is the *centred* form. It is
what this class computes: the printed form takes the difference of two large numbers and loses the
target to rounding on large images (see `convattn audit`). `printed_features` gives r_δ and v for
those who want eq. 9 itself.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int, Num

from convattn.encodings.axis_scores import AxisScores, axis_shifts, free_groups
from convattn.encodings.base import RelativePosition, check_axes, score_dtype
from convattn.encodings.majorants import distances, magnitude
from convattn.operators.shifts import TokenGrid


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class QuadraticEncoding(RelativePosition):
    """Scores -α_h |δ - Δ_h|².

    Attributes:
        alpha: α_h > 0, the inverse width; attention is one-hot in the limit α → ∞.
        centers: Δ_h, where the head looks, in tokens; any real numbers.

    Source: C20 eqs. 9, 14 and 18, D_p = 3 (2 for sequences).

    >>> encoding = QuadraticEncoding(jnp.array([2.0]), jnp.array([[1.0]]))
    >>> encoding.shift_scores(np.array([[-1], [0], [1]]), 3).tolist()
    [[-8.0, -2.0, -0.0]]
    """

    alpha: Num[Array, " heads"]
    centers: Num[Array, "heads axes"]

    def shift_scores(
        self, shifts: Int[np.ndarray, "shifts axes"], number_of_keys: int | Array
    ) -> Float[Array, "heads shifts"]:
        """The centred form: exact for integer centres, α a power of two and |δ - Δ|² below 2²⁴."""
        check_axes(shifts, self.centers.shape[-1], "QuadraticEncoding")
        dtype = score_dtype(self.alpha, self.centers)
        difference = jnp.asarray(shifts, dtype)[None] - self.centers[:, None, :].astype(dtype)
        return -self.alpha[:, None].astype(dtype) * jnp.sum(difference**2, axis=-1)

    def axis_scores(self, grid: TokenGrid) -> AxisScores:
        """-α_h (δ_a - Δ_ha)² for each axis a: every head has its own rows and its own columns."""
        check_axes(grid.query_positions, self.centers.shape[-1], "QuadraticEncoding")
        dtype = score_dtype(self.alpha, self.centers)
        alpha = self.alpha[:, None, None].astype(dtype)
        scores = []
        for axis in range(self.centers.shape[-1]):
            center = self.centers[:, axis, None, None].astype(dtype)
            shifts = jnp.asarray(axis_shifts(grid, axis), dtype)[None]
            scores.append(-alpha * (shifts - center) ** 2)
        return AxisScores(tuple(scores), free_groups(self.heads, len(scores)))

    def shift_majorant(
        self, shifts: Int[np.ndarray, "shifts axes"], number_of_keys: int
    ) -> Float[Array, "heads shifts"]:
        """The sum of the magnitudes of its terms at each shift."""
        squares = distances(shifts, self.centers) ** 2
        return magnitude(self.alpha)[:, None] * squares.sum(axis=-1)

    @property
    def roundings(self) -> int:
        """Those of a score beyond 16."""
        return 0


def printed_features(
    shifts: Int[np.ndarray, "shifts axes"],
) -> Int[np.ndarray, "shifts position_features"]:
    """r_δ = (|δ|², δ_1, …) of C20 eq. 9: D_p = 3 for images, 2 for sequences.

    >>> printed_features(np.array([[1, -2]])).tolist()
    [[5, 1, -2]]
    """
    return np.concatenate([(shifts**2).sum(-1, keepdims=True), shifts], axis=-1)


def printed_target(
    alpha: Num[Array, " heads"], centers: Num[Array, "heads axes"]
) -> Num[Array, "heads position_features"]:
    """v_h = -α(1, -2Δ_1, …) of C20 eq. 9.

    >>> printed_target(jnp.array([2]), jnp.array([[1, 0]])).tolist()
    [[-2, 4, 0]]
    """
    ones = jnp.ones((*centers.shape[:-1], 1), centers.dtype)
    return -alpha[:, None] * jnp.concatenate([ones, -2 * centers], axis=-1)
