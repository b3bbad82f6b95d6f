"""Certificates of S.saturation: how far softmax rows are from their limit, in rationals."""

from fractions import Fraction
from typing import Any

from convattn.bounds.saturation import bias_total_variation, quadratic_total_variation_bound, upper
from convattn.ledger.certificates.canonical import certificate, rational

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


def quadratic_variation_certificate(
    claim: str, statement: str, alpha: Fraction | int, axes: int
) -> dict[str, Any]:
    """TV < 1 - θ^(-axes) ≤ a rational, at every query of every rectangle of keys.

    Args:
        alpha: 1/20 ≤ α ≤ 80, so that e^-α has digits to show.
    """
    series, terms = exponential_series(Fraction(alpha))
    power = Fraction(int(10**DIGITS / series) + 1, 10**DIGITS)
    bound = rounded_up(upper(quadratic_total_variation_bound(float(alpha), axes)))
    body = {
        "score": "quadratic",
        "sharpness": rational(alpha),
        "terms": terms,
        "power": rational(power),
        "bound": rational(bound),
        "axes": axes,
        "squares": SQUARES,
    }
    return certificate(claim, "total_variation", statement, body)


def bias_variation_certificate(
    claim: str, statement: str, logit: Fraction | int, keys: int
) -> dict[str, Any]:
    """TV = (N-1)/(e^M + N - 1) ≤ a rational, where the key is in range."""
    series, terms = exponential_series(Fraction(logit))
    power = Fraction(int(series * 10**DIGITS), 10**DIGITS)
    bound = rounded_up(upper(bias_total_variation(float(logit), keys)))
    body = {
        "score": "bias",
        "sharpness": rational(logit),
        "terms": terms,
        "power": rational(power),
        "bound": rational(bound),
        "keys": keys,
    }
    return certificate(claim, "total_variation", statement, body)
