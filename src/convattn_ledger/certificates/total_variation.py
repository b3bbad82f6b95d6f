"""Certificates of S.saturation: how far softmax rows are from their limit, in rationals."""

from fractions import Fraction
from typing import Any

from convattn_ledger.bounds.saturation import (
    bias_total_variation,
    quadratic_total_variation_bound,
    upper,
)
from convattn_ledger.certificates.canonical import rational

DIGITS = 40  # after the point of e^-α, from above, or of e^M, from below
SQUARES = 4


def exponential_series(exponent: Fraction) -> tuple[Fraction, int]:
    """Σ_(n ≤ terms) x^n/n! and the terms, as many as leave less than 10^-20 of e^x for x > 0.

    >>> total, terms = exponential_series(Fraction(1))
    >>> float(total), terms
    (2.718281828459045, 21)
    """
    total = term = Fraction(1)
    count = 0
    while count < 2 * exponent or term * 10**20 > total:
        count += 1
        term *= exponent / count
        total += term
    return total, count


def rounded_up(number: float, digits: int = 4) -> Fraction:
    """A short rational that is not below a positive number.

    >>> rounded_up(0.0123456)
    Fraction(247, 20000)
    """
    scale = Fraction(10) ** (digits - 1)
    while number * scale < 10 ** (digits - 1):
        scale *= 10
    return Fraction(int(Fraction(number) * scale) + 1) / scale


def quadratic_variation_body(alpha: Fraction | int, axes: int) -> dict[str, Any]:
    """TV < 1 - θ^(-axes) ≤ a rational, at every query of every rectangle of keys.

    Args:
        alpha: 1/20 ≤ α ≤ 80, so that e^-α has digits to show.
    """
    series, terms = exponential_series(Fraction(alpha))
    power = Fraction(int(10**DIGITS / series) + 1, 10**DIGITS)
    bound = upper(quadratic_total_variation_bound(float(alpha), axes))
    return _body("quadratic", alpha, terms, power, bound) | {"axes": axes, "squares": SQUARES}


def bias_variation_body(logit: Fraction | int, keys: int) -> dict[str, Any]:
    """TV = (N-1)/(e^M + N - 1) ≤ a rational, where the key is in range."""
    series, terms = exponential_series(Fraction(logit))
    power = Fraction(int(series * 10**DIGITS), 10**DIGITS)
    bound = upper(bias_total_variation(float(logit), keys))
    return _body("bias", logit, terms, power, bound) | {"keys": keys}


def _body(
    score: str, sharpness: Fraction | int, terms: int, power: Fraction, bound: float
) -> dict[str, Any]:
    """What both have."""
    return {
        "score": score,
        "sharpness": rational(sharpness),
        "terms": terms,
        "power": rational(power),
        "bound": rational(rounded_up(bound)),
    }
