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


@pytest.mark.parametrize("dtype", ["int32", "bfloat16", "float64"])
def test_sums_run_in_at_least_float32_and_the_precision_is_pinned(dtype):
    keys, queries, terms = (jax.tree.map(lambda a: jnp.asarray(a, dtype), part) for part in draw(5))
    arguments = keys, queries, bi_affine(**terms)
    working = "float32" if dtype == "bfloat16" else dtype
    assert_dtype(jax.eval_shape(bi_affine_scores, *arguments), working)
    assert {*precisions(bi_affine_scores, *arguments)} == {HIGHEST}
