"""The enclosures of the distance to one-hot: they hold the true number, and comparisons are strict.

True numbers come from decimals of 120 digits, from fractions (where e^M is rational), and from the
weights that JAX computes, within the error of a computed softmax.
"""

from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product

import flint
import jax.numpy as jnp
import numpy as np
import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st
from roundings import roundoff, softmax_factor

from convattn.encodings import QuadraticEncoding
from convattn.operators.attention import attention_weights
from convattn.operators.shifts import TokenGrid
from convattn_ledger.bounds.saturation import (
    bias_total_variation,
    quadratic_total_variation,
    quadratic_total_variation_bound,
    theta,
    upper,
)

ALPHAS = (0.05, 0.3, 1.0, 4.0, 46.0)


def contains(ball: arb, number: Fraction, margin: Fraction = Fraction(0)) -> bool:
    """Whether the ball and the interval of this margin around a number overlap."""
    with flint.ctx.workprec(8192):
        low, high = number - margin, number + margin
        ends = [arb(end.numerator) / arb(end.denominator) for end in (low, high)]
        return ball.overlaps(ends[0].union(ends[1]))


def decimal_theta(alpha: float) -> Fraction:
    with localcontext(prec=120):
        terms = [(-Decimal(alpha) * n * n).exp() for n in range(1, 400)]
        return Fraction(1 + 2 * sum(terms))


@pytest.mark.parametrize("alpha", ALPHAS)
def test_theta_holds_its_decimal_value(alpha):
    assert contains(theta(alpha), decimal_theta(alpha), Fraction(1, 10**115))
    assert not contains(theta(alpha), decimal_theta(alpha) + Fraction(1, 10**60))


@pytest.mark.parametrize("alpha", [0.0499, 0.0, -1.0, float("nan")])
def test_small_alphas_are_refused(alpha):
    with pytest.raises(ValueError, match=r"expected at least 0\.05"):
        quadratic_total_variation_bound(alpha)


@given(st.floats(0.05, 150), st.floats(1e-3, 20), st.integers(1, 3))
def test_the_bound_falls_with_alpha_and_rises_with_the_axes(alpha, step, axes):
    here = quadratic_total_variation_bound(alpha, axes)
    assert quadratic_total_variation_bound(alpha + step, axes) < here
    assert here < quadratic_total_variation_bound(alpha, axes + 1)
    assert 0 < here < 1


@given(
    st.floats(0.05, 100),
    st.tuples(st.integers(1, 6), st.integers(1, 6)),
    st.tuples(st.integers(0, 5), st.integers(0, 5)),
    st.tuples(st.integers(-9, 9), st.integers(-9, 9)),
)
def test_the_bound_holds_for_every_target_inside_or_outside(alpha, keys, query, center):
    query = tuple(min(q, n - 1) for q, n in zip(query, keys, strict=True))
    distance = quadratic_total_variation(alpha, keys, query, center)
    assert distance < quadratic_total_variation_bound(alpha, 2)
    assert distance > 0 if keys != (1, 1) else distance.contains(0)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_the_bound_is_attained_in_the_middle_of_a_large_grid(alpha):
    """On one axis with n keys to each side, the rest of θ is below 2 e^(-α(n+1)²)/(1 - e^(-α))."""
    side = 12
    keys, middle = (2 * side + 1,) * 2, (side,) * 2
    bound = quadratic_total_variation_bound(alpha)
    distance = quadratic_total_variation(alpha, keys, middle, (0, 0))
    with flint.ctx.workprec(4096):
        rest = 2 * (-arb(alpha) * (side + 1) ** 2).exp() / (1 - (-arb(alpha)).exp())
        assert bound - distance < 2 * rest + arb(2) ** -4000


@pytest.mark.parametrize("alpha", [0.05, 1.0])
@pytest.mark.parametrize("center", [(0, 0), (1, -1), (-3, 2), (9, -9)])
def test_computed_weights_lie_within_the_enclosure(alpha, center):
    """At every query, border included; targets outside the grid fall on the nearest key.

    An |exponent| of S is off by 2Su (the product and the shift by the maximum) beside the centred
    squares, which are integers; each weight is then off by a factor f, and half the L1 distance by
    at most f - 1.
    """
    keys = (4, 5)
    grid = TokenGrid(keys, ((0, 0), (0, 0)))
    encoding = QuadraticEncoding(jnp.array([alpha]), jnp.array([center], float))
    scores = encoding.positional_scores(grid)
    weights = np.asarray(attention_weights(scores))[0]
    u = roundoff("float64")
    largest = float(jnp.abs(scores).max())
    error = softmax_factor(2 * largest * u, grid.number_of_keys, u) - 1
    bound = quadratic_total_variation_bound(alpha)
    for row, query in enumerate(product(*(range(n) for n in keys))):
        exact = [Fraction(float(weight)) for weight in weights[row]]
        one_hot = np.ravel_multi_index(np.add(query, center), keys, mode="clip")
        measured = sum(abs(w - (k == one_hot)) for k, w in enumerate(exact)) / 2
        enclosed = quadratic_total_variation(alpha, keys, query, center)
        assert contains(enclosed, measured, Fraction(error))
        assert float(measured) <= upper(bound) + error
        assert not contains(enclosed, measured + Fraction(1, 100), Fraction(error))


@given(st.fractions(Fraction(1, 100), 10**30, max_denominator=10**6), st.integers(1, 10**6))
def test_the_bias_distance_is_the_rational_one(power, keys):
    """With e^M = p/q the distance is (N-1)/(e^M + N - 1), a fraction."""
    with flint.ctx.workprec(4096):
        logit = (arb(power.numerator) / arb(power.denominator)).log()
    ball = bias_total_variation(logit, keys)
    exact = Fraction(keys - 1) / (power + keys - 1)
    assert contains(ball, exact)
    assert not contains(ball, exact + Fraction(1, 10**100))
    with flint.ctx.workprec(4096):
        assert ball.rad() < arb(2) ** -3900


@given(st.integers(-(10**40), 10**40), st.integers(1, 10**40))
def test_upper_is_not_below(numerator, denominator):
    with flint.ctx.workprec(4096):
        ball = arb(numerator) / denominator
    exact = Fraction(numerator, denominator)
    assert Fraction(upper(ball)) > exact
    assert Fraction(upper(ball)) - exact <= abs(exact) * Fraction(1, 2**51) + Fraction(1, 2**1070)
