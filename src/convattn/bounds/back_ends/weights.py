"""How far the attention weights that any back end computes can be off, each by its own bound.

Let a head have the scores s_k at the keys of a query, with the greatest m, and let the computed
ones be off by e_k (`scores.py`). The arguments of exp are off by

    E_k = e_k(1 + u) + u(m - s_k + max e),

the sum of the exponentials by a factor between Σ A e^(-E) and Σ A e^E, and by convexity both its
logarithm and that of the reciprocal are at most log Σ A e^E in magnitude. exp counts as eight
roundings. So the computed weight is A_k(1 + η_k) with

    |η_k| ≤ e^(λ_k) - 1,   λ_k = E_k + log Σ_j A_j e^(E_j) + κ,

where κ collects the relative roundings: exp twice, a sum of at most N + T + 8 terms, quotients and
products, all of it once for each axis, since a back end may multiply the softmaxes of the axes.
(The E and the logarithms of the axes add up to those of the whole: Σ A e^E factors as A does.)

*One number at all shifts but a few.* A back end may write such a row as c at every key and A_k - c
at the few, c the weight of a key without an entry: Σ_k A_k X_k = Σ_k c X_k + Σ_few (A_k - c) X_k.
Its terms are bounded by B_k = c + |A_k - c| in place of A_k, and c + A_k ≤ 2B_k, so that the
difference of the two, each off by its own factor, is off by A_k(e^(λ_k) - 1) + 2c(e^(λ_c) - 1).

*Underflow.* A weight in the subnormal range may be read as zero, which moves every weight by less
than (2N + 16)·tiny for each axis.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from convattn.bounds.back_ends.scores import PairScores


class WeightRounding(NamedTuple):
    """Majorants of the weights, and bounds on their errors.

    Attributes:
        weights: B, `[heads, queries, keys]`, with a batch axis before if there is content.
        error: ΔB, of the same shape: how far each weight can be off.
        background: c, `[heads, queries, 1]`, or None.
        background_error: How far c can be off, or None.
    """

    weights: Array
    error: Array
    background: Array | None
    background_error: Array | None


def weight_rounding(
    scores: PairScores,
    error: PairScores,
    unit: float | Array,
    relative: float | Array,
    flush: float | Array,
) -> WeightRounding:
    """B and ΔB of the derivation.

    Args:
        scores: Exact ones, in float64.
        error: e, how far each can be off.
        unit: u.
        relative: κ.
        flush: What underflow adds to each weight.

    >>> exact, off = PairScores(jnp.zeros((1, 1, 4)), None), PairScores(jnp.zeros((1, 1, 4)), None)
    >>> found = weight_rounding(exact, off, *jnp.array([0.0, 0.5, 0.0]))
    >>> found.weights[0, 0, 0].item(), round(found.error[0, 0, 0].item(), 4)
    (0.25, 0.1622)
    """
    greatest = scores.pairs.max(axis=-1, keepdims=True)
    normalizer = jax.nn.logsumexp(scores.pairs, axis=-1, keepdims=True)
    slack = unit * error.pairs.max(axis=-1, keepdims=True)

    def exponent(score: Array, off: Array) -> Array:
        return off * (1 + unit) + unit * jnp.abs(greatest - score) + slack

    here = exponent(scores.pairs, error.pairs)
    weights = jnp.exp(scores.pairs - normalizer)
    # Σ A = 1, so that log Σ A e^E is the log1p below, which keeps what is tiny.
    spread = jnp.log1p((weights * jnp.expm1(here)).sum(axis=-1, keepdims=True)) + relative
    wrong = weights * jnp.expm1(here + spread) + flush
    if scores.background is None or error.background is None:
        return WeightRounding(weights, wrong, None, None)
    background = scores.background[:, None, None]
    everywhere = jnp.exp(background - normalizer)
    off = everywhere * jnp.expm1(exponent(background, error.background[:, None, None]) + spread)
    off = off + flush
    majorant = everywhere + jnp.abs(weights - everywhere)
    return WeightRounding(majorant, wrong + 2 * off, everywhere, off)
