"""Eq. 7: attention convolutions by their definition, self and cross, and the constant case."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal
from matrix_products import HIGHEST, precisions
from strategies import small_integers

from convattn.ledger.evidence.exact_influence import exact_influence_convolution
from convattn.structures import (
    attention_convolution,
    bi_affine,
    bi_affine_scores,
    causal_mask,
    column_softmax,
    concatenated,
    constant_mechanism,
    cross_attention_convolution,
    dense_basis,
    self_attention_convolution,
    shift_basis,
    softmax_mechanism,
    structured_convolution,
)

BATCH, HEADS, M, N, P, Q, KEY_FEATURES, QUERY_FEATURES = 2, 3, 5, 4, 2, 6, 7, 3


def drawn(seed: int):
    """x, x', y', Ξ and Θ, in integers."""
    rng = np.random.default_rng(seed)
    parameters = bi_affine(
        small_integers(rng, HEADS, KEY_FEATURES, QUERY_FEATURES),
        small_integers(rng, HEADS, KEY_FEATURES),
        small_integers(rng, HEADS, QUERY_FEATURES),
        small_integers(rng, HEADS),
    )
    return (
        small_integers(rng, BATCH, M, P),
        small_integers(rng, BATCH, M, KEY_FEATURES),
        small_integers(rng, BATCH, N, QUERY_FEATURES),
        parameters,
        small_integers(rng, HEADS, P, Q),
    )


def scores_of(parameters):
    return lambda keys, queries: bi_affine_scores(keys, queries, parameters)


def exactly(matrices, x, theta) -> np.ndarray:
    """Σ_k A_kᵀ x Θ_k image by image, in Python's integers."""
    given = np.asarray(matrices).astype(int), np.asarray(x).astype(int), np.asarray(theta)
    images = [
        exact_influence_convolution(each, one, given[2].astype(int))
        for each, one in zip(given[0], given[1], strict=True)
    ]
    return np.array(images).astype(np.int64)


@pytest.mark.parametrize("seed", range(2))
def test_three_inputs(seed):
    x, keys, queries, parameters, theta = drawn(seed)
    matrices = scores_of(parameters)(jnp.asarray(keys), jnp.asarray(queries))
    out = attention_convolution(x, keys, queries, scores_of(parameters), theta)
    expected = exactly(matrices, x, theta)
    assert out.shape == (BATCH, N, Q)
    assert_equal(out, expected)
    for order in ("basis_first", "parameter_first", "operator"):
        assert_equal(
            attention_convolution(x, keys, queries, scores_of(parameters), theta, order=order),
            expected,
        )
    backwards = attention_convolution(x[:, ::-1], keys, queries, scores_of(parameters), theta)
    with pytest.raises(AssertionError, match="entries differ"):
        assert_equal(backwards, expected)


@pytest.mark.parametrize("seed", range(2))
def test_self_and_cross_attention_share_their_inputs(seed):
    rng = np.random.default_rng(seed)
    x, y = (jnp.asarray(small_integers(rng, BATCH, count, P)) for count in (M, N))
    theta = small_integers(rng, HEADS, P, Q)
    mechanism = scores_of(bi_affine(small_integers(rng, HEADS, P, P)))
    crossed = cross_attention_convolution(x, y, mechanism, theta)
    assert_equal(crossed, exactly(mechanism(x, y), x, theta))
    assert crossed.shape == (BATCH, N, Q)
    alone = self_attention_convolution(x, mechanism, theta)
    assert_equal(alone, exactly(mechanism(x, x), x, theta))
    with pytest.raises(AssertionError, match="entries differ"):
        assert_equal(cross_attention_convolution(x, x[:, ::-1], mechanism, theta), alone)


@pytest.mark.parametrize(
    "basis",
    [shift_basis(5, [-1, 0, 2]), dense_basis(np.arange(60.0).reshape(3, 5, 4))],
    ids=["shifts", "dense"],
)
def test_constant_mechanisms_are_structured_convolutions(basis):
    rng = np.random.default_rng(3)
    x, theta = small_integers(rng, BATCH, M, P), small_integers(rng, HEADS, P, Q)
    queries = small_integers(rng, BATCH, basis.outputs, QUERY_FEATURES)
    expected = structured_convolution(x, basis, theta)
    out = attention_convolution(x, x, queries, constant_mechanism(basis), theta)
    assert_equal(out, expected)
    assert_equal(
        attention_convolution(2 * x, 0 * x, 0 * queries, constant_mechanism(basis), theta),
        2 * expected,
    )
    wrong = constant_mechanism(dense_basis(basis.matrices()[::-1]))
    with pytest.raises(AssertionError, match="entries differ"):
        assert_equal(attention_convolution(x, x, queries, wrong, theta), expected)


