"""Eq. 7: attention convolutions by their definition, self and cross, and the constant case."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal
from matrix_products import HIGHEST, precisions
from strategies import small_integers

from convattn_ledger.structures import (
    attention_convolution,
    bi_affine,
    bi_affine_scores,
    causal_mask,
    column_softmax,
    constant_mechanism,
    cross_attention_convolution,
    dense_basis,
    self_attention_convolution,
    shift_basis,
    softmax_mechanism,
    structured_convolution,
)

BATCH, HEADS, M, N, P, Q = 2, 3, 5, 4, 2, 6


def draw(seed: int, key_features: int = 7, query_features: int = 3):
    """x, x', y', a mechanism of integer scores, and Θ."""
    rng = np.random.default_rng(seed)
    parameters = bi_affine(small_integers(rng, HEADS, key_features, query_features))
    return (
        jnp.asarray(small_integers(rng, BATCH, M, P)),
        jnp.asarray(small_integers(rng, BATCH, M, key_features)),
        jnp.asarray(small_integers(rng, BATCH, N, query_features)),
        lambda keys, queries: bi_affine_scores(keys, queries, parameters),
        jnp.asarray(small_integers(rng, HEADS, P, Q)),
    )


def by_definition(matrices, x, theta) -> np.ndarray:
    """Σ_k A_kᵀ x Θ_k, image by image."""
    parts = (np.asarray(part, np.int64) for part in (matrices, x, theta))
    return np.einsum("bkmn,bmp,kpq->bnq", *parts)


@pytest.mark.slow
def test_three_inputs_and_their_derivative():
    x, keys, queries, mechanism, theta = draw(0)
    layer = lambda x, theta: attention_convolution(x, keys, queries, mechanism, theta)  # noqa: E731
    out = layer(x, theta)
    assert_equal(out, by_definition(mechanism(keys, queries), x, theta))
    assert_equal(jax.jit(layer)(x, theta), out)
    slopes = jax.grad(lambda *args: layer(*args).sum(), argnums=(0, 1))(
        x.astype(float), theta.astype(float)
    )
    for slope, part in zip(slopes, (x, theta), strict=True):
        assert_equal(jnp.vdot(slope, part), out.sum())  # linear in both
    assert {*precisions(layer, x.astype(float), theta.astype(float))} == {HIGHEST}
    x, keys, queries, theta = (jnp.asarray(a, "bfloat16") for a in (x, keys, queries, theta))
    ones = lambda keys, queries: jnp.ones((HEADS, M, N), "bfloat16")  # noqa: E731
    assert_dtype(attention_convolution(x, keys, queries, ones, theta), "bfloat16")


@pytest.mark.parametrize(
    "basis",
    [shift_basis(5, [-1, 0, 2]), dense_basis(np.arange(60.0).reshape(3, 5, 4))],
    ids=["shifts", "dense"],
)
def test_constant_mechanisms_are_structured_convolutions(basis):
    x, keys, _, _, theta = draw(3)
    queries = jnp.zeros((BATCH, basis.outputs, 1))
    out = attention_convolution(x, keys, queries, constant_mechanism(basis), theta)
    assert_equal(out, structured_convolution(x, basis, theta))


def test_a_softmax_mechanism_masks_and_normalises():
    x, _, _, scores, _ = draw(6, P, P)
    mask = causal_mask(M)
    assert_equal(softmax_mechanism(scores, mask)(x, x), column_softmax(scores(x, x), mask))


def test_self_and_cross_attention_share_their_inputs():
    x, _, _, mechanism, theta = draw(1, P, P)
    y = x[:, :N] + 1
    crossed = cross_attention_convolution(x, y, mechanism, theta)
    assert_equal(crossed, by_definition(mechanism(x, y), x, theta))
    alone = self_attention_convolution(x, mechanism, theta)
    assert_equal(alone, by_definition(mechanism(x, x), x, theta))
