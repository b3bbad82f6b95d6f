"""A certain lower bound on σ_(n+1)² + σ_(n+2)² + … of the flattened kernel, from float64.

Let G = FᵀF = Σ_s m(s) w_s w_sᵀ over the distinct rows w_s, which occur m(s) times, and let V be any
square matrix, such as the computed eigenvectors. How good V is decides how sharp the bound is, not
whether it holds.

1. If |VᵀV - I| ≤ η < 1 in the Frobenius norm, then for each k λ_k(VᵀGV) ≤ (1 + η) λ_k(G)
   (Ostrowski; eigenvalues in falling order, all of them ≥ 0).
2. If D is the diagonal of VᵀGV, in falling order, and r bounds the Frobenius norm of the rest, then
   λ_k(VᵀGV) ≥ D_k - r (Weyl).

So σ_k² = λ_k(G) ≥ (D_k - r)/(1 + η). Every product is off by at most γ_n times the product of the
absolute values (`bounds/score_error.py`), which is added to r and to η.

γ_n leaves underflow out. Where the largest entry is 2⁻¹⁵⁰ at least, r is 2⁻³⁵³ at least, and its
inflation adds 2⁻³⁷³, far more than what underflows in a product (2⁻¹⁰⁷⁵ each) or in the squares of
a norm (entries of 2⁻⁵³⁷). Up to 2¹⁵⁰ nothing overflows. All kernels of 32 bits and less are within.
"""

import numpy as np
from jaxtyping import Float, Int

from convattn.operators.roundoff import gamma

ROUNDOFF = 2.0**-53
INFLATION = 1 + 2.0**-20  # for the bounds' own rounding: few operations on nonnegative numbers


def require_range(largest: float, limit: int = 150, name: str = "kernel") -> None:
    """Refuse numbers whose powers may leave the range of float64.

    Args:
        largest: The largest entry in absolute value.
        limit: The binary exponent of the largest one allowed.
        name: Whose entries they are.
    """
    if largest != 0 and not 2.0**-150 <= largest <= 2.0**limit:
        raise ValueError(
            f"the largest entry of {name} is {largest:.3g} in absolute value, but expected zero or "
            f"between 2**-150 and 2**{limit}: powers of it leave the range of float64, so that no "
            "distance could be certified; multiply the kernel by a power of two (squared distances "
            "are then multiplied by its square)"
        )


def tail_energy_bounds(
    rows: Float[np.ndarray, "rows offsets"], counts: Int[np.ndarray, " rows"]
) -> Float[np.ndarray, " heads"]:
    """For n = 0, …, T a number that Σ_(k > n) σ_k² is certain not to go below.

    Args:
        rows, counts: The distinct rows of F and how often each occurs, from `distinct_rows`; counts
            below 2²⁰, rows exact in float64, the largest entry zero or in [2⁻¹⁵⁰, 2¹⁵⁰].

    >>> bounds = tail_energy_bounds(np.array([[3.0, 0.0], [0.0, 1.0]]), np.array([1, 2]))
    >>> bounds.round(6).tolist(), bool((bounds <= [11, 2, 0]).all())
    ([11.0, 2.0, 0.0], True)
    """
    require_range(float(np.abs(rows).max(initial=0.0)))
    size = rows.shape[1]
    diagonal, rest, eta = nearly_diagonal(rows * counts[:, None], rows)
    low = np.maximum(0.0, np.sort(diagonal)[::-1] - rest * INFLATION) / (1 + eta)
    tails = np.concatenate([np.cumsum(low[::-1])[::-1], [0.0]])
    return tails * (1 - gamma(size + 6, ROUNDOFF))


def nearly_diagonal(
    left: Float[np.ndarray, "rows columns"], right: Float[np.ndarray, "rows columns"]
) -> tuple[Float[np.ndarray, " columns"], float, float]:
    """The diagonal of VᵀGV for the symmetric G = leftᵀ·right, r and η, V its computed eigenvectors.

    r bounds the Frobenius norm of what is beside the diagonal, all rounding included, and η that of
    VᵀV - I.
    """
    columns = right.shape[1]
    gram = left.T @ right
    vectors = np.linalg.eigh(gram)[1]
    spread = np.abs(left).T @ np.abs(right)
    gram_error = gamma(len(right) + 2, ROUNDOFF) * spread * INFLATION
    magnitude = np.abs(vectors)
    turned = vectors.T @ gram @ vectors
    turned_error = (
        magnitude.T @ (gram_error + gamma(2 * columns + 2, ROUNDOFF) * np.abs(gram)) @ magnitude
    )
    overlap = vectors.T @ vectors - np.eye(columns)
    overlap_error = gamma(columns + 1, ROUNDOFF) * (magnitude.T @ magnitude + np.eye(columns))
    eta = (np.linalg.norm(overlap) + np.linalg.norm(overlap_error)) * INFLATION
    diagonal = np.diag(turned)
    rest = np.linalg.norm(turned - np.diag(diagonal)) + np.linalg.norm(turned_error)
    return diagonal, float(rest), float(eta)
