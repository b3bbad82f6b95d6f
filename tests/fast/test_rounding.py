"""The bounds on back ends hold part by part, say something, and catch planted errors."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_within, gamma
from fast.layers import LAYER_BUCKETS, make_layer_case
from fast.tree_comparison import assert_tree_within
from hypothesis import given
from strategies import seeds

import convattn as ca
from convattn.operators.attention import multi_head_self_attention
from convattn_ledger.bounds.back_ends.bounds import gradient_bounds, value_bound
from convattn_ledger.bounds.back_ends.paths import (
    WeightRounding,
    count_roundings,
    ringed,
    softmax_majorants,
    weight_rounding,
)
from convattn_ledger.bounds.back_ends.scores import (
    PairScores,
    exact_scores,
    score_majorant,
    score_roundings,
)

PLAIN = tuple(LAYER_BUCKETS[index] for index in (0, 11))  # patches of one pixel, no content
# One bucket for each form of scores.
ENCODINGS = tuple(
    LAYER_BUCKETS[index] for index in (0, 1, 2, 3, 4, 5, 7, 9, 10, 12, 14, 15, 17, 18)
)


@partial(jax.jit, static_argnums=3)
def scores_and_majorants(layer, narrow, images, grid, cotangent):
    """Both, and what they pass back: of a cotangent the one, of its magnitude the other."""
    keys = ringed(ca.patchify(images, layer.patch_size), grid)

    def pairs(function):
        return lambda layer, keys: function(layer, grid, keys).pairs

    exact, pull = jax.vjp(pairs(exact_scores), layer, keys)
    majorant, pull_majorant = jax.vjp(pairs(score_majorant), layer, keys)
    computed = pairs(exact_scores)(narrow, keys.astype(jnp.float32))
    return computed, (exact, *pull(cotangent)), (majorant, *pull_majorant(jnp.abs(cotangent)))


@pytest.mark.slow
@pytest.mark.parametrize("bucket", ENCODINGS, ids=str)
def test_score_majorants(bucket):
    """|s| ≤ s⁺, and the same of derivatives; float32 scores are within γ_n s⁺ of float64 ones."""
    case = make_layer_case(bucket, 1)
    wide = case.wide()
    lead = (bucket.batch,) if bucket.content else ()
    pairs = (bucket.heads, int(np.prod(case.grid.queries)), case.grid.number_of_keys)
    cotangent = np.random.default_rng(2).normal(size=(*lead, *pairs))
    args = wide.layer, case.layer, wide.images, case.grid, cotangent
    computed, signed, majorants = scores_and_majorants(*args)
    for exact, majorant in zip(jax.tree.leaves(signed), jax.tree.leaves(majorants), strict=True):
        slack = gamma(10**4, "float64")  # sums of fewer terms than that, on both sides
        assert_within(exact, np.zeros(exact.shape), np.asarray(majorant) * (1 + 2 * slack))
    features = bucket.channels * int(np.prod(bucket.patches))
    roundings = gamma(score_roundings(case.layer, features), "float32")
    assert_within(computed, signed[0], roundings * np.asarray(majorants[0]))


@pytest.mark.slow
def test_gain_majorant_counts_what_cancels():
    """Fewer keys than offsets: the gain is a difference, its majorant the sum."""
    bucket = next(b for b in LAYER_BUCKETS if b.draw.__name__ == "scalar")
    encoding = make_layer_case(bucket, 3, "float64").layer.encoding
    logs, exponents = np.asarray(encoding.log_bases), np.asarray(encoding.exponents)
    powers = np.exp(exponents[:, None] * logs)
    majorant, pull = jax.vjp(lambda part: part.gain_majorant(1), encoding)
    bound = 50 * np.finfo(float).eps * (powers.sum(1) + 3)
    assert_within(majorant, powers.sum(axis=1) + 3, bound)
    (back,) = pull(jnp.ones(bucket.heads))
    assert_within(back.exponents, powers @ np.abs(logs), bound)
    assert_within(encoding.head_gains(1), powers.sum(axis=1) - 3, bound)


@given(seed=seeds())
@pytest.mark.slow
def test_weights_of_scores_that_are_off(seed):
    """Softmax of scores moved by ±e stays within ΔB, which is no more than it need be."""
    rng = np.random.default_rng(seed)
    shape = (2, 3, 6)
    scores, off = rng.normal(size=shape) * 3, rng.uniform(0, rng.choice([0.3, 1e-9]), shape)
    scores[..., 2:], off[..., 2:] = scores[:, :1, 2:3], off[:, :1, 2:3]
    background = PairScores(jnp.array(scores[:, 0, 2]), jnp.array(off[:, 0, 2]))
    rounding = weight_rounding(
        PairScores(jnp.array(scores), background.pairs),
        PairScores(jnp.array(off), background.background),
        jnp.array(0.0),
        jnp.array(0.0),
        jnp.array(0.0),
    )
    exact = np.asarray(jax.nn.softmax(scores))
    everywhere = exact[..., 2:3]
    assert_within(rounding.background, everywhere, 1e-14)
    assert_within(rounding.weights, everywhere + np.abs(exact - everywhere), 1e-14)
    for _ in range(4):
        signs = np.concatenate([rng.choice([-1, 1], (2, 3, 2)), np.ones((2, 3, 4))], -1)
        moved = np.asarray(jax.nn.softmax(scores + signs * off))
        assert_within(moved, exact, np.asarray(rounding.error) + 1e-14)
        parts = moved - moved[..., 2:3], exact - everywhere
        assert_within(*parts, np.asarray(rounding.error) + 1e-14)
        assert_within(moved[..., 2:3], everywhere, np.asarray(rounding.background_error) + 1e-14)
    largest = np.expm1(2 * off.max()) * (exact + 2 * everywhere)
    assert (np.asarray(rounding.error) <= largest + 1e-14).all()


def test_the_counts_are_those_of_the_derivation():
    """Added up by hand for H, b, F, V, O, T = 2, 5, 3, 3, 2, 4, Q = 3·4, N = 4·6 and n_s = 35."""
    bucket = replace(next(bucket for bucket in LAYER_BUCKETS if bucket.tables), batch=5)
    unit, layer = 2.0**-24, make_layer_case(bucket, 1).layer
    assert score_roundings(layer, 3) == 16 + 2 * 3 + 2 + 8 + 2 + 1
    counted = count_roundings(layer, bucket.grid, 5, 3, unit, 1e-38)
    counts = 103, 103 + 208, 103 + 208 + 2110 + 2880
    for relative, count in zip(
        (counted.values, counted.maps, counted.parameters), counts, strict=True
    ):
        assert relative == pytest.approx(gamma(count, "float32"), rel=1e-9)
    assert counted.score == gamma(35, "float32")
    assert counted.weight == pytest.approx(2 * (16 + 36 + 8) * unit, rel=1e-5)
    assert counted.terms == 32 * 5 * 12 * 24**2 * 2 * 3 * 3 * 2 * 35
    assert counted[:2] + counted[-3:-1] == (unit, 1e-38, 35, 2)


def test_what_softmax_passes_back_is_what_is_derived():
    """D and ΔD, and c(2 Σ dA + N R) with its error, summed over the queries of each head."""
    rng = np.random.default_rng(0)
    weights, error, passed = rng.uniform(size=(3, 2, 3, 5))
    background, off = rng.uniform(size=(2, 2, 3, 1))
    parts = WeightRounding(*map(jnp.array, (weights, error, background, off)))
    exact, wrong = softmax_majorants(parts, jnp.array(passed))
    row = np.einsum("hqk,hqk->hq", weights, passed)[..., None]
    row_off = np.einsum("hqk,hqk->hq", error, passed)[..., None]
    assert_within(exact.pairs, weights * (passed + row), 1e-12)
    assert_within(wrong.pairs, error * (passed + row + row_off) + weights * row_off, 1e-12)
    for head in range(2):
        through = through_off = 0.0
        for query in range(3):
            r, delta = row[head, query, 0], row_off[head, query, 0]
            c, c_off = background[head, query, 0], off[head, query, 0]
            everywhere = 2 * passed[head, query].sum() + 5 * r
            through += c * everywhere
            through_off += c_off * (everywhere + 5 * delta) + c * 5 * delta
        assert_within(exact.background[head], through, 1e-11)
        assert_within(wrong.background[head], through_off, 1e-11)


def planted(layer, images, grid, spoil):
    """Dense attention on pixels with the weights that `spoil` makes of the scores."""
    keys = ringed(images, grid)
    weights = spoil(layer.encoding.positional_scores(grid))
    result = multi_head_self_attention(keys, weights, layer.value, layer.output, layer.bias)
    return result.reshape(*images.shape[:-1], -1)


def right(scores):
    return jax.nn.softmax(scores)


def one_weight_off(scores):
    """One weight of each query, the greatest of one head, is off by a thousandth of itself."""
    weights = right(scores)
    rows = jnp.arange(weights.shape[1])
    return weights.at[1, rows, weights[1].argmax(axis=-1)].multiply(1 + 1e-3)


def dropped_term(scores):
    """Right weights, but their normalizer passes nothing back."""
    powers = jnp.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / jax.lax.stop_gradient(powers.sum(axis=-1, keepdims=True))


def dropped_head(scores):
    """Right weights, but the first head passes nothing back."""
    weights = right(scores)
    return weights.at[0].set(jax.lax.stop_gradient(weights[0]))


@partial(jax.jit, static_argnums=(3, 4))
def planted_gradients(layer, images, cotangent, grid, spoil):
    result, pull = jax.vjp(lambda *args: planted(*args, grid, spoil), layer, images)
    return result, pull(cotangent)


@pytest.mark.slow
@pytest.mark.parametrize("bucket", PLAIN, ids=str)
def test_planted_errors_are_caught_in_float32(bucket):
    case = make_layer_case(bucket, 7)
    wide = case.wide()
    # A cotangent of one sign, so that what is dropped does not cancel by chance.
    parts = [(c.layer, c.images, jnp.abs(c.cotangent)) for c in (case, wide)]
    limit = [value_bound(c.layer, c.images) for c in (case, wide)]
    of_gradients = [gradient_bounds(*args) for args in parts]
    expected, gradients = planted_gradients(*parts[1], case.grid, right)
    assert float(np.median(limit[0] / np.abs(expected))) < 1e-2
    actual, cotangents = planted_gradients(*parts[0], case.grid, right)
    assert_within(actual, expected, sum(limit))
    assert_tree_within(cotangents, gradients, *of_gradients)
    for limits, gradient in zip(*map(jax.tree.leaves, (of_gradients[0], gradients)), strict=True):
        assert np.median(limits) < np.abs(gradient).max() / 10
    wrong, _ = planted_gradients(*parts[0], case.grid, one_weight_off)
    with pytest.raises(AssertionError, match="expected within"):
        assert_within(wrong, expected, sum(limit))
    scaled = jnp.asarray(case.layer.output).at[0].multiply(1 + 1e-3)
    scaled = replace(case.layer, output=scaled)
    wrong, _ = planted_gradients(scaled, *parts[0][1:], case.grid, right)
    with pytest.raises(AssertionError, match="expected within"):
        assert_within(wrong, expected, sum(limit))
    for spoil in (dropped_term, dropped_head):
        actual, cotangents = planted_gradients(*parts[0], case.grid, spoil)
        assert_within(actual, expected, sum(limit))
        parts_of = (cotangents, gradients, *of_gradients)
        with pytest.raises(AssertionError, match="expected within"):
            assert_tree_within(*(tree[0].encoding for tree in parts_of))


def test_the_bound_grows_with_the_roundoff():
    """And the dtype is that of layer and images, or the one that is asked for."""
    case = make_layer_case(LAYER_BUCKETS[7], 8, "float64")
    bounds = [
        value_bound(case.layer, case.images, dtype=dtype).max()
        for dtype in ("float64", "float32", "float16", "bfloat16")
    ]
    assert bounds == sorted(set(bounds))
    narrow = make_layer_case(LAYER_BUCKETS[7], 8, "float32")
    bound = value_bound(narrow.layer, narrow.images, dtype="float32")
    assert (bound == value_bound(narrow.layer, narrow.images)).all()
    mixed = value_bound(narrow.layer, narrow.images.astype("float64"))
    assert (mixed >= bound / 2).all()


@pytest.mark.slow
def test_where_there_is_no_bound():
    layer = ca.conv_to_attention(jnp.ones((3, 1, 1), jnp.bfloat16))
    images = jnp.ones((1, 300, 1), jnp.bfloat16)
    with pytest.raises(ValueError, match=r"exceed one, so there is no bound; use a wider dtype"):
        gradient_bounds(layer, images, images)
