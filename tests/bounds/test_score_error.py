"""What the computed scores and gains are off by, against ball arithmetic."""

import math
from fractions import Fraction

import flint
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from bounds.rounding_formula import RELATIVE
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

import convattn as ca
from convattn.bounds.score_error import layer_score_error, score_error
from convattn.constructions.scalar import scalar_bases
from convattn.encodings import BiasEncoding, QuadraticEncoding, ScalarEncoding
from convattn.encodings.majorants import ScoreError
from convattn.operators.roundoff import gamma, unit_roundoff
from convattn.operators.shifts import TokenGrid

GRID = TokenGrid((5,), ((1, 1),))


def leaky(uniform_weight, dtype):
    return BiasEncoding(jnp.eye(2, 1, dtype=dtype), jnp.asarray(uniform_weight, dtype), ((1,),))


def scalar(count, dtype):
    kernel = jnp.ones((count, 1, 1), dtype)
    return ca.conv_to_attention(kernel, encoding="scalar").encoding


@pytest.mark.parametrize(("count", "roundoff"), [(256, 2.0**-8), (2**24, 2.0**-24), (3, 0.5)])
def test_gamma_says_nothing_once_the_roundings_reach_one(count, roundoff):
    with pytest.raises(ValueError, match=f"{count} roundings .* there is no bound; use a wider"):
        gamma(count, roundoff)
    assert gamma(count - 1, min(roundoff, 1 / count)) > 0


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@given(uniform_weight=st.floats(2.0**-60, 1 - 2.0**-24), keys=st.integers(1, 10**6))
def test_a_leaky_score_is_within_its_error(dtype, uniform_weight, keys):
    encoding, grid = leaky(uniform_weight, dtype), TokenGrid((keys,), ((0, 0),))
    error = score_error(encoding, grid)
    with flint.ctx.workprec(300):
        stored = arb(float(encoding.uniform_weight))
        height = (1 + keys * (1 / stored - 1)).log()
        off = abs(arb(float(encoding.scale(keys))) - height)
        assert off <= error.absolute
        assert height <= error.range * (1 + 1e-12)
    assert error.dtype == dtype
    assert error.gain == 0


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("keys", [1, 35, 10**6])
def test_the_scores_beside_a_register_are_within_their_error(dtype, keys):
    layer = ca.conv_to_attention(jnp.ones((3, 1, 1), dtype), border="register")
    error = layer_score_error(layer, TokenGrid((keys,), ((0, 0),)))
    scores = np.asarray(layer.register.at(keys), np.float64)
    with flint.ctx.workprec(300):
        exact = [arb(sigma * keys).log() for sigma in (1, 3)]
        off = [abs(arb(float(scores[3 * i])) - height) for i, height in enumerate(exact)]
        assert max(off) <= error.absolute
        assert max(*exact, arb(1 + 4 * keys).log()) <= error.range * (1 + 1e-12)
    assert (error.dtype, error.gain) == (dtype, 0)


def test_a_register_of_a_limit_form_has_no_error_derived():
    layer = ca.conv_to_attention(jnp.ones((3, 1, 1)), border="register", form="limit")
    with pytest.raises(ValueError, match="no rounding bound is derived for this BiasEncoding"):
        layer_score_error(layer, TokenGrid((4,), ((0, 0),)))


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "count"), [("float64", 9), ("float32", 5)])
@pytest.mark.parametrize("keys", [12, 5000])
def test_scalar_scores_and_gains_are_within_their_error(dtype, count, keys):
    encoding = scalar(count, dtype)
    error = score_error(encoding, TokenGrid((keys,), ((0, 0),)))
    scores = np.asarray(encoding.shift_scores(np.array(encoding.offsets), keys), np.float64)
    gains = np.asarray(encoding.head_gains(keys), np.float64)
    bases = scalar_bases(count)
    with flint.ctx.workprec(300):
        for head in range(count + 1):
            exact = keys + sum(base**head - 1 for base in bases)
            assert abs((arb(gains[head]) / exact).log()) <= error.gain
            for base, score in zip(bases, scores[head], strict=True):
                assert abs(arb(score) - head * arb(base).log()) <= error.absolute
                assert head * arb(base).log() <= error.range * (1 + 1e-6)
        # Neither is larger than it need be: eleven roundings of the largest score.
        assert error.range <= count * arb(max(bases)).log() * (1 + 1e-6)
    assert error.absolute == gamma(11, unit_roundoff(dtype)) * error.range


def test_the_errors_are_those_of_the_derivation():
    """γ_15 log(1 + N(1/ε - 1)), and γ_11 h·log t with exp, T + 1 roundings and a product more."""
    encoding, grid = leaky(0.125, "float32"), TokenGrid((3, 5), ((1, 0), (0, 2)))
    error, u = score_error(encoding, grid), 2.0**-24
    assert error.range == pytest.approx(math.log1p(4 * 7 * 7), rel=RELATIVE)
    assert error.absolute == pytest.approx(15 * u / (1 - 15 * u) * error.range, rel=RELATIVE)
    parts = jnp.array([2.0, -1.0], "float32"), jnp.array([0.5, -3.0, 1.0], "float32")
    error = score_error(ScalarEncoding(*parts, None, ((0,), (1,), (2,))), GRID)
    assert error.range == 2 * 3
    assert error.absolute == pytest.approx(11 * u / (1 - 11 * u) * 6, rel=RELATIVE)
    factors = 1 + 8 * Fraction(u), 1 / (1 - 4 * Fraction(u)), 1 + Fraction(u)  # 1 + γ_4 of T + 1
    gain = error.absolute + math.log1p(float(math.prod(factors) - 1))
    assert error.gain == pytest.approx(gain, rel=RELATIVE, abs=0)


def test_an_error_is_caught():
    """A leak that is off by 2⁻¹⁸ moves a float32 score beyond its error."""
    error = score_error(leaky(0.5, "float32"), GRID)
    moved = leaky(0.5 * (1 + 2.0**-18), "float32").scale(GRID.number_of_keys)
    assert abs(float(moved) - np.log1p(7.0)) > error.absolute
    assert isinstance(error, ScoreError)


@pytest.mark.parametrize(
    "encoding",
    [
        lambda: BiasEncoding(jnp.ones((1, 1)), None, ((0,),)),
        lambda: ScalarEncoding(jnp.ones(1), jnp.ones(1), jnp.ones(()), ((0,),)),
        lambda: QuadraticEncoding(jnp.ones(1), jnp.ones((1, 1))),
    ],
    ids=["limit bias", "limit scalar", "quadratic"],
)
def test_anything_but_an_exact_form_is_refused(encoding):
    unsupported = encoding()
    with pytest.raises(
        ValueError, match=rf"for this {type(unsupported).__name__}, only for the exact"
    ):
        score_error(unsupported, GRID)


def test_exp_and_log1p_are_as_good_as_assumed():
    """Eight roundings, on the arguments that softmax meets: the assumption of the bound, here."""
    for dtype in ("float32", "float64"):
        u = unit_roundoff(dtype)
        for function, exact, points in (
            (jnp.exp, arb.exp, np.linspace(-80, 0, 999)),
            (jnp.exp, arb.exp, np.linspace(0, 40, 999)),
            (jnp.log1p, arb.log1p, np.logspace(-6, 8, 999)),
        ):
            arguments = points.astype(dtype)
            computed = np.asarray(jax.jit(function)(arguments), np.float64)
            with flint.ctx.workprec(200):
                for argument, value in zip(arguments, computed, strict=True):
                    true = exact(arb(float(argument)))
                    assert abs(arb(value) - true) <= 8 * u * abs(true)
