"""The counts, weights and majorants of `back_ends/paths.py`, worked out by hand."""

import math
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from bounds.rounding_formula import RELATIVE
from comparison import assert_equal
from roundings import gamma

from convattn.encodings.layer import AttentionLayer
from convattn.encodings.quadratic import QuadraticEncoding
from convattn.encodings.scalar import ScalarEncoding
from convattn.operators.shifts import TokenGrid
from convattn_ledger.bounds.back_ends.paths import (
    Roundings,
    WeightRounding,
    count_roundings,
    gradient_majorants,
    inflate,
    path_parts,
    underflow,
    weight_rounding,
)
from convattn_ledger.bounds.back_ends.scores import PairScores


def close(expected):
    return pytest.approx(expected, rel=RELATIVE, abs=0)


def test_a_gain_adds_its_error_to_all_relative_ones():
    """γ_11 of the largest exponent times the largest log, exp once, and γ_(T+3) of the sum."""
    encoding = ScalarEncoding(
        jnp.array([0.5, -3.0]), jnp.array([0.25, -2.0, 1.0, 0.5]), None, ((0,), (1,), (2,), (3,))
    )
    ones = dict.fromkeys(("patch_size", "stride", "dilation"), (1,))
    maps = jnp.ones((2, 3, 5)), jnp.ones((2, 5, 7))
    layer = AttentionLayer(encoding, *maps, ring=((1, 2),), **ones)
    unit, (heads, entries, queries, keys, batch) = 2.0**-14, (2, 4, 6, 9, 10)
    result = count_roundings(layer, TokenGrid((6,), ((1, 2),)), batch, 3, unit, 2.0**-99)
    gain = gamma(11, unit) * 3 * 2 + math.atanh(8 * unit) + math.log1p(gamma(entries + 3, unit))
    values = heads * (3 + 5 + keys + entries) + 5 + 32
    maps = values + heads * (queries + 7) + batch * (queries + keys)
    parameters = maps + batch * queries * (keys + 3 + 5 + 7) + 2 * (keys + entries + 16) + 64
    for relative, count in zip(
        (result.values, result.maps, result.parameters), (values, maps, parameters), strict=True
    ):
        assert relative == close(math.exp(gain) * (1 + gamma(count, unit)) - 1)
    exponents = 2 * math.atanh(8 * unit) - math.log1p(-gamma(keys + entries + 8, unit))
    assert result.weight == close(exponents + 8 * unit)
    assert (result.score, result.score_terms) == (close(gamma(16, unit)), 16)


@pytest.mark.slow
def test_weights_are_off_by_scores_rounding_and_underflow():
    """A(e^λ - 1), twice that of the background beside it, and what underflow adds to each."""
    scores, off = [0.5, -1.0, 0.25], [0.01, 0.04, 0.02]
    background, background_off = -0.75, 0.03
    unit, relative, flush = 0.001, 0.002, 0.125
    result = weight_rounding(
        PairScores(jnp.array([[scores]]), jnp.array([background])),
        PairScores(jnp.array([[off]]), jnp.array([background_off])),
        *jnp.array([unit, relative, flush]),
    )

    def exponent(score, error):
        return error * (1 + unit) + unit * (max(scores) - score) + unit * max(off)

    total = sum(map(math.exp, scores))
    weights = [math.exp(score) / total for score in scores]
    here = [exponent(*pair) for pair in zip(scores, off, strict=True)]
    spread = math.log(sum(a * math.exp(e) for a, e in zip(weights, here, strict=True))) + relative
    everywhere = math.exp(background) / total
    through = everywhere * math.expm1(exponent(background, background_off) + spread) + flush
    wrong = [a * math.expm1(e + spread) + flush for a, e in zip(weights, here, strict=True)]
    assert result.weights[0, 0].tolist() == close(
        [everywhere + abs(a - everywhere) for a in weights]
    )
    assert result.error[0, 0].tolist() == close([each + 2 * through for each in wrong])
    assert result.background.tolist() == [[[close(everywhere)]]]
    assert result.background_error.tolist() == [[[close(through)]]]
    pairs = (PairScores(jnp.array([[numbers]]), None) for numbers in (scores, off))
    plain = weight_rounding(*pairs, *jnp.array([unit, relative, flush]))
    assert plain.weights[0, 0].tolist() == close(weights)
    assert plain.error[0, 0].tolist() == close(wrong)
    assert plain[2:] == (None, None)


