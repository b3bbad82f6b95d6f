"""Where a Gaussian head looks: the ellipses that hold a share of its attention.

The attention of a head around a query falls off as a Gaussian N(Δ, Σ) with Σ⁻¹ = RᵀR. If δ is drawn
from it, R(δ - Δ) is N(0, I) in two dimensions, whose squared length exceeds t with probability
exp(-t/2). So the share p lies in

    |R(δ - Δ)|² ≤ -2 ln(1 - p).

With R = U diag(s) Vᵀ that is Σ_i s_i² (v_i·(δ - Δ))² ≤ ρ², ρ² = -2 ln(1 - p): an ellipse with
semi-axes ρ/s_i along the v_i. (On the pixels of an image the share is that up to discretisation and
borders.)
"""

import math
from dataclasses import dataclass

import numpy as np

SHARES = {0.5: "solid", 0.9: "dotted"}


@dataclass(frozen=True)
class Ellipse:
    """An ellipse in (row, column).

    Attributes:
        center: `[2]`.
        semi_axes: `[2]`, rising; infinite where Σ⁻¹ is singular.
        directions: `[2, 2]`, a unit vector for each.
    """

    center: np.ndarray
    semi_axes: np.ndarray
    directions: np.ndarray

    @property
    def half_extents(self) -> np.ndarray:
        """How far it reaches from its centre in rows and in columns."""
        parts = np.zeros((2, 2))
        reached = self.directions != 0  # 0·∞ is nothing
        np.multiply(np.abs(self.directions), self.semi_axes[:, None], out=parts, where=reached)
        return np.hypot(*parts)

    @property
    def angle(self) -> float:
        """Of the first semi-axis, in degrees from the columns' axis towards the rows'."""
        return math.degrees(math.atan2(self.directions[0, 0], self.directions[0, 1]))


def radius(share: float) -> float:
    """ρ with P(|N(0, I₂)| ≤ ρ) = share.

    Args:
        share: In [0, 1).

    >>> round(radius(1 - math.exp(-2)), 12)
    2.0
    """
    return math.sqrt(-2 * math.log1p(-share))


def head_ellipse(center: np.ndarray, root: np.ndarray, share: float) -> Ellipse | None:
    """The ellipse that holds that share of a head's Gaussian, or None where there is none.

    There is none if a number is not finite, or if R = 0: the head looks everywhere.

    Args:
        center: Δ, `[2]`.
        root: R, `[2, 2]`.

    >>> found = head_ellipse(np.zeros(2), np.diag([2.0, 0.5]), 1 - math.exp(-2))
    >>> found.semi_axes.round(12).tolist()
    [1.0, 4.0]
    """
    if not (np.isfinite(center).all() and np.isfinite(root).all()) or not root.any():
        return None
    _, scales, directions = np.linalg.svd(root.astype(np.float64))
    with np.errstate(divide="ignore", over="ignore"):
        semi_axes = radius(share) / scales
    return Ellipse(center.astype(np.float64), semi_axes, directions)
