"""The constants of rounding analysis: the unit roundoff, γ_n, and what is assumed of exp."""

import math

import jax.numpy as jnp
from jax.typing import DTypeLike

from convattn.operators.arrays import promoted

EXP_ERROR = 8  # in units of roundoff: four units in the last place
ASSUMPTION = (
    "exp, log and log1p are within 4 units in the last place; matrix products are sums of products "
    "in the pinned precision"
)


def unit_roundoff(dtype: DTypeLike) -> float:
    """Half the distance from one to the next number, such as 2⁻⁵³ in float64.

    >>> import numpy as np
    >>> [int(-np.log2(unit_roundoff(d))) for d in ("float64", "float32", "bfloat16", "float16")]
    [53, 24, 8, 11]
    """
    return float(jnp.finfo(dtype).eps) / 2


def largest_near(bound: float, largest: float, dtype: DTypeLike) -> float:
    """The largest difference that is small: also where a derived bound on it says nothing.

    A bound that is as large as the largest number itself holds for zeros in its place. There √ε of
    that number is asked for: no bound, but what a wrong result exceeds.

    >>> largest_near(0.75, 1.0, "float32"), largest_near(2.0, 1.0, "float32") < 4e-4
    (0.75, True)
    """
    if bound < largest or not largest:
        return bound
    return min(bound, float(jnp.finfo(dtype).eps) ** 0.5 * largest)


def gamma(count: int, roundoff: float) -> float:
    """γ_n = n·u/(1 - n·u)."""
    relative = gamma_or_infinite(count, roundoff)
    if math.isinf(relative):
        raise ValueError(
            f"{count} roundings of relative size {roundoff} exceed one, so there is no bound; use "
            "a wider dtype"
        )
    return relative


def gamma_or_infinite(count: float, roundoff: float) -> float:
    """γ_n, and infinity where n·u ≥ 1, which says nothing."""
    total = count * roundoff
    return total / (1 - total) if total < 1 else math.inf


def one_hot_sharpness(dtype: DTypeLike) -> float:
    """A power of two s so large that e^-s is zero in the dtype in which softmax runs.

    Softmax runs in at least float32. There e^-104 is below half the smallest subnormal number,
    2^-150, and in float64 e^-746 is below 2^-1075. The next powers of two are 128 and 1024; a
    power of two keeps α|δ - Δ|² exact while |δ - Δ|² has no more bits than the dtype.

    >>> one_hot_sharpness(jnp.bfloat16), one_hot_sharpness(jnp.float32)
    (128.0, 128.0)
    """
    limits = jnp.finfo(promoted(dtype, jnp.float32))
    smallest_exponent = limits.minexp - limits.nmant - 1
    return 2.0 ** math.ceil(math.log2(-smallest_exponent * math.log(2)))
