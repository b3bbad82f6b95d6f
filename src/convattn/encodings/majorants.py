"""Majorants of scores: how far computed scores, and their derivatives, can be off.

Every score of this library is a sum of products of parameters, of content and of distances |δ - Δ|,
or log1p of such a product. Let s⁺ be the same sum with every term made positive. Each term is
computed with at most n roundings on its longest path (the lengths of its sums and 16 more,
log1p counting as eight), so, with γ_n = n·u/(1 - n·u), in whatever order they are
summed,

    |computed s - s| ≤ γ_n s⁺.

A derivative ∂s/∂θ is such a sum as well, with ∂s⁺/∂|θ| for its majorant. So one function gives
both: s⁺ is written in terms of `rising(value, parameter)`, which is |value| and has the derivative
one, and the transpose of its derivative takes a majorant of the cotangents of the scores to one of
the cotangents of the parameters.

*Encoding by encoding.* For scores that depend on the shift alone s⁺ is the score with every
term made positive; its derivatives are those of the terms, made positive as well.

An encoding gives its s⁺ (`shift_majorant`, or `score_majorant` where scores are of pairs) and its n
beyond 16 (`roundings`) beside its scores.
"""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float, Num


def magnitude(parameter: Num[Array, "*shape"]) -> Num[Array, "*shape"]:
    """|parameter|, with the derivative one.

    >>> import jax
    >>> [float(part) for part in jax.value_and_grad(magnitude)(jnp.array(-3.0))]
    [3.0, 1.0]
    """
    return rising(parameter, parameter)


def rising(value: Array, parameter: Array) -> Array:
    """|value|, with the derivative one in `parameter`."""
    return jnp.abs(lax.stop_gradient(value)) + (parameter - lax.stop_gradient(parameter))


def distances(shifts: np.ndarray, centers: Array) -> Float[Array, "heads shifts axes"]:
    """|δ - Δ| on each axis."""
    centers = centers[:, None, :]
    return rising(centers - jnp.asarray(shifts, centers.dtype)[None], centers)


@dataclass(frozen=True)
class ScoreError:
    """How exactly the scores of an encoding are computed.

    Attributes:
        dtype: Of the scores.
        absolute: e, how far each score can be off.
        range: S, how far the scores of a row lie apart.
        gain: The logarithm of the factor by which a head gain, and its product with the weight, can
            be off.
    """

    dtype: np.dtype
    absolute: float
    range: float
    gain: float
