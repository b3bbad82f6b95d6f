"""Softmax and heads: identities exactly on integers, the rest within derived bounds."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal, assert_within, gamma
from flax import linen
from hypothesis import given
from matrix_products import HIGHEST, precisions
from strategies import TOKEN_BUCKETS, TokenBucket, seeds, small_integers, token_buckets

from convattn.operators.attention import attention_weights, multi_head_self_attention
from convattn_ledger.evidence.scores import content_scores

# Assumed of exp, in float32 and float64: at most four units in the last place.
EXP_ULPS = 4


@pytest.mark.parametrize(("dtype", "working"), [
    ("float64", "float64"), ("float32", "float32"), ("bfloat16", "float32"), ("float16", "float32"),
    ("int32", "float32"),
])  # fmt: skip
@given(seed=seeds())
@pytest.mark.quick(2)
def test_rows_are_nonnegative_and_sum_to_one(dtype, working, seed):
    """With e_k the computed exponentials and S their rounded sum, Σ fl(e_k/S) = 1 up to γ_(N+2):
    N - 1 additions, a reciprocal, a product, one to spare; the error of exp cancels."""
    scores = small_integers(np.random.default_rng(seed), 3, 4, 7, magnitude=30)
    out = attention_weights(jnp.asarray(scores, dtype))
    assert_dtype(out, working)
    rows = np.asarray(out, np.float64)
    assert (rows >= 0).all()
    sums = np.array([[math.fsum(row) for row in head] for head in rows])
    assert_within(sums, np.ones((3, 4)), gamma(9, working))
    with pytest.raises(AssertionError, match="too far"):
        assert_within(sums * (1 + 2 * gamma(9, working)), np.ones((3, 4)), gamma(9, working))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@given(seed=seeds())
def test_weights_are_exponentials_over_their_sum(dtype, seed):
    scores = small_integers(np.random.default_rng(seed), 2, 3, 5, magnitude=9)
    out = attention_weights(jnp.asarray(scores, dtype))
    exponentials = np.exp((scores - scores.max(-1, keepdims=True)).astype(np.longdouble))
    expected = (exponentials / exponentials.sum(-1, keepdims=True)).astype(np.float64)
    each = 2 * EXP_ULPS  # in units of roundoff, above and below the fraction bar
    roundings = 2 * each + 5 + 2 + (1 if dtype == "float64" else 0)  # the last: expected's own
    assert_within(out, expected, gamma(roundings, dtype) * expected)


def test_a_masked_score_has_no_influence_however_large():
    mask = jnp.array([[True, True, False]])
    for hidden in (0.0, 1e30, np.inf):
        assert_equal(attention_weights(jnp.array([[1.0, 1.0, hidden]]), mask), [[0.5, 0.5, 0]])


@pytest.mark.slow
def test_a_row_that_is_masked_altogether_is_zero_and_has_a_gradient():
    mask = jnp.array([[True, True], [False, False]])
    scores = jnp.array([[1.0, 1.0], [5.0, -7.0]])
    assert_equal(attention_weights(scores, mask), [[0.5, 0.5], [0.0, 0.0]])
    slope = jax.grad(lambda s: attention_weights(s, mask)[:, 0].sum())(scores)
    assert_equal(slope, [[0.25, -0.25], [0.0, 0.0]])
    naive = jax.nn.softmax(jnp.where(mask, scores, -jnp.inf))
    assert np.isnan(np.asarray(naive)[1]).all()


def test_a_row_of_minus_infinity_is_nan_unless_the_mask_says_so():
    """-∞ alone is 0/0, also where a mask lets nothing but -∞ through; the other rows are whole."""
    scores = jnp.array([[-jnp.inf, -jnp.inf], [-jnp.inf, 3.0]])
    out = np.asarray(attention_weights(scores))
    assert np.isnan(out[0]).all()
    assert_equal(out[1], [0.0, 1.0])
    mask = jnp.array([[True, False], [True, True]])
    out = np.asarray(attention_weights(scores, mask))
    assert np.isnan(out[0, 0])
    assert out[0, 1] == 0
    assert_equal(out[1], [0.0, 1.0])
    assert_equal(attention_weights(scores, scores > -jnp.inf), [[0.0, 0.0], [0.0, 1.0]])


def one_hot_heads(generator: np.random.Generator, *shape: int, keys: int) -> np.ndarray:
    """Weights that pick one key each: products with them round nothing."""
    return np.eye(keys)[generator.integers(0, keys, shape)]


def concatenate_and_project(tokens, weights, value, output, bias):
    """concat_h(A_h X W_val,h) W_out + b, with W_out the `output` blocks stacked: C20 eq. 4."""
    heads, _, head_features = value.shape
    stacked = output.reshape(heads * head_features, -1)
    images = []
    for index, image in enumerate(tokens):
        rows = weights[index] if weights.ndim == 4 else weights
        images.append(np.concatenate([rows[h] @ image @ value[h] for h in range(heads)], axis=-1))
    return np.stack(images) @ stacked + bias


def layer_operands(bucket: TokenBucket, seed: int, *, per_image: bool):
    generator = np.random.default_rng(seed)
    lead = (bucket.batch,) if per_image else ()
    queries = bucket.tokens - 1  # so that queries and keys cannot be taken for one another
    return (
        small_integers(generator, bucket.batch, bucket.tokens, bucket.features),
        one_hot_heads(generator, *lead, bucket.heads, queries, keys=bucket.tokens),
        small_integers(generator, bucket.heads, bucket.features, bucket.head_features),
        small_integers(generator, bucket.heads, bucket.head_features, bucket.out_features),
        small_integers(generator, bucket.out_features),
    )


@pytest.mark.slow
@pytest.mark.parametrize("per_image", [False, True])
@given(bucket=token_buckets(), seed=seeds())
def test_summing_heads_is_concatenating_and_projecting(bucket, seed, per_image):
    operands = layer_operands(bucket, seed, per_image=per_image)
    expected = concatenate_and_project(*operands)
    assert_equal(multi_head_self_attention(*map(jnp.asarray, operands)), expected)


def test_heads_in_another_order_are_noticed():
    tokens, weights, value, output, bias = layer_operands(TOKEN_BUCKETS[0], 1, per_image=False)
    out = concatenate_and_project(tokens, weights, value, output, bias)
    for wrong in (
        (tokens, weights[::-1], value, output, bias),
        (tokens, weights, value[::-1], output, bias),
        (tokens, weights, value, output[::-1], bias),
        (tokens[:, ::-1], weights, value, output, bias),
        (tokens, weights, value, output, None),
    ):
        mistaken = multi_head_self_attention(*(x if x is None else jnp.asarray(x) for x in wrong))
        with pytest.raises(AssertionError, match="entries differ"):
            assert_equal(mistaken, out)


@pytest.mark.slow
@pytest.mark.parametrize("per_image", [False, True])
@pytest.mark.parametrize(("width_in", "width_out"), [(3, 5), (5, 3), (4, 4)])
def test_no_map_is_the_identity(width_in, width_out, per_image):
    """Whichever of the two maps is left out, and whichever side is narrower."""
    bucket = TokenBucket(2, 6, width_in, 1, 7, width_in, width_out)
    tokens, weights, _, single, bias = map(
        jnp.asarray, layer_operands(bucket, 2, per_image=per_image)
    )
    before = jnp.broadcast_to(jnp.eye(width_in), (7, width_in, width_in))
    after = jnp.broadcast_to(jnp.eye(width_out), (7, width_out, width_out))
    expected = multi_head_self_attention(tokens, weights, before, single, bias)
    assert_equal(multi_head_self_attention(tokens, weights, None, single, bias), expected)
    assert_equal(multi_head_self_attention(tokens, weights, single, None, bias), expected)
    assert_equal(multi_head_self_attention(tokens, weights, single, after, bias), expected)
    both = multi_head_self_attention(tokens, weights)
    assert_equal(both, multi_head_self_attention(tokens, weights, before, before))


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "float16"])
def test_sums_run_in_at_least_float32(dtype):
    """2^11 + 1 ones: a sum in bfloat16 would end at 256, one in float16 at 2048."""
    count = 2**11 + 1
    tokens = jnp.ones((1, 1, count), dtype)
    out = multi_head_self_attention(
        tokens, jnp.ones((1, 1, 1), dtype), None, jnp.ones((1, count, 1), dtype)
    )
    assert_dtype(out, "float64" if dtype == "float64" else "float32")
    assert_equal(out, np.full((1, 1, 1), count))


def error_bound(tokens, query, key, value, output, dtype: str = "float64") -> np.ndarray:
    """How far softmax attention in `dtype` can be from exact, whatever the order of its sums.

    Scores go through sums of D, D and d products and a scale: they are off by at most
    γ·|X||W_qry||W_key|ᵀ|X|ᵀ/√d. With the rounding of s - max that is E in the argument of exp, so
    a weight is off by the factor e^(2E)·((1 + x)/(1 - x))(1 + γ_(N+2)), x the error of exp. The
    products with X, W_val and W_out are sums of N, D, d_v and H terms.
    """
    features, key_features = query.shape[1:]
    heads, _, head_features = value.shape
    count = tokens.shape[-2]
    u = float(jnp.finfo(dtype).eps) / 2
    left, right = np.abs(tokens) @ np.abs(query), np.abs(tokens) @ np.abs(key)
    sizes = left @ right.swapaxes(-1, -2) / math.sqrt(key_features)
    scores = (tokens @ query) @ (tokens @ key).swapaxes(-1, -2) / math.sqrt(key_features)
    spread = np.ptp(scores, axis=-1)
    argument = gamma(2 * features + key_features + 4, dtype) * sizes.max(-1) + u * spread
    exp_error = 2 * EXP_ULPS * u
    factors = [exp_error, gamma(count + 2, dtype)]
    factors.append(gamma(count + features + head_features + heads + 2, dtype))
    logarithm = 2 * argument - np.log1p(-exp_error) + sum(map(np.log1p, factors))
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    shares /= shares.sum(-1, keepdims=True)
    majorant = (shares @ np.abs(tokens) @ np.abs(value) @ np.abs(output)).sum(0)
    # the last factor is for the rounding of this computation itself
    return np.expm1(logarithm).max() * majorant * (1 + 2.0**-20)


def content_operands(seed: int, *, count: int = 5):
    """X, and W_qry, W_key, W_val, W_out of three heads, in real numbers."""
    generator = np.random.default_rng(seed)
    shapes = ((count, 4), (3, 4, 2), (3, 4, 2), (3, 4, 2), (3, 2, 6))
    return tuple(generator.normal(size=shape) for shape in shapes)


def content_attention(tokens, query, key, value, output, bias=0.0):
    """The whole of eq. 1 with the functions under test, one image."""
    scores = jax.vmap(lambda q, k: content_scores(tokens, q, k, scale=True))(query, key)
    weights = attention_weights(scores + bias)
    return multi_head_self_attention(tokens[None], weights, value, output)[0]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_flax_attention_with_the_same_weights(seed):
    tokens, query, key, value, output = map(jnp.asarray, content_operands(seed))
    theirs = linen.MultiHeadDotProductAttention(
        num_heads=3, qkv_features=6, out_features=6, use_bias=False, dtype=jnp.float64
    )
    kernels = {"query": query, "key": key, "value": value}
    parameters = {name: {"kernel": jnp.moveaxis(w, 0, 1)} for name, w in kernels.items()}
    expected = theirs.apply({"params": {**parameters, "out": {"kernel": output}}}, tokens[None])
    bound = 2 * error_bound(*content_operands(seed))  # theirs and ours
    out = content_attention(tokens, query, key, value, output)
    assert_within(out, expected[0], bound)
    with pytest.raises(AssertionError, match="too far"):
        assert_within(content_attention(tokens, key, query, value, output), expected[0], bound)


def test_the_precision_of_every_product_is_pinned():
    heads = tuple(map(jnp.asarray, layer_operands(TOKEN_BUCKETS[0], 9, per_image=False)))
    assert {*precisions(multi_head_self_attention, *heads)} == {HIGHEST}
