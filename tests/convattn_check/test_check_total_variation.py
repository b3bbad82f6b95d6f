"""Total variation: the series, and that no bound below the truth is accepted."""

from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product

import certificate_builder as build
import pytest
from certificate_cases import changed, put, update, verdict_after, verdict_on
from hypothesis import given
from hypothesis import strategies as st

from convattn_check.total_variation import exponential_from_below


def decimal_exponential(exponent):
    """e^x to 60 digits, as a fraction."""
    with localcontext(prec=60):
        return Fraction((Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp())


@given(st.fractions(Fraction(1, 10), 60, max_denominator=100), st.integers(1, 300))
def test_the_series_lies_below_the_exponential(exponent, terms):
    series = exponential_from_below(exponent, terms)
    assert series == build.series_of_exponential(exponent, terms)
    assert series < decimal_exponential(exponent) * (1 + Fraction(1, 10**50))
    assert series > exponential_from_below(exponent, terms - 1)


@given(st.fractions(Fraction(1, 3), 12, max_denominator=100), st.integers(1, 2))
def test_no_bound_below_the_truth_is_accepted(alpha, axes):
    """On a grid of 41 keys a side, whose total variation is within 1e-15 of the supremum."""
    power = 1 / decimal_exponential(alpha)
    theta = 1 + 2 * sum(power ** (n * n) for n in range(1, 21))
    truth = 1 - theta**-axes
    below = Fraction(int(truth * 10**12), 10**12)
    accepted = build.quadratic_variation(str(alpha), axes, 100, 8)
    assert verdict_on(accepted).accepted
    assert Fraction(accepted["body"]["bound"]) > truth
    refused = changed(accepted, put(["bound"], str(below)))
    assert verdict_on(refused).code == "total_variation"


@given(st.fractions(Fraction(1, 3), 12, max_denominator=100), st.integers(2, 400))
def test_no_bias_bound_below_the_truth_is_accepted(logit, keys):
    weight = decimal_exponential(logit)
    below = (keys - 1) / (weight + keys - 1) * (1 - Fraction(1, 10**9))
    power = Fraction(int(build.series_of_exponential(logit, 40) * 10**9), 10**9)
    for bound, accepted in ((below, False), (below * (1 + Fraction(2, 10**8)), True)):
        claimed = Fraction(int(bound * 10**12) + accepted, 10**12)
        case = build.bias_variation(str(logit), keys, str(power), str(claimed))
        assert verdict_on(case).accepted == accepted


@pytest.mark.parametrize(("axes", "squares"), [(1, 1), (2, 1), (1, 2), (2, 3)])
def test_the_bound_is_accepted_from_what_is_shown_to_twice_that_and_no_further(axes, squares):
    """θ is at most 1 + 2 Σ_(n ≤ L) r^(n²) + 2 r^((L+1)²) / (1 - r), here with r = 1/20."""
    power = Fraction(1, 20)
    theta = 1 + 2 * power ** ((squares + 1) ** 2) / (1 - power)
    for n in range(1, squares + 1):
        theta += 2 * power ** (n**2)
    value = 1 - 1 / theta**axes
    little = Fraction(1, 10**40)
    bounds = {
        value: True,
        value - little: False,
        2 * value: True,
        2 * value + little: False,
    }
    for bound, accepted in bounds.items():
        change = update(power="1/20", bound=str(bound), axes=axes, squares=squares)
        verdict = verdict_after("quadratic_variation", change)
        assert verdict.accepted == accepted, verdict


@pytest.mark.parametrize("target", [(0, 0), (2, 3), (-4, 1), (9, -9)])
def test_every_row_of_a_rectangle_keeps_the_bound(target):
    """The definition, in fractions: powers of the r ≥ e^-α of the certificate for e^-α."""
    body = build.quadratic_variation("3", 2)["body"]
    power, bound = Fraction(body["power"]), Fraction(body["bound"])
    keys = list(product(range(5), range(6)))
    squares = [sum((k - t) ** 2 for k, t in zip(key, target, strict=True)) for key in keys]
    weights = [power ** (square - min(squares)) for square in squares]
    total = sum(weights)
    nearest = squares.index(min(squares))
    distance = sum(abs(w / total - (k == nearest)) for k, w in enumerate(weights)) / 2
    assert 0 < distance < bound


@given(st.fractions(Fraction(1, 10), 60, max_denominator=100))
def test_enough_terms_are_half_of_the_exponential(exponent):
    terms = -(-2 * exponent.numerator // exponent.denominator)
    assert 2 * exponential_from_below(exponent, terms) > decimal_exponential(exponent)
