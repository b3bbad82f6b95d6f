"""Certificates of total variation: their rationals lie on the right sides, and are accepted."""

from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convattn_check import check
from convattn_ledger.certificates.canonical import canonical
from convattn_ledger.certificates.catalogue import make_certificate
from convattn_ledger.certificates.total_variation import (
    bias_variation_body,
    exponential_series,
    quadratic_variation_body,
    rounded_up,
)


def verdict_on(made):
    return check(canonical(made) + "\n")


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
    made = make_certificate("S.saturation", "A statement.", quadratic_variation_body, alpha, axes)
    assert verdict_on(made).accepted
    theta = 1 + 2 * sum(1 / decimal_exponential(Fraction(alpha) * n * n) for n in range(1, 9))
    truth = 1 - theta**-axes
    assert truth < Fraction(made["body"]["bound"]) < truth * (1 + Fraction(2, 1000))


@pytest.mark.parametrize("logit", [Fraction(1, 2), 3, 100])
def test_bias(logit):
    made = make_certificate("S.saturation", "A statement.", bias_variation_body, logit, 50)
    assert verdict_on(made).accepted
    truth = 49 / (decimal_exponential(Fraction(logit)) + 49)
    assert truth < Fraction(made["body"]["bound"]) < truth * (1 + Fraction(2, 1000))
