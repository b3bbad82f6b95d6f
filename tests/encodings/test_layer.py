"""`AttentionLayer` and `ContentScores`: what they say of themselves, and that they are pytrees."""

import dataclasses
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal
from hypothesis import given
from strategies import seeds, small_integers

from convattn.encodings import QuadraticEncoding
from convattn.encodings.layer import AttentionLayer, ContentScores

BATCH, QUERIES, KEYS, FEATURES, KEY_FEATURES, HEADS = 2, 3, 5, 6, 4, 7


def content(seed: int = 0, **options) -> ContentScores:
    generator = np.random.default_rng(seed)
    maps = [small_integers(generator, HEADS, FEATURES, KEY_FEATURES) for _ in range(2)]
    biases = [small_integers(generator, HEADS, KEY_FEATURES) for _ in range(2)]
    return ContentScores(*map(jnp.asarray, (*maps, *biases)), **options)


def tokens(seed: int) -> tuple[jax.Array, jax.Array]:
    generator = np.random.default_rng(seed)
    return tuple(
        jnp.asarray(small_integers(generator, BATCH, n, FEATURES)) for n in (QUERIES, KEYS)
    )


def layer(**changes) -> AttentionLayer:
    encoding = QuadraticEncoding(jnp.ones(3), jnp.zeros((3, 2)))
    parts = {"encoding": encoding, "value": jnp.ones((3, 8, 5)), "output": jnp.ones((3, 5, 12))}
    return AttentionLayer(**{**parts, "patch_size": (2, 4), **changes})


@given(seed=seeds())
def test_content_scores_are_the_formula(seed):
    """Four key features, so that the scale is two; and unscaled."""
    queries, keys = tokens(seed)
    scores = content(seed + 1)
    out = scores.scores(queries, keys)
    plain = dataclasses.replace(scores, scaled=False).scores(queries, keys)
    assert out.shape == (BATCH, HEADS, QUERIES, KEYS)
    assert_equal(2 * out, plain)
    q, k, w_q, w_k, a, c = map(
        np.asarray, (queries, keys, scores.query, scores.key, scores.query_bias, scores.key_bias)
    )
    for b, h in product(range(BATCH), range(HEADS)):
        expected = (q[b] @ w_q[h] + a[h]) @ (k[b] @ w_k[h] + c[h]).T
        assert_equal(plain[b, h], expected)


@pytest.mark.parametrize(
    ("patch", "stride", "writes", "output", "subsampling"),
    [
        ((1, 1), (1, 1), True, (1, 1), (1, 1)),
        ((4, 6), (1, 1), True, (4, 6), (1, 1)),
        ((4, 6), (2, 3), True, (2, 2), (1, 1)),
        ((4, 6), (4, 6), True, (1, 1), (1, 1)),
        ((4, 6), (3, 3), False, (4, 6), (3, 3)),  # 3 does not divide 4
        ((1, 1), (2, 2), False, (1, 1), (2, 2)),
        ((6,), (2,), True, (3,), (1,)),
        ((2,), (3,), False, (2,), (3,)),
    ],
)
def test_a_stride_that_divides_the_patches_is_in_the_tokens(
    patch, stride, writes, output, subsampling
):
    this = layer(patch_size=patch, stride=stride)
    assert this.writes_stride_to_tokens is writes
    assert this.output_patch_size == output
    assert this.subsampling == subsampling
    sizes = [o * s for o, s in zip(output, subsampling, strict=True)]
    full_sizes = [p * sub // s for p, sub, s in zip(patch, subsampling, stride, strict=True)]
    assert writes is (sizes == full_sizes)


def test_the_leaves_are_the_arrays_and_nothing_else():
    full = layer(bias=jnp.ones(12), content=content())
    names = {jax.tree_util.keystr(path) for path, _ in jax.tree.leaves_with_path(full)}
    content_names = ("query", "key", "query_bias", "key_bias")
    assert names == {
        ".encoding.alpha", ".encoding.centers", ".value", ".output", ".bias",
        *(f".content.{name}" for name in content_names),
    }  # fmt: skip
    assert all(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(full))
    assert len(jax.tree.leaves(layer(value=None))) == 3  # the identity is no leaf


def test_equal_structures_compile_once():
    traces = []

    @jax.jit
    def total(this):
        traces.append(this.patch_size)
        return this.value.sum()

    assert total(layer()) == 120
    assert total(jax.tree.map(lambda leaf: 2 * leaf, layer())) == 240
    assert traces == [(2, 4)]
    total(layer(patch_size=(1, 8)))
    assert traces == [(2, 4), (1, 8)]
