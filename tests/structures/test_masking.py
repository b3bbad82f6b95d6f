"""Masks and softmax along columns and rows: sums, zeros, and columns without any key."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal, assert_within
from strategies import small_integers

from convattn.ledger.evidence.influence_rounding import column_weights_within
from convattn.structures import (
    column_softmax,
    log_mask,
    masked_scores,
    row_softmax,
)

BLANKED = jnp.array([[True, False, False], [True, False, True]])


def drawn(seed: int, *shape: int) -> tuple[np.ndarray, np.ndarray]:
    """Integer scores, and a mask that leaves every row and column something."""
    rng = np.random.default_rng(seed)
    mask = rng.random(shape[-2:]) < 0.5
    mask[np.arange(shape[-2]), np.arange(shape[-2]) % shape[-1]] = True
    mask[np.arange(shape[-1]) % shape[-2], np.arange(shape[-1])] = True
    return small_integers(rng, *shape), mask


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("seed", range(2))
def test_columns_are_softmax_over_the_keys(dtype, seed):
    scores, mask = drawn(seed, 2, 5, 3)
    out = column_softmax(jnp.asarray(scores, dtype), jnp.asarray(mask))
    assert_dtype(out, dtype)
    within = column_weights_within(scores, dtype, mask)
    assert_within(out, within.reference, within.bound)
    assert not np.asarray(out)[:, ~mask].any()
    by_rows = row_softmax(jnp.asarray(scores, dtype), jnp.asarray(mask))
    with pytest.raises(AssertionError, match="too far"):
        assert_within(by_rows, within.reference, within.bound)


@pytest.mark.parametrize("seed", range(2))
def test_rows_are_columns_of_the_transpose(seed):
    scores, mask = drawn(seed, 2, 5, 3)
    s, mask = jnp.asarray(scores), jnp.asarray(mask)
    assert_equal(row_softmax(s, mask), column_softmax(s.swapaxes(1, 2), mask.T).swapaxes(1, 2))
    assert_equal(row_softmax(s), column_softmax(s.swapaxes(1, 2)).swapaxes(1, 2))


def test_masking_replaces_and_leaves_the_rest():
    scores = jnp.array([[1.0, jnp.nan], [jnp.inf, -2.0]])
    mask = jnp.array([[True, False], [False, True]])
    assert_equal(masked_scores(scores, mask), [[1.0, -np.inf], [-np.inf, -2.0]])
    assert_equal(column_softmax(scores, mask), np.eye(2))
    added = np.asarray(scores + log_mask(mask))  # as printed: +∞ - ∞ and NaN - ∞ are NaN
    assert np.isnan(added[~np.asarray(mask)]).all()
    finite = jnp.array([[1.0, 4.0], [3.0, -2.0]])
    assert_equal(masked_scores(finite, mask), finite + log_mask(mask))


def test_integers_are_made_floats_and_halves_float32():
    mask = jnp.array([[True, False]])
    for dtype in ("int32", "bfloat16", "float16"):
        assert_dtype(masked_scores(jnp.zeros((1, 2), dtype), mask), "float32")
        assert_dtype(column_softmax(jnp.zeros((1, 2), dtype)), "float32")
    assert_dtype(log_mask(mask, "float64"), "float64")


@pytest.mark.parametrize("softmax", [column_softmax, row_softmax])
def test_nothing_but_masks_is_refused_where_it_can_be_seen(softmax):
    mask = BLANKED if softmax is column_softmax else BLANKED.T
    name = "column" if softmax is column_softmax else "row"
    message = rf"^{name} 1 is masked everywhere, so its softmax is 0/0.*\(1 such {name}s\)"
    scores = jnp.zeros(mask.shape)
    with pytest.raises(ValueError, match=message):
        softmax(scores, mask)
    with pytest.raises(ValueError, match=message):
        softmax(log_mask(mask))
    with pytest.raises(ValueError, match=message):
        jax.jit(lambda s: softmax(s, mask))(scores)  # the mask is concrete, the scores are not
    with pytest.raises(ValueError, match=rf"{name} 1 of scores\[2\]"):
        softmax(jnp.stack([scores, scores, log_mask(mask)]))


def test_nothing_but_masks_is_nan_where_it_cannot_be_seen():
    out = np.asarray(jax.jit(column_softmax)(jnp.zeros((2, 3)), BLANKED))
    assert np.isnan(out[:, 1]).all()
    assert_equal(out[:, [0, 2]], [[0.5, 0], [0.5, 1]])


@pytest.mark.slow
def test_nothing_but_masks_is_zero_where_asked_for():
    expected = [[0.5, 0, 0], [0.5, 0, 1]]
    zero = lambda scores, mask: column_softmax(scores, mask, blank="zero")  # noqa: E731
    assert_equal(zero(jnp.zeros((2, 3)), BLANKED), expected)
    assert_equal(jax.jit(zero)(jnp.zeros((2, 3)), BLANKED), expected)
    assert_equal(column_softmax(log_mask(BLANKED), blank="zero"), expected)
    slope = jax.grad(lambda s: zero(s, BLANKED)[0].sum())(jnp.ones((2, 3)))
    assert_equal(slope, [[0.25, 0, 0], [-0.25, 0, 0]])


def test_another_meaning_of_blank_is_refused(unchecked):
    with pytest.raises(ValueError, match="blank='nan', but expected"):
        column_softmax(jnp.zeros((1, 1)), blank="nan")


@pytest.mark.parametrize("function", [column_softmax, row_softmax, masked_scores])
def test_additive_masks_are_refused_also_under_jit(function, unchecked):
    """Read as True and False, an H of 0 and -∞ would mask what it lets through."""
    scores, added = jnp.zeros((2, 2)), np.array([[0, -np.inf], [-np.inf, 0]])
    remedy = "pass the boolean mask, or add H to the scores"
    for dtype in ("float64", "bfloat16", "complex64"):
        with pytest.raises(ValueError, match=rf"mask.dtype={dtype}, but.*{remedy}"):
            function(scores, jnp.asarray(added, dtype))
    with pytest.raises(ValueError, match=remedy):
        jax.eval_shape(function, scores, added)
    with pytest.raises(ValueError, match=remedy):
        function(scores, added.tolist())
    with pytest.raises(ValueError, match=rf"int64 with negative entries.*{remedy}"):
        function(scores, np.array([[0, -10000], [-10000, 0]]))
    with pytest.raises(ValueError, match=remedy):
        log_mask(added)
    assert_equal(function(scores, np.eye(2, dtype=int)), function(scores, np.eye(2, dtype=bool)))
