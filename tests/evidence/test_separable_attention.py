"""Axis by axis against the dense grid, in numbers that are exact."""

import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal

from convattn.encodings import BiasEncoding, LearnedEncoding, QuadraticEncoding
from convattn.evidence.separable_attention import (
    AxisScores,
    attend_by_axes,
    axis_scores,
    mixed_difference,
    separable_weights,
)
from convattn.shifts import TokenGrid

GRID = TokenGrid((2, 3), ((1, 0), (0, 2)))
TABLES = tuple(
    jnp.asarray(np.random.default_rng(n).integers(-3, 4, (11, n)), float) for n in (2, 3)
)
ENCODINGS = (
    QuadraticEncoding(jnp.array([1.0, 2.0]), jnp.array([[1.0, -1.0], [0.0, 3.0]])),
    LearnedEncoding(jnp.array([[1.0, -2.0, 3.0, 0.0, 1.0], [0.0, 1.0, 1.0, 2.0, -1.0]]), TABLES),
)


@pytest.mark.parametrize("encoding", ENCODINGS, ids=["quadratic", "learned"])
def test_the_scores_of_the_axes_add_up(encoding):
    parts = axis_scores(encoding, GRID)
    total = parts.rows[:, :, None, :, None] + parts.columns[:, None, :, None, :]
    assert parts.rows.shape == (2, 2, 3)
    assert parts.columns.shape == (2, 3, 5)
    assert_equal(total.reshape(2, 6, 15), encoding.positional_scores(GRID))


def test_scores_that_are_no_sums_do_not_add_up():
    encoding = BiasEncoding(jnp.array([[5.0]]), None, ((1, 1),))
    parts = axis_scores(encoding, GRID)
    total = parts.rows[:, :, None, :, None] + parts.columns[:, None, :, None, :]
    assert (total.reshape(1, 6, 15) != encoding.positional_scores(GRID)).any()


def test_mixing_by_axes_is_mixing_with_the_product():
    rng = np.random.default_rng(4)
    rows, columns = rng.integers(0, 5, (2, 2, 3)), rng.integers(0, 5, (2, 4, 5))
    keys = rng.integers(0, 9, (3, 3, 5, 2))
    dense = np.stack([np.kron(a, b) for a, b in zip(rows, columns, strict=True)])
    flat = keys.reshape(3, 15, 2)
    expected = np.einsum("hqk,bkf->hbqf", dense, flat).reshape(2, 3, 2, 4, 2)
    weights = AxisScores(*(jnp.asarray(part, float) for part in (rows, columns)))
    assert_equal(attend_by_axes(weights, jnp.asarray(keys, float)), expected)


def test_the_weights_are_softmax_rows():
    parts = separable_weights(AxisScores(jnp.zeros((1, 2, 4)), jnp.zeros((1, 1, 2))))
    assert_equal(parts.rows, np.full((1, 2, 4), 0.25))
    assert_equal(parts.columns, np.full((1, 1, 2), 0.5))


def test_mixed_differences():
    assert_equal(mixed_difference(np.outer([1, 2, 5], [3, 0, 7, 1])), np.zeros((2, 3)))
    assert_equal(mixed_difference(np.array([[1, 2], [3, 4]])), [[-2]])
