"""Scores of a Transformer as bi-affine ones; claim A19.transformer has the layer.

`tests/operators/test_attention.py` has Flax's.
"""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal
from matrix_products import HIGHEST, precisions
from strategies import small_integers

from convattn.encodings.layer import ContentScores
from convattn_ledger.structures import as_bi_affine, bi_affine_scores

BATCH, HEADS, TOKENS, FEATURES, WIDTH = 2, 3, 6, 5, 4


@pytest.mark.parametrize("biases", [False, True])
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.quick(2)
def test_scores_are_bi_affine(biases, scaled):
    """All four terms of eq. 8 with biases, Λ alone without; D = 4, so that √D divides exactly."""
    rng = np.random.default_rng(3)
    query, key = map(jnp.asarray, small_integers(rng, 2, HEADS, FEATURES, WIDTH, magnitude=1))
    bias = map(jnp.asarray, small_integers(rng, 2, HEADS, WIDTH)) if biases else (None, None)
    content = replace(ContentScores(query, key, *bias), scaled=scaled)
    x = small_integers(rng, BATCH, TOKENS, FEATURES, magnitude=2)
    keys, queries = jnp.asarray(x), jnp.asarray(x[:, :2] + 1)
    parameters = as_bi_affine(content)
    expected = content.scores(queries, keys).swapaxes(2, 3)
    assert_equal(bi_affine_scores(keys, queries, parameters), expected)
    assert (parameters.offset is None) == (not biases)
    assert {*precisions(as_bi_affine, content)} == {HIGHEST}