LAYER = AttentionLayer(
    QuadraticEncoding(jnp.array([0.0, 0.0]), jnp.array([[1.0, -2.0], [0.5, 0.0]])),
    jnp.full((2, 1, 3), -4.0),
    jnp.full((2, 3, 1), 0.25),
)
GRID = TokenGrid((2, 3), ((1, 0), (0, 2)))  # 3 × 5 keys
KEYS = 15
LARGEST = 1 * (1 + 2) * (1 + 4) * (1 + 0.25)  # of α, centres and the two maps, one more of each


def test_path_parts_add_what_underflow_takes_from_scores_and_weights():
    """n_s·tiny·(Π(1 + |θ|)·(1 + |X|)·side)² of a score, (2N + 16)·tiny an axis of a weight."""
    tiny = 2.0**-40
    # α = 0, so that γ of the scores is multiplied by zero.
    roundings = Roundings(0.0, tiny, 0.5, 0.0, 0.0, 0.0, 0.0, score_terms=7.0, axes=2.0, terms=1.0)
    tokens = jnp.linspace(-6.0, 5.0, 6).reshape(1, 2, 3, 1)
    operands = LAYER, tokens, GRID, roundings
    keys, weights, parts = jax.jit(path_parts, static_argnums=2)(*operands)
    floor = 7 * tiny * (LARGEST * (1 + 6) * 5) ** 2
    assert keys.shape == (1, KEYS, 1)
    assert weights.weights.ravel().tolist() == close([1 / KEYS] * 2 * 6 * KEYS)
    expected = math.expm1(2 * floor) / KEYS + 2 * (2 * KEYS + 16) * tiny
    assert weights.error.ravel().tolist() == close([expected] * 2 * 6 * KEYS)
    for part, size in zip(parts, (6.0, 4.0, 0.25, 1.0), strict=True):
        assert float(part.max()) == size
        assert float(part.min()) >= 0


def test_underflow_multiplies_all_magnitudes_and_one_more_of_each():
    """tiny times the terms times the square of Π(1 + |·|) over the layer, keys, gains and B."""
    roundings = Roundings(*(0.0,) * 9, terms=3.0)._replace(tiny=2.0**-40)
    weights = WeightRounding(jnp.array([[[0.5, -1.5]]]), jnp.zeros((1, 1, 2)), None, None)
    keys, gains = jnp.array([[[-0.5], [0.25]]]), jnp.array([6.0, -7.0])
    result = underflow(LAYER, keys, weights, gains, roundings)
    assert float(result) == close(2.0**-40 * 3 * (LARGEST * 1.5 * 8 * 2.5) ** 2)
    biased = replace(LAYER, bias=jnp.array([-9.0]))
    assert float(underflow(biased, keys, weights, gains, roundings)) == close(100 * float(result))


def test_what_underflows_in_a_gradient_grows_with_the_largest_cotangent():
    roundings = Roundings(*(0.0,) * 9, terms=3.0)._replace(tiny=2.0**-40)
    bound = jax.jit(gradient_majorants, static_argnums=3)
    tokens, cotangent = jnp.ones((1, 2, 3, 1)), jnp.zeros((1, 6, 1)).at[0, 4].set(6.5)
    least, result = (
        bound(LAYER, tokens, back, GRID, roundings)[1] for back in (0 * cotangent, cotangent)
    )
    assert float(result) == close(7.5 * float(least))
    assert least > 0


def test_what_is_widened_grows_by_its_rate():
    """ΔG + ρ(G + ΔG), leaf by leaf."""
    exact, wrong = (np.array([4.0, 2.0]), np.array(3.0)), (np.array([8.0, 0.5]), np.array(1.0))
    result = inflate(0.5, exact, wrong)
    assert_equal(result[0], [14.0, 1.75])
    assert_equal(result[1], 3.0)
