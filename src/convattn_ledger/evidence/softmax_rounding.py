"""How far softmax heads in floating point can be from exact ones, weight by weight.

One row of exact scores s: let d_k = max s - s_k ≥ 0, n_k = e^(-d_k), Z = Σ n_k ≥ 1, w_k = n_k/Z.
In the dtype in which softmax runs, with unit roundoff u and least normal number t:

1. Every score is off by at most e. The computed maximum is common to the row and cancels, so the
   argument of exp is off by E_k = e + u(d_k + 2e): the score's error and the subtraction's.
2. exp is off by at most 8u (four units in the last place). With F_k = e^(E_k)(1 + 8u) the computed
   n_k lies within (F_k - 1)·n_k, and t where it underflows.
3. The sum, in any order, is off by at most ζ·Z, with
   1 + ζ = (1 + Σ n_k(F_k - 1)/Z + N·t)(1 + γ_N).
4. The division is one rounding, or two as a reciprocal and a product; it may underflow too.

So the weight is off by at most w_k(F_k(1 + u)²/(1 - ζ) - 1) + 3t, provided that ζ ≤ 1/2.

The exact weights are not known as floats either: the reference is computed in float64 by NumPy and
is itself within this bound for float64, which is added. What is evaluated in float64 on the way to
the bound is off by far less than the 2⁻²⁰ by which the bound is inflated.

Mixing N tokens, Σ_k w_k X_k, adds γ_N Σ |w_k X_k| in the dtype of the sum, and the cast of the
result half a unit in the last place, or half its least subnormal number.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Float

from convattn.operators.arrays import accumulation_dtype
from convattn.operators.roundoff import EXP_ERROR, gamma, unit_roundoff

INFLATION = 1 + 2.0**-20
ASSUMPTION = (
    "exp is within 4 units in the last place, in JAX and in NumPy; matrix products are sums of "
    "products in the pinned precision"
)


class Within(NamedTuple):
    """A reference in float64, and how far a result in the dtype may be from it, entry by entry."""

    reference: np.ndarray
    bound: np.ndarray


def weights_within(
    scores: Float[np.ndarray, "queries keys"], dtype: DTypeLike, score_error: float = 0.0
) -> Within:
    """Softmax of exactly known scores, and the bound of this module.

    Args:
        scores: Exact numbers, held in float64 without rounding.
        dtype: Of the parameters; softmax runs in at least float32.
        score_error: e, how far the scores computed in that dtype may be from these.

    Raises:
        ValueError: Where nothing can be said: ζ > 1/2.

    >>> reference, bound = weights_within(np.zeros((1, 4)), "float32")
    >>> reference.tolist(), bool(bound.max() < 1e-6)
    ([[0.25, 0.25, 0.25, 0.25]], True)
    """
    below = scores.max(axis=1, keepdims=True) - scores
    powers = np.exp(-below)
    total = powers.sum(axis=1, keepdims=True)
    weights = powers / total
    bound = np.zeros_like(weights)
    for working, error in ((accumulation_dtype(dtype), score_error), (np.float64, 0.0)):
        roundoff = unit_roundoff(working)
        least = float(jnp.finfo(working).tiny)
        factor = np.exp(error + roundoff * (below + 2 * error)) * (1 + EXP_ERROR * roundoff)
        keys = scores.shape[1]
        excess = (powers * (factor - 1)).sum(axis=1, keepdims=True) / total
        off = (1 + excess + keys * least) * (1 + gamma(keys, roundoff)) - 1
        if not off.max() <= 0.5:
            raise ValueError(
                f"score_error={score_error} leaves the sum of {keys} weights in {working} off by "
                f"up to {off.max():.2g} of itself, so there is no bound; compute the scores more "
                "exactly, or in a wider dtype"
            )
        bound += weights * (factor * (1 + roundoff) ** 2 / (1 - off) - 1) + 3 * least
    return Within(weights, bound * INFLATION)


def mixture_within(
    weights: Within, tokens: Float[np.ndarray, "keys columns"], dtype: DTypeLike
) -> Within:
    """Σ_k w_k X_k for exactly known tokens, and how far a result cast to `dtype` may be from it.

    >>> exact = Within(np.eye(2), np.zeros((2, 2)))
    >>> mixture_within(exact, np.ones((2, 1)), "float32").bound.shape
    (2, 1)
    """
    reference = weights.reference @ tokens
    magnitude = np.abs(tokens)
    drift = weights.bound @ magnitude
    largest = weights.reference @ magnitude + drift
    keys = tokens.shape[0]
    summing = gamma(keys, unit_roundoff(accumulation_dtype(dtype)))
    summing += gamma(keys, unit_roundoff(np.float64))  # the reference's own
    casting = unit_roundoff(dtype)
    least = float(jnp.finfo(dtype).smallest_subnormal)
    bound = drift + largest * (summing + casting * (1 + summing)) + least
    return Within(reference, bound * INFLATION)
