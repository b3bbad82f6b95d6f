"""Which Gaussian heads are degenerate, by the criterion of C20, appendix E.

With Σ⁻¹ = RᵀR and the singular values s_1 ≥ s_2 of R, the eigenvalues of Σ⁻¹ are s_1² and s_2². A
head is degenerate if

    s_1² < 10⁻⁵   (it looks everywhere alike)   or   s_1²/s_2² > 10⁵   (it looks at a stripe).

The singular values are those of R itself: the eigenvalues of a computed RᵀR would carry rounding of
s_1²·2⁻⁵³, that of R with a condition number squared.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

LEAST_EIGENVALUE = 1e-5
MOST_CONDITION = 1e5


@dataclass(frozen=True)
class Thresholds:
    """What counts as degenerate.

    Attributes:
        eigenvalue: A head is degenerate if the largest eigenvalue of Σ⁻¹ is smaller than this,.
        condition: Or if its condition number is larger than this.

    Raises:
        ValueError: For a number that is not positive and finite.

    Source: C20, appendix E.
    """

    eigenvalue: float = LEAST_EIGENVALUE
    condition: float = MOST_CONDITION

    def __post_init__(self) -> None:
        """Refuse what compares with nothing."""
        for name in ("eigenvalue", "condition"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(
                    f"the threshold {name}={getattr(self, name)}, but expected a number > 0 that "
                    "is finite"
                )


def degenerate_heads(
    root_precision: Float[np.ndarray, "heads 2 2"], thresholds: Thresholds | None = None
) -> Bool[np.ndarray, "heads"]:
    """Whether each head is degenerate.

    Args:
        root_precision: R with Σ⁻¹ = RᵀR. If R is singular its condition number is infinite.
        thresholds: The paper's if not given.

    Raises:
        ValueError: For a number that is not finite.

    >>> roots = np.array([np.eye(2), np.eye(2) / 1000, np.diag([1.0, 0.001]), np.diag([1.0, 0.0])])
    >>> degenerate_heads(roots).tolist()
    [False, True, True, True]
    """
    if not np.isfinite(root_precision).all():
        bad = np.flatnonzero(~np.isfinite(root_precision).all(axis=(1, 2)))
        raise ValueError(
            f"Σ^(-1/2) is not finite in heads {(bad + 1).tolist()}, so the training has failed "
            "there; prune an earlier checkpoint, or train again with a lower learning rate"
        )
    given = thresholds or Thresholds()
    if not len(root_precision):
        return np.zeros(0, bool)
    largest, least = np.linalg.svd(root_precision.astype(np.float64), compute_uv=False).T
    with np.errstate(divide="ignore", invalid="ignore"):
        condition = np.where(least > 0, (largest / least) ** 2, np.inf)
    return (largest**2 < given.eigenvalue) | (condition > given.condition)
