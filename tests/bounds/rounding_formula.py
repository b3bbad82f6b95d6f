"""Π - 1 of `bounds/rounding.py`, the relative error of a layer, from the numbers of its sizes."""

import math
from collections.abc import Iterable

# The formulas here and in the library differ in the order of fewer than a hundred roundings, each
# of 1.1e-16, of numbers of one sign.
RELATIVE = 1e-12
INFLATION = 1 + 2.0**-20


def gamma(count: int, unit: float) -> float:
    """γ_n = n·u/(1 - n·u)."""
    return count * unit / (1 - count * unit)


def relative_error_of(factors: Iterable[float]) -> float:
    """Π (1 + f) - 1."""
    return math.expm1(math.fsum(map(math.log1p, factors)))


def softmax_factors(
    unit: float, keys: int, absolute: float, spread: float, gain: float
) -> list[float]:
    """The factors of weights whose scores are off by `absolute` and lie within `spread`.

    e^(2E) with E = e + u(S + 2e); (1 + 8u)/(1 - 8u); (1 + 2u)/(1 - γ_N); and that of the gain.
    """
    exponent = absolute + unit * (spread + 2 * absolute)
    return [
        math.expm1(2 * exponent),
        8 * unit,
        gamma(8, unit),  # 1 + γ_8 = 1/(1 - 8u)
        2 * unit,
        gamma(keys, unit) / (1 - gamma(keys, unit)),
        math.expm1(gain),
    ]