def test_concatenated_heads_are_summed():
    x, keys, queries, parameters, theta = drawn(4)
    constant = constant_mechanism(dense_basis(np.arange(2.0 * M * N).reshape(2, M, N)))
    more = small_integers(np.random.default_rng(5), 2, P, Q)
    both = concatenated(scores_of(parameters), constant)
    given = x, keys, queries
    out = attention_convolution(*given, both, np.concatenate([theta, more]))
    parts = attention_convolution(*given, scores_of(parameters), theta)
    parts += attention_convolution(*given, constant, more)
    assert_equal(out, parts)
    assert constant(*given[1:]).ndim == 3
    assert concatenated(constant, constant)(*map(jnp.asarray, given[1:])).shape == (4, M, N)


def test_a_softmax_mechanism_masks_and_normalises():
    x, _, _, _, _ = drawn(6)
    scores = lambda keys, queries: jnp.einsum("bmp,bnp->bmn", keys, queries)[:, None]  # noqa: E731
    given = jnp.asarray(x), jnp.asarray(x)
    mask = causal_mask(M)
    assert_equal(softmax_mechanism(scores, mask)(*given), column_softmax(scores(*given), mask))
    blanked = mask.at[0, 0].set(False)
    with pytest.raises(ValueError, match="column 0"):
        softmax_mechanism(scores, blanked)(*given)
    assert not np.asarray(softmax_mechanism(scores, blanked, blank="zero")(*given))[..., 0].any()


@pytest.mark.slow
def test_jit_vmap_gradients_and_dtypes():
    x, keys, queries, parameters, theta = drawn(10)

    def layer(parameters, theta):
        return attention_convolution(x, keys, queries, scores_of(parameters), theta)

    given = parameters, jnp.asarray(theta)
    assert_equal(jax.jit(layer)(*given), layer(*given))
    slopes = jax.grad(lambda *given: layer(*given).sum(), argnums=(0, 1))(*given)
    assert_equal(jnp.vdot(slopes[1], theta), layer(*given).sum())  # linear in Θ, and in Ξ
    pairs = zip(jax.tree.leaves(slopes[0]), jax.tree.leaves(parameters), strict=True)
    assert_equal(sum(jnp.vdot(slope, part) for slope, part in pairs), layer(*given).sum())
    halves = (jnp.asarray(part, "bfloat16") for part in (x, keys, queries))
    out = attention_convolution(
        *halves, lambda k, q: jnp.ones((HEADS, M, N), "bfloat16"), jnp.asarray(theta, "bfloat16")
    )
    assert_dtype(out, "bfloat16")


def test_every_product_is_pinned():
    x, keys, queries, parameters, theta = drawn(11)

    def layer(x, theta):
        return attention_convolution(x, keys, queries, scores_of(parameters), theta)

    assert {*precisions(layer, jnp.asarray(x), jnp.asarray(theta))} == {HIGHEST}


@pytest.mark.parametrize("shape", [(HEADS, N, M), (HEADS + 1, M, N), (3, HEADS, M, N)])
def test_mechanisms_that_do_not_fit_are_refused(shape):
    x, keys, queries, _, theta = drawn(12)
    with pytest.raises(ValueError, match=r"but expected \(2, 3, 5, 4\) or \(3, 5, 4\)"):
        attention_convolution(x, keys, queries, lambda k, q: jnp.zeros(shape), theta)


def test_inputs_that_do_not_fit_are_refused():
    x, keys, queries, parameters, theta = drawn(13)
    with pytest.raises(ValueError, match="with the same batch"):
        attention_convolution(x, keys[:1], queries, scores_of(parameters), theta)
    with pytest.raises(ValueError, match=r"x\[None\]"):
        attention_convolution(x[0], keys[0], queries[0], scores_of(parameters), theta)
    with pytest.raises(ValueError, match="the mechanism's output has shape"):
        attention_convolution(x, keys[:, 1:], queries, scores_of(parameters), theta)
