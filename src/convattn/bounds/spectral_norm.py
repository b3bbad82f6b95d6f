"""A certain upper bound on the spectral norm of a matrix, from float64.

Let G = WᵀW and V be any square matrix, such as the computed eigenvectors of G. If |VᵀV - I| ≤ η < 1
in the Frobenius norm, V is invertible and λ(G) ≤ λ(VᵀGV)/(1 - η) for the largest eigenvalues
(Ostrowski); and λ(VᵀGV) is at most the largest diagonal entry plus the Frobenius norm r of the rest
(Weyl). `nearly_diagonal` encloses both. Where V is too far from orthogonal, the Frobenius norm of W
is the bound.
"""

import numpy as np
from jaxtyping import Float

from convattn.bounds.tail_energy import INFLATION, nearly_diagonal


def spectral_norm_bound(matrix: Float[np.ndarray, "rows columns"]) -> float:
    """A number that the largest singular value of these float64 numbers does not exceed.

    The matrix is divided by a power of two first, so that no product underflows that matters.

    >>> bound = spectral_norm_bound(np.array([[3.0, 0.0], [4.0, 0.0]]))
    >>> 5 <= bound < 5.001
    True
    """
    if not matrix.size or not matrix.any():
        return 0.0
    exponent = int(np.frexp(np.abs(matrix).max())[1])
    scaled = np.ldexp(matrix if len(matrix) >= len(matrix.T) else matrix.T, -exponent)
    return float(np.ldexp(_scaled_bound(scaled), exponent))


def _scaled_bound(matrix: Float[np.ndarray, "rows columns"]) -> float:
    frobenius = float(np.linalg.norm(matrix)) * INFLATION
    diagonal, rest, eta = nearly_diagonal(matrix, matrix)
    if not eta < 0.5:
        return frobenius
    largest = (diagonal.max() + rest) * INFLATION / (1 - eta)
    return min(frobenius, float(np.sqrt(largest)) * INFLATION)
