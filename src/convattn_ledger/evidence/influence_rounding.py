"""How far an attention convolution in floating point can be from the exact one.

The scores, x and Θ are known exactly. Softmax puts each weight off by at most what
`softmax_rounding` derives, column by column, over the keys that the mask lets through; a masked
weight is exactly zero. The sums over M keys, P channels, K heads and whatever lies between a value
and an output map, in any order of contraction, have at most L = MP + K(M + P) + inner terms one
after the other, so that with the majorant G = Σ_k w_kᵀ |x| |Θ_k| and the drift
D = Σ_k b_kᵀ |x| |Θ_k|, b_k the bound of the weights,

    |computed - exact| ≤ D + γ_L (G + D),

and the reference, which NumPy computes in float64, is within γ_L G in float64 of the exact one.
"""

import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Bool, Float

from convattn.operators.arrays import accumulation_dtype
from convattn.operators.roundoff import gamma, unit_roundoff
from convattn_ledger.evidence.softmax_rounding import INFLATION, Within, weights_within


def column_weights_within(
    scores: Float[np.ndarray, "heads keys queries"],
    dtype: DTypeLike,
    mask: Bool[np.ndarray, "keys queries"] | None = None,
    score_error: float = 0.0,
) -> Within:
    """Softmax over the keys that the mask lets through, and how far it may be off.

    >>> reference, bound = column_weights_within(np.zeros((1, 2, 1)), "float32")
    >>> reference.ravel().tolist(), bool(bound.max() < 1e-6)
    ([0.5, 0.5], True)
    """
    reference, bound = np.zeros_like(scores), np.zeros_like(scores)
    allowed = np.ones(scores.shape[1:], bool) if mask is None else mask
    for query in range(scores.shape[2]):
        keys = allowed[:, query]
        each = weights_within(scores[:, keys, query], dtype, score_error)
        reference[:, keys, query], bound[:, keys, query] = each
    return Within(reference, bound)


def attention_within(
    weights: Within,
    x: Float[np.ndarray, "keys in_channels"],
    theta: Float[np.ndarray, "heads in_channels out_channels"],
    dtype: DTypeLike,
    *,
    magnitude: Float[np.ndarray, "heads in_channels out_channels"] | None = None,
    inner: int = 0,
) -> Within:
    """Σ_k A_kᵀ x Θ_k, and how far a result in the accumulation dtype of `dtype` may be from it.

    Args:
        weights: From `column_weights_within`.
        x, theta: Exact numbers.
        magnitude: |Θ_value||Θ_O|ᵀ where Θ is applied as two maps; else |Θ|.
        inner: K·D where Θ is applied as two maps of width D.

    >>> exact = Within(np.ones((1, 2, 1)) / 2, np.zeros((1, 2, 1)))
    >>> attention_within(exact, np.array([[1.0], [3.0]]), np.ones((1, 1, 1)), "float32").reference
    array([[2.]])
    """
    formula = "kmn,mp,kpq->nq"
    sizes = np.abs(x), np.abs(theta) if magnitude is None else magnitude
    reference = np.einsum(formula, weights.reference, x, theta)
    drift = np.einsum(formula, weights.bound, *sizes)
    largest = np.einsum(formula, weights.reference, *sizes) + drift
    (keys, channels), heads = x.shape, theta.shape[0]
    length = keys * channels + heads * (keys + channels) + inner
    summing = gamma(length, unit_roundoff(accumulation_dtype(dtype)))
    summing += gamma(length, unit_roundoff(np.float64))
    return Within(reference, (drift + largest * summing) * INFLATION)
