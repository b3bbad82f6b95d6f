"""Scaled dot products: the definition, eq. 9, and the way to and from bi-affine attention."""

import math
from itertools import product

import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal
from matrix_products import HIGHEST, precisions
from strategies import small_integers

from convattn.structures import (
    ScaledDotProduct,
    as_bi_affine,
    as_scaled_dot_product,
    bi_affine,
    bi_affine_scores,
    scaled_dot_product_scores,
)

BATCH, HEADS, KEYS, QUERIES, WIDTH = 2, 3, 5, 4, 4


def drawn(seed: int, features=(6, 7), *, biases: bool = True, scaled: bool = False):
    """x', y' and the maps, in integers; √D = 2."""
    rng = np.random.default_rng(seed)
    x = small_integers(rng, BATCH, KEYS, features[0])
    y = small_integers(rng, BATCH, QUERIES, features[1])
    maps = [small_integers(rng, HEADS, count, WIDTH) for count in features]
    bias = [small_integers(rng, HEADS, WIDTH) if biases else None for _ in range(2)]
    given = (part if part is None else jnp.asarray(part) for part in (*maps, *bias))
    return jnp.asarray(x), jnp.asarray(y), ScaledDotProduct(*given, scaled=scaled)


def by_definition(x, y, maps) -> np.ndarray:
    x, y, key, query = (np.asarray(part) for part in (x, y, maps.key, maps.query))
    none = np.zeros((HEADS, key.shape[-1]))
    key_bias = none if maps.key_bias is None else np.asarray(maps.key_bias)
    query_bias = none if maps.query_bias is None else np.asarray(maps.query_bias)
    out = np.zeros((BATCH, HEADS, KEYS, QUERIES))
    for b, h, m, n in product(*map(range, out.shape)):
        left, right = x[b, m] @ key[h] + key_bias[h], y[b, n] @ query[h] + query_bias[h]
        out[b, h, m, n] = sum(left * right)
    return out / math.sqrt(WIDTH) if maps.scaled else out


@pytest.mark.parametrize("biases", [False, True])
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_scores_are_products_of_projections(seed, biases, scaled):
    x, y, maps = drawn(seed, biases=biases, scaled=scaled)
    expected = by_definition(x, y, maps)
    assert_equal(scaled_dot_product_scores(x, y, maps), expected)
    with pytest.raises(AssertionError, match="entries differ"):
        assert_equal(scaled_dot_product_scores(x + 1, y, maps), expected)


@pytest.mark.parametrize("biases", [False, True])
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_they_are_bi_affine(seed, biases, scaled):
    """All four terms of eq. 8 with biases, Λ alone without; D = 4, so that √D divides exactly."""
    x, y, maps = drawn(seed, biases=biases, scaled=scaled)
    parameters = as_bi_affine(maps)
    assert_equal(bi_affine_scores(x, y, parameters), by_definition(x, y, maps))
    assert (parameters.offset is None) == (not biases)


@pytest.mark.slow
@pytest.mark.parametrize("features", [(6, 7), (7, 6), (3, 3)])
@pytest.mark.parametrize("seed", range(2))
def test_any_bi_affine_attention_is_a_dot_product(seed, features):
    rng = np.random.default_rng(seed)
    shapes = ((HEADS, *features), (HEADS, features[0]), (HEADS, features[1]), (HEADS,))
    parameters = bi_affine(*(small_integers(rng, *shape) for shape in shapes))
    x = jnp.asarray(small_integers(rng, BATCH, KEYS, features[0]))
    y = jnp.asarray(small_integers(rng, BATCH, QUERIES, features[1]))
    maps = as_scaled_dot_product(parameters, *features)
    assert maps.key.shape == (HEADS, features[0], min(features) + 1)
    assert maps.query.shape == (HEADS, features[1], min(features) + 1)
    assert_equal(scaled_dot_product_scores(x, y, maps), bi_affine_scores(x, y, parameters))
    back = as_bi_affine(maps)
    for name in ("bilinear", "key_weight", "query_weight", "offset"):
        assert_equal(getattr(back, name), getattr(parameters, name), name)


def test_every_product_is_pinned():
    x, y, maps = drawn(3)
    assert {*precisions(scaled_dot_product_scores, x, y, maps)} == {HIGHEST}
    assert {*precisions(as_bi_affine, maps)} == {HIGHEST}


@pytest.mark.usefixtures("unchecked")
def test_maps_that_do_not_fit_are_refused():
    x, y, maps = drawn(4, biases=False)
    with pytest.raises(ValueError, match="same width D"):
        scaled_dot_product_scores(x, y, ScaledDotProduct(maps.key[..., :2], maps.query))
    with pytest.raises(ValueError, match="as many heads"):
        scaled_dot_product_scores(x, y, ScaledDotProduct(maps.key[:2], maps.query))
    with pytest.raises(ValueError, match=r"keys.shape=.*takes 6 features"):
        scaled_dot_product_scores(y, x, maps)
    with pytest.raises(ValueError, match=r"queries.shape=.*takes 7 features"):
        scaled_dot_product_scores(x, x, maps)
