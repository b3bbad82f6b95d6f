"""Scores: identities exactly on integers, the scaled ones within derived bounds."""

import math
from itertools import product

import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal, assert_within, gamma
from hypothesis import given
from matrix_products import HIGHEST, precisions
from strategies import TOKEN_BUCKETS, TokenBucket, seeds, small_integers, token_buckets

from convattn.operators.scores import (
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


def drawn(bucket: TokenBucket, seed: int):
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


@given(token_buckets(), seeds())
def test_content_scores_are_eq_2(bucket, seed):
    tokens, query, key, _ = drawn(bucket, seed)
    expected = scores_by_hand(tokens, query, key)
    assert_equal(content_scores(tokens, query, key), expected)
    assert_equal(content_scores(tokens[0], query, key), expected[0])
    swapped = content_scores(tokens, key, query)
    assert_equal(swapped, expected.swapaxes(-1, -2))
    if asymmetric(expected):
        with pytest.raises(AssertionError, match="entries differ"):
            assert_equal(swapped, expected)


def test_the_scale_is_the_root_of_the_key_features():
    tokens, query, key, _ = drawn(TokenBucket(2, 5, 3, 4, 6, 7, 8), 0)
    assert_equal(
        2 * content_scores(tokens, query, key, scale=True), content_scores(tokens, query, key)
    )
    tokens, query, key, _ = drawn(TokenBucket(3, 4, 6, 2, 1, 5, 7), 0)
    expected = scores_by_hand(tokens, query, key)
    bound = gamma(2, "float64") * abs(expected) / math.sqrt(2)  # the root, the quotient
    assert_within(
        content_scores(tokens, query, key, scale=True), expected / math.sqrt(2), 2 * bound
    )


@given(token_buckets(), seeds())
def test_the_four_terms_of_eq_7_add_up_to_eq_3(bucket, seed):
    tokens, query, key, positions = drawn(bucket, seed)
    terms = absolute_score_terms(tokens, positions, query, key)
    whole = position_added_scores(tokens, positions, query, key)
    assert_equal(sum(terms), whole)
    assert_equal(whole, scores_by_hand(tokens + positions, query, key))
    matrix = query @ key.T
    assert_equal(terms.content_content, tokens @ matrix @ tokens.swapaxes(-1, -2))
    assert_equal(terms.content_position, tokens @ matrix @ positions.T)
    assert_equal(terms.position_content, positions @ matrix @ tokens.swapaxes(-1, -2))
    assert_equal(terms.position_position, positions @ matrix @ positions.T)


@pytest.mark.parametrize("missing", range(4))
def test_each_of_the_four_terms_is_needed(missing):
    tokens, query, key, positions = drawn(TOKEN_BUCKETS[0], 1)
    terms = absolute_score_terms(tokens, positions, query, key)
    rest = sum(term for index, term in enumerate(terms) if index != missing)
    with pytest.raises(AssertionError, match="entries differ"):
        assert_equal(rest, position_added_scores(tokens, positions, query, key))


def drawn_relative(bucket: TokenBucket, seed: int):
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


@given(token_buckets(), seeds())
def test_the_four_terms_of_eq_8(bucket, seed):
    tokens, query, key, _ = drawn(bucket, seed)
    relative, position_key, u, v = drawn_relative(bucket, seed + 1)
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


def test_without_content_only_the_shift_counts():
    bucket = TOKEN_BUCKETS[0]
    tokens, query, key, _ = drawn(bucket, 2)
    weights = drawn_relative(bucket, 3)
    terms = relative_score_terms(tokens, weights[0], query, key, *weights[1:])

    def depends_on_the_shift_alone(scores) -> bool:
        diagonals = [np.diagonal(scores[0], offset) for offset in range(-4, 5)]
        return all((diagonal == diagonal[0]).all() for diagonal in diagonals)

    assert depends_on_the_shift_alone(terms.bias_position)
    assert not depends_on_the_shift_alone(terms.content_position)
    assert not depends_on_the_shift_alone(terms.bias_content)
    assert not depends_on_the_shift_alone(sum(terms))
    blank = relative_score_terms(0 * tokens, weights[0], query, key, *weights[1:])
    assert_equal(sum(blank), terms.bias_position)
    assert np.asarray(terms.bias_position).any()


def test_biased_scores_are_scaled_products_and_the_table():
    tokens, query, key, _ = drawn(TOKEN_BUCKETS[0], 4)  # four key features: √d = 2
    bias = jnp.asarray(small_integers(np.random.default_rng(5), 5, 5))
    out = biased_scores(tokens, query, key, bias)
    assert_equal(out, scores_by_hand(tokens, query, key) / 2 + bias)
    with pytest.raises(AssertionError, match="entries differ"):
        assert_equal(biased_scores(tokens, query, key, bias.T), out)


def test_permuting_integer_tokens_permutes_scores_exactly():
    tokens, query, key, positions = drawn(TOKEN_BUCKETS[2], 8)
    order = np.array([3, 0, 6, 1, 5, 2, 4])
    out = np.asarray(content_scores(tokens, query, key))
    permuted = content_scores(tokens[:, order], query, key)
    assert_equal(permuted, out[:, order][:, :, order])
    placed = np.asarray(position_added_scores(tokens, positions, query, key))
    with pytest.raises(AssertionError, match="entries differ"):
        assert_equal(
            position_added_scores(tokens[:, order], positions, query, key),
            placed[:, order][:, :, order],
        )


def test_the_precision_of_every_product_is_pinned():
    tokens, query, key, positions = drawn(TOKEN_BUCKETS[0], 9)
    relative = drawn_relative(TOKEN_BUCKETS[0], 9)
    for function, arguments in [
        (content_scores, (tokens, query, key)),
        (absolute_score_terms, (tokens, positions, query, key)),
        (relative_score_terms, (tokens, relative[0], query, key, *relative[1:])),
    ]:
        assert {*precisions(function, *arguments)} == {HIGHEST}, function
