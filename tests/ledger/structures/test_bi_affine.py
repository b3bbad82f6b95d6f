"""Bi-affine scores: eq. 8 entry by entry on integers, term by term."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal
from matrix_products import HIGHEST, precisions
from strategies import small_integers

from convattn_ledger.structures import bi_affine, bi_affine_scores

BATCH, HEADS, KEYS, QUERIES, KEY_FEATURES, QUERY_FEATURES = 2, 3, 5, 4, 2, 6
FIELDS = ("bilinear", "key_weight", "query_weight", "offset")


def draw(seed: int) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """x', y' and Ξ, in integers."""
    rng = np.random.default_rng(seed)
    keys = small_integers(rng, BATCH, KEYS, KEY_FEATURES)
    queries = small_integers(rng, BATCH, QUERIES, QUERY_FEATURES)
    shapes = (
        (HEADS, KEY_FEATURES, QUERY_FEATURES),
        (HEADS, KEY_FEATURES),
        (HEADS, QUERY_FEATURES),
        (HEADS,),
    )
    terms = [small_integers(rng, *shape) for shape in shapes]
    return keys, queries, dict(zip(FIELDS, terms, strict=True))


def by_definition(keys, queries, terms) -> np.ndarray:
    """The second line of eq. 8, one number at a time."""
    out = np.zeros((BATCH, HEADS, KEYS, QUERIES))
    for b, h, m, n in product(*map(range, out.shape)):
        x, y = keys[b, m], queries[b, n]
        for p, q in product(range(KEY_FEATURES), range(QUERY_FEATURES)):
            out[b, h, m, n] += terms["bilinear"][h, p, q] * x[p] * y[q]
        out[b, h, m, n] += sum(terms["key_weight"][h, p] * x[p] for p in range(KEY_FEATURES))
        out[b, h, m, n] += sum(terms["query_weight"][h, q] * y[q] for q in range(QUERY_FEATURES))
        out[b, h, m, n] += terms["offset"][h]
    return out


@pytest.mark.parametrize("missing", FIELDS)
def test_a_term_that_is_none_is_zero_and_every_term_counts(missing):
    keys, queries, terms = draw(1)
    rest = bi_affine(**{name: term for name, term in terms.items() if name != missing})
    out = bi_affine_scores(jnp.asarray(keys), jnp.asarray(queries), rest)
    assert_equal(out, by_definition(keys, queries, {**terms, missing: 0 * terms[missing]}))
    with pytest.raises(AssertionError, match="entries differ"):
        assert_equal(out, by_definition(keys, queries, terms))


@pytest.mark.slow
def test_dtypes_jit_gradients_and_precision():
    keys, queries, terms = draw(5)
    for dtype, working in (("int32", "int32"), ("bfloat16", "float32"), ("float64", "float64")):
        parameters = bi_affine(**{name: jnp.asarray(term, dtype) for name, term in terms.items()})
        x, y = jnp.asarray(keys, dtype), jnp.asarray(queries, dtype)
        out = jax.jit(bi_affine_scores)(x, y, parameters)
        assert_dtype(out, working)
        assert_equal(out, by_definition(keys, queries, terms))
    slopes = jax.grad(lambda parameters: bi_affine_scores(x, y, parameters).sum())(parameters)
    assert_equal(slopes.offset, np.full(HEADS, BATCH * KEYS * QUERIES))
    assert_equal(slopes.key_weight, np.tile(QUERIES * keys.sum((0, 1)), (HEADS, 1)))
    assert {*precisions(bi_affine_scores, x, y, parameters)} == {HIGHEST}
