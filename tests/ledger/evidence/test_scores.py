"""Scores: identities exactly on integers, the scaled ones within derived bounds."""

from itertools import product

import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal
from hypothesis import given, settings
from matrix_products import HIGHEST, precisions
from strategies import TOKEN_BUCKETS, TokenBucket, seeds, small_integers, token_buckets

from convattn_ledger.evidence.scores import (
    absolute_score_terms,
    biased_scores,
    content_scores,
    position_added_scores,
    relative_score_terms,
)


def scores_by_hand(tokens, query, key):
    """X_q W_qry W_keyᵀ X_kᵀ, one query and one key at a time."""
    tokens, query, key = map(np.asarray, (tokens, query, key))
    batch, count, _ = tokens.shape
    out = np.zeros((batch, count, count))
    for b, q, k in product(range(batch), range(count), range(count)):
        out[b, q, k] = (tokens[b, q] @ query) @ (tokens[b, k] @ key)
    return out


def draw(bucket: TokenBucket, seed: int):
    """X, W_qry, W_key and P, in integers."""
    generator = np.random.default_rng(seed)
    return (
        jnp.asarray(small_integers(generator, bucket.batch, bucket.tokens, bucket.features)),
        jnp.asarray(small_integers(generator, bucket.features, bucket.key_features)),
        jnp.asarray(small_integers(generator, bucket.features, bucket.key_features)),
        jnp.asarray(small_integers(generator, bucket.tokens, bucket.features)),
    )


def asymmetric(matrix) -> bool:
    return bool((matrix != matrix.swapaxes(-1, -2)).any())


@settings(max_examples=10)
@given(token_buckets(), seeds())
def test_content_scores_are_eq_2(bucket, seed):
    tokens, query, key, _ = draw(bucket, seed)
    expected = scores_by_hand(tokens, query, key)
    assert_equal(content_scores(tokens, query, key), expected)
    assert_equal(content_scores(tokens[0], query, key), expected[0])
    swapped = content_scores(tokens, key, query)
    assert_equal(swapped, expected.swapaxes(-1, -2))
    if asymmetric(expected):
        with pytest.raises(AssertionError, match="entries differ"):
            assert_equal(swapped, expected)


@settings(max_examples=10)
@given(token_buckets(), seeds())
def test_the_four_terms_of_eq_7_add_up_to_eq_3(bucket, seed):
    tokens, query, key, positions = draw(bucket, seed)
    terms = absolute_score_terms(tokens, positions, query, key)
    whole = position_added_scores(tokens, positions, query, key)
    tokens, query, key, positions = map(np.asarray, (tokens, query, key, positions))
    assert_equal(sum(map(np.asarray, terms)), whole)
    assert_equal(whole, scores_by_hand(tokens + positions, query, key))
    matrix = query @ key.T
    assert_equal(terms.content_content, tokens @ matrix @ tokens.swapaxes(-1, -2))
    assert_equal(terms.content_position, tokens @ matrix @ positions.T)
    assert_equal(terms.position_content, positions @ matrix @ tokens.swapaxes(-1, -2))
    assert_equal(terms.position_position, positions @ matrix @ positions.T)


def draw_relative(bucket: TokenBucket, seed: int):
    """r_δ for each query and key, read from a table of shifts; Ŵ_key, u and v."""
    generator = np.random.default_rng(seed)
    shifts = np.arange(bucket.tokens)[None] - np.arange(bucket.tokens)[:, None]
    table = small_integers(generator, 2 * bucket.tokens - 1, bucket.head_features)
    return (
        jnp.asarray(table[shifts + bucket.tokens - 1]),
        jnp.asarray(small_integers(generator, bucket.head_features, bucket.key_features)),
        jnp.asarray(small_integers(generator, bucket.key_features)),
        jnp.asarray(small_integers(generator, bucket.key_features)),
    )


@settings(max_examples=10)
@given(token_buckets(), seeds())
@pytest.mark.slow
def test_the_four_terms_of_eq_8(bucket, seed):
    tokens, query, key, _ = draw(bucket, seed)
    relative, position_key, u, v = draw_relative(bucket, seed + 1)
    terms = relative_score_terms(tokens, relative, query, key, position_key, u, v)
    terms = [np.asarray(term) for term in terms]
    tokens, query, key = map(np.asarray, (tokens, query, key))
    relative, position_key, u, v = map(np.asarray, (relative, position_key, u, v))
    count = range(bucket.tokens)
    for b, q, k in product(range(bucket.batch), count, count):
        left, right = tokens[b, q] @ query, tokens[b, k] @ key
        shift = relative[q, k] @ position_key
        for term, expected in zip(
            terms, (left @ right, left @ shift, u @ right, v @ shift), strict=True
        ):
            assert term[b, q, k] == expected


def test_biased_scores_are_scaled_products_and_the_table():
    tokens, query, key, _ = draw(TOKEN_BUCKETS[0], 4)  # four key features: √d = 2
    bias = jnp.asarray(small_integers(np.random.default_rng(5), 5, 5))
    out = biased_scores(tokens, query, key, bias)
    assert_equal(out, scores_by_hand(tokens, query, key) / 2 + np.asarray(bias))
    with pytest.raises(AssertionError, match="entries differ"):
        assert_equal(biased_scores(tokens, query, key, bias.T), out)


def test_the_precision_of_every_product_is_pinned():
    tokens, query, key, positions = draw(TOKEN_BUCKETS[0], 9)
    relative = draw_relative(TOKEN_BUCKETS[0], 9)
    for function, arguments in [
        (content_scores, (tokens, query, key)),
        (absolute_score_terms, (tokens, positions, query, key)),
        (relative_score_terms, (tokens, relative[0], query, key, *relative[1:])),
    ]:
        assert {*precisions(function, *arguments)} == {HIGHEST}, function
