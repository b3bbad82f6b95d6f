"""Masks and the softmax along columns: sums, zeros, and columns without any key."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal

from convattn_ledger.structures import column_softmax, masked_scores

BLANKED = jnp.array([[True, False, False], [True, False, True]])


def test_masking_replaces_and_leaves_the_rest():
    scores = jnp.array([[1.0, jnp.nan], [jnp.inf, -2.0]])
    mask = jnp.array([[True, False], [False, True]])
    assert_equal(masked_scores(scores, mask), [[1.0, -np.inf], [-np.inf, -2.0]])
    assert_equal(column_softmax(scores, mask), np.eye(2))


def test_integers_are_made_floats_and_halves_float32():
    mask = jnp.array([[True, False]])
    for dtype in ("int32", "bfloat16", "float16"):
        assert_dtype(masked_scores(jnp.zeros((1, 2), dtype), mask), "float32")
        assert_dtype(column_softmax(jnp.zeros((1, 2), dtype)), "float32")


def test_a_blank_column_is_not_a_number_where_it_cannot_be_seen():
    out = np.asarray(jax.jit(column_softmax)(jnp.zeros(BLANKED.shape), BLANKED))
    assert np.isnan(out[:, 1]).all()
    assert_equal(out[:, [0, 2]], [[0.5, 0], [0.5, 1]])


@pytest.mark.slow
def test_a_blank_column_is_zero_where_asked_for():
    zero = lambda scores: column_softmax(scores, BLANKED, blank="zero")  # noqa: E731
    assert_equal(zero(jnp.zeros((2, 3))), [[0.5, 0, 0], [0.5, 0, 1]])
    assert_equal(jax.jit(zero)(jnp.zeros((2, 3))), [[0.5, 0, 0], [0.5, 0, 1]])
    slope = jax.grad(lambda s: zero(s)[0].sum())(jnp.ones((2, 3)))
    assert_equal(slope, [[0.25, 0, 0], [-0.25, 0, 0]])
