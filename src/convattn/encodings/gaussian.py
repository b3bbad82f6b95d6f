"""The general Gaussian encoding of C20, appendix E: any centre, any covariance.

    -½(δ - Δ)ᵀ Σ⁻¹ (δ - Δ) = v·r_δ + constant, r_δ = (δ_1, δ_2, δ_1², δ_2², δ_1δ_2),   v =
    ½(2(Σ⁻¹Δ)_1, 2(Σ⁻¹Δ)_2, -Σ⁻¹_11, -Σ⁻¹_22, -2Σ⁻¹_12).

Like C20 the class holds a square root R of Σ⁻¹ = RᵀR, so that Σ⁻¹ stays positive semi-definite
whatever training does to R, and computes -½|R(δ - Δ)|².
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int, Num

from convattn.encodings.base import RelativePosition, check_axes, score_dtype
from convattn.encodings.majorants import distances, magnitude
from convattn.operators.attention import HIGHEST


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class GaussianEncoding(RelativePosition):
    """Scores -½ |R_h (δ - Δ_h)|².

    Attributes:
        centers: Δ_h.
        root_precision: R_h with Σ_h⁻¹ = R_hᵀR_h. R = √(2α)·I is the quadratic encoding with that α.

    Source: C20 eq. 19, D_p = 5 (2 for sequences).

    >>> encoding = GaussianEncoding(jnp.zeros((1, 2)), jnp.array([[[2.0, 0.0], [0.0, 1.0]]]))
    >>> encoding.shift_scores(np.array([[1, 0], [0, 1]]), 9).tolist()
    [[-2.0, -0.5]]
    """

    centers: Num[Array, "heads axes"]
    root_precision: Num[Array, "heads axes axes"]

    def shift_scores(
        self, shifts: Int[np.ndarray, "shifts axes"], number_of_keys: int | Array
    ) -> Float[Array, "heads shifts"]:
        """The centred form."""
        check_axes(shifts, self.centers.shape[-1], "GaussianEncoding")
        dtype = score_dtype(self.centers, self.root_precision)
        difference = jnp.asarray(shifts, dtype)[None] - self.centers[:, None, :].astype(dtype)
        scaled = jnp.einsum(
            "hij,hsj->hsi", self.root_precision.astype(dtype), difference, precision=HIGHEST
        )
        return -jnp.sum(scaled**2, axis=-1) / 2

    def shift_majorant(
        self, shifts: Int[np.ndarray, "shifts axes"], number_of_keys: int
    ) -> Float[Array, "heads shifts"]:
        """The sum of the magnitudes of its terms at each shift."""
        far = distances(shifts, self.centers)
        scaled = jnp.einsum("hij,hsj->hsi", magnitude(self.root_precision), far)
        return (scaled**2).sum(axis=-1) / 2

    @property
    def roundings(self) -> int:
        """Those of a score beyond 16."""
        return 4 * self.centers.shape[1]


def gaussian_features(
    shifts: Int[np.ndarray, "shifts 2"],
) -> Int[np.ndarray, "shifts 5"]:
    """r_δ = (δ_1, δ_2, δ_1², δ_2², δ_1δ_2) of C20 eq. 19.

    >>> gaussian_features(np.array([[2, -3]])).tolist()
    [[2, -3, 4, 9, -6]]
    """
    first, second = shifts[:, 0], shifts[:, 1]
    return np.stack([first, second, first**2, second**2, first * second], axis=-1)


def gaussian_target(
    precision: Num[Array, "heads 2 2"], centers: Num[Array, "heads 2"]
) -> Num[Array, "heads 5"]:
    """v_h of C20 eq. 19 from Σ_h⁻¹ (symmetric) and Δ_h.

    >>> gaussian_target(jnp.array([[[2.0, 1.0], [1.0, 4.0]]]), jnp.array([[1.0, 0.0]])).tolist()
    [[2.0, 1.0, -1.0, -2.0, -1.0]]
    """
    linear = jnp.einsum("hij,hj->hi", precision, centers, precision=HIGHEST)
    curvature = [-precision[:, 0, 0] / 2, -precision[:, 1, 1] / 2, -precision[:, 0, 1]]
    return jnp.concatenate([linear, jnp.stack(curvature, axis=-1)], axis=-1)
