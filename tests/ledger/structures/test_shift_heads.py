"""Shift heads beside attention heads: the sum, the order they see, and the mask they do not."""

import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal
from strategies import small_integers

from convattn_ledger.structures import (
    attention_with_shifts,
    bi_affine,
    bi_affine_scores,
    self_attention_convolution,
    shift_basis,
    structured_convolution,
    with_shift_heads,
)

BATCH, HEADS, NODES, P, Q = 2, 3, 6, 2, 4


def draw(seed: int, shifts: int):
    """x, a mechanism of integer scores, and the parameters of attention and shift heads."""
    rng = np.random.default_rng(seed)
    parameters = bi_affine(small_integers(rng, HEADS, P, P), small_integers(rng, HEADS, P))
    return (
        jnp.asarray(small_integers(rng, BATCH, NODES, P)),
        lambda keys, queries: bi_affine_scores(keys, queries, parameters),
        small_integers(rng, HEADS, P, Q),
        small_integers(rng, shifts, P, Q),
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("grid", "shifts"), [(6, [-1, 0, 2]), ((2, 3), [(0, 1), (1, 0), (-1, -2), (1, 1)])]
)
def test_the_concatenated_basis_gives_the_sum(grid, shifts):
    x, mechanism, theta, more = draw(0, len(shifts))
    basis = shift_basis(grid, shifts)
    expected = self_attention_convolution(x, mechanism, theta)
    expected += structured_convolution(x, basis, more)
    whole = np.concatenate([theta, more])
    written = with_shift_heads(mechanism, grid, shifts)
    assert_equal(self_attention_convolution(x, written, whole), expected)
    assert_equal(attention_with_shifts(x, x, x, mechanism, theta, basis, more), expected)
    exchanged = np.concatenate([theta, more[::-1]])
    with pytest.raises(AssertionError, match="entries differ"):
        assert_equal(self_attention_convolution(x, written, exchanged), expected)
