"""Axis by axis against the dense grid, in numbers that are exact."""

import jax.numpy as jnp
import numpy as np
from comparison import assert_equal

from convattn.encodings import AxisScores
from convattn.evidence.separable_attention import (
    attend_by_axes,
    mixed_difference,
    separable_weights,
)


def test_mixing_by_axes_is_mixing_with_the_product():
    rng = np.random.default_rng(4)
    rows, columns = rng.integers(0, 5, (2, 2, 3)), rng.integers(0, 5, (2, 4, 5))
    keys = rng.integers(0, 9, (3, 3, 5, 2))
    dense = np.stack([np.kron(a, b) for a, b in zip(rows, columns, strict=True)])
    flat = keys.reshape(3, 15, 2)
    expected = np.einsum("hqk,bkf->hbqf", dense, flat).reshape(2, 3, 2, 4, 2)
    arrays = (jnp.asarray(part, float) for part in (rows, columns, keys))
    assert_equal(attend_by_axes(*arrays), expected)


def test_the_weights_are_the_softmax_rows_of_each_heads_group():
    scores = jnp.zeros((2, 2, 4)).at[1, :, 0].set(1000.0), jnp.zeros((1, 1, 2))
    rows, columns = separable_weights(AxisScores(scores, ((1, 0, 1), (0, 0, 0))))
    one_hot = np.broadcast_to([1.0, 0.0, 0.0, 0.0], (2, 4))
    assert_equal(rows, np.stack([one_hot, np.full((2, 4), 0.25), one_hot]))
    assert_equal(columns, np.full((3, 1, 2), 0.5))


def test_mixed_differences():
    assert_equal(mixed_difference(np.outer([1, 2, 5], [3, 0, 7, 1])), np.zeros((2, 3)))
    assert_equal(mixed_difference(np.array([[1, 2], [3, 4]])), [[-2]])
