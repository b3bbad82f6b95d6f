"""Certificates of total variation: their rationals lie on the right sides, and are accepted."""

from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ledger.certificates.verdicts import accepted, make

from convattn_ledger.certificates.total_variation import (
    bias_variation_body,
    exponential_series,
    quadratic_variation_body,
    rounded_up,
)


def decimal_exponential(exponent):
    with localcontext(prec=80):
        return Fraction((Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp())


@given(st.fractions(Fraction(1, 2), 80, max_denominator=9))
def test_the_series_is_nearly_the_exponential(exponent):
    series, terms = exponential_series(exponent)
    true = decimal_exponential(exponent)
    assert true * (1 - Fraction(1, 10**18)) < series < true
    assert terms <= 512


@given(st.floats(1e-30, 1))
def test_rounding_up_is_short_and_not_below(number):
    rounded = rounded_up(number)
    assert Fraction(number) < rounded <= Fraction(number) * (1 + Fraction(11, 10**4))


@pytest.mark.parametrize("alpha", [1, Fraction(7, 2), 46, 80])
@pytest.mark.parametrize("axes", [1, 2])
def test_quadratic(alpha, axes):
    certificate = make("S.saturation", quadratic_variation_body, alpha, axes)
    assert accepted(certificate)
    theta = 1 + 2 * sum(1 / decimal_exponential(Fraction(alpha) * n * n) for n in range(1, 9))
    truth = 1 - theta**-axes
    assert truth < Fraction(certificate["body"]["bound"]) < truth * (1 + Fraction(2, 1000))


@pytest.mark.parametrize("logit", [Fraction(1, 2), 3, 100])
def test_bias(logit):
    certificate = make("S.saturation", bias_variation_body, logit, 50)
    assert accepted(certificate)
    truth = 49 / (decimal_exponential(Fraction(logit)) + 49)
    assert truth < Fraction(certificate["body"]["bound"]) < truth * (1 + Fraction(2, 1000))
