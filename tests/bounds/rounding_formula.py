"""Π - 1 of `bounds/rounding.py`, the relative error of a layer, from the numbers of its sizes."""

import math
from collections.abc import Iterable

import numpy as np
from roundings import ELEMENTARY, gamma

# The formulas here and in the library differ in the order of fewer than a hundred roundings, each
# of 1.1e-16, of numbers of one sign.
RELATIVE = 1e-12
INFLATION = 1 + 2.0**-20
SINGLE, NARROW = 2.0**-24, 2.0**-8  # the unit roundoffs of float32 and of bfloat16
TINY = 2.0**-126  # the smallest normal number of float32


def relative_error_of(factors: Iterable[float]) -> float:
    """Π (1 + f) - 1."""
    return math.expm1(math.fsum(map(math.log1p, factors)))


def formula_bound(factors: Iterable[float], majorant: np.ndarray, lost: float) -> np.ndarray:
    """(Π - 1)·G inflated, and what underflows."""
    return relative_error_of(factors) * majorant * INFLATION + lost


def softmax_factors(
    unit: float, keys: int, absolute: float, spread: float, gain: float
) -> list[float]:
    """The factors of weights whose scores are off by `absolute` and lie within `spread`.

    e^(2E) with E = e + u(S + 2e); (1 + 8u)/(1 - 8u); (1 + 2u)/(1 - γ_N); and that of the gain.
    """
    exponent = absolute + unit * (spread + 2 * absolute)
    return [
        math.expm1(2 * exponent),
        ELEMENTARY * unit,
        gamma(ELEMENTARY, unit),  # 1 + γ_8 = 1/(1 - 8u)
        2 * unit,
        gamma(keys, unit) / (1 - gamma(keys, unit)),
        math.expm1(gain),
    ]
