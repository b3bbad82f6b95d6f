"""The reference back end against its definition, in numbers that are exact."""

from dataclasses import replace
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal, assert_within, gamma
from strategies import small_integers

from convattn.encodings import BiasEncoding, ScalarEncoding
from convattn.encodings.layer import AttentionLayer, ContentScores
from convattn.fast.dense import attend, layer_weights, softmax_weights, work
from convattn.fast.options import AttentionOptions
from convattn.operators.shifts import TokenGrid
from convattn_ledger.evidence.exact_attention import exact_softmax

GRID = TokenGrid((2, 3), ((1, 0), (0, 1)))  # 12 keys


def pulling(count, offset=(0, 1)):
    """Heads that weigh the key at one offset 5 times as much as the others: 5/16, 1/16."""
    return BiasEncoding(jnp.full((count, 1), jnp.log(5.0)), None, (offset,))


def definition(images, weights, value, output):
    """Σ_h Σ_k A_h(q, k) X_k V_h O_h, loop by loop; ring keys are zero."""
    batch = images.shape[0]
    keys = np.pad(images, [(0, 0), *GRID.ring, (0, 0)]).reshape(batch, GRID.number_of_keys, -1)
    total = np.zeros((batch, 6, output.shape[-1]), object)
    for b in range(batch):
        for q in range(6):
            for head, row in enumerate(weights[:, q]):
                attended = sum(weight * keys[b, k] for k, weight in enumerate(row))
                total[b, q] += attended @ value[head] @ output[head]
    return total.reshape(batch, 2, 3, -1)


def fractions_of(offset):
    """The weights of `pulling` at every query, as fractions."""
    shifts = GRID.key_positions[None] - GRID.query_positions[:, None]
    return exact_softmax((shifts == offset).all(-1).astype(int), Fraction(5))


def test_it_is_the_sum_over_heads_and_keys():
    """Two heads of the same kind at two offsets, one of them with missing keys: 1/12 everywhere."""
    rng = np.random.default_rng(1)
    images = small_integers(rng, 2, 2, 3, 2, dtype=np.int64)
    value, output = (small_integers(rng, 2, *s, dtype=np.int64) for s in ((2, 3), (3, 4)))
    offsets = ((0, 1), (-1, -1))
    weights = np.stack([fractions_of(offset) for offset in offsets])
    encoding = BiasEncoding(jnp.eye(2) * jnp.log(5.0), None, offsets)
    maps = jnp.asarray(value, float), jnp.asarray(output, float)
    layer = AttentionLayer(encoding, *maps, bias=jnp.ones(4), ring=GRID.ring)
    actual = jax.jit(lambda x: attend(layer, GRID, x, AttentionOptions()))(images)
    exact = definition(images, weights, value, output)
    terms = definition(np.abs(images), weights, np.abs(value), np.abs(output))
    # Scores and exp twice, 12 keys and a quotient; 2, 3, 12 and 6 products: fewer than 64.
    limit = gamma(64, "float64") * terms.astype(float)
    assert_within(actual, exact.astype(float), limit, "without the bias")
    wrong = definition(images, weights[::-1], value, output).astype(float)
    with pytest.raises(AssertionError, match="expected within"):
        assert_within(actual, wrong, limit)


@pytest.mark.slow
def test_gains_multiply_the_weights_and_not_the_softmax():
    heads = ScalarEncoding(jnp.array([0.0, 1.0]), jnp.log(jnp.array([3.0])), None, ((0, 0),))
    layer = AttentionLayer(heads, None, None, ring=GRID.ring)
    rows = softmax_weights(layer, GRID, None)
    assert_within(rows.sum(axis=-1), np.ones((2, 6)), gamma(64, "float64"))
    gains = heads.head_gains(GRID.number_of_keys)
    assert (np.asarray(gains) > 1).all()
    assert_equal(layer_weights(layer, GRID, None), rows * gains[:, None, None])


def test_work_counts_pairs_and_maps():
    """6 queries on 12 keys, 2 heads, 5 images, 4 features to 3 to 7."""
    layer = AttentionLayer(pulling(2), jnp.zeros((2, 4, 3)), jnp.zeros((2, 3, 7)))
    counted = work(layer, GRID, 5, 4)
    assert counted.exponentials == 2 * 6 * 12
    assert counted.products == 5 * (2 * 6 * 12 * 3 + 6 * (2 * 4 * 3 + 2 * 3 * 7))
    content = ContentScores(jnp.zeros((2, 4, 1)), jnp.zeros((2, 4, 1)))
    assert work(replace(layer, content=content), GRID, 5, 4).exponentials == 5 * 2 * 6 * 12
    assert (np.array(work(layer, TokenGrid((9, 9), GRID.ring), 5, 4)) >= np.array(counted)).all()
