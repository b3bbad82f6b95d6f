"""The Transformer layer is an attention convolution: ours, JAX's, Flax's, on the same numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal, assert_within
from flax import linen, nnx
from strategies import small_integers

from convattn.encodings.layer import ContentScores
from convattn.ledger.evidence.influence_rounding import attention_within, column_weights_within
from convattn.operators.attention import attention_weights, multi_head_self_attention
from convattn.structures import (
    ScaledDotProduct,
    as_attention_convolution,
    as_transformer_layer,
    bi_affine,
    bi_affine_scores,
    causal_mask,
    column_softmax,
    scaled_dot_product_scores,
    self_attention_convolution,
    softmax_mechanism,
)

BATCH, HEADS, TOKENS, FEATURES, WIDTH, OUT = 2, 3, 6, 5, 4, 7


def drawn(seed: int, *, biases: bool = False):
    """Tokens, `ContentScores`, value and output maps, in integers; √D = 2 divides exactly."""
    rng = np.random.default_rng(seed)
    query, key, value = small_integers(rng, 3, HEADS, FEATURES, WIDTH, magnitude=1)
    bias = small_integers(rng, 2, HEADS, WIDTH) if biases else (None, None)
    content = ContentScores(
        *(part if part is None else jnp.asarray(part) for part in (query, key, *bias))
    )
    return (
        small_integers(rng, BATCH, TOKENS, FEATURES, magnitude=2),
        content,
        value,
        small_integers(rng, HEADS, WIDTH, OUT),
    )


def within(x, content, value, output, dtype, mask=None):
    """The exact layer and the bound on a computed one, image by image."""
    theta = np.einsum("hpd,hdq->hpq", value, output)
    magnitude = np.einsum("hpd,hdq->hpq", abs(value), abs(output))
    scores = np.asarray(content.scores(jnp.asarray(x), jnp.asarray(x)), np.float64)
    images = [
        attention_within(
            column_weights_within(scores[b].swapaxes(1, 2), dtype, mask),
            x[b],
            theta,
            dtype,
            magnitude=magnitude,
            inner=HEADS * WIDTH,
        )
        for b in range(BATCH)
    ]
    return tuple(np.array(part) for part in zip(*images, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("biases", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("dtype", ["float32"])
def test_the_layer_is_the_convolution(dtype, masked, biases):
    x, content, value, output = drawn(1, biases=biases)
    mask = np.asarray(causal_mask(TOKENS)) if masked else None
    expected, bound = within(x, content, value, output, dtype, mask)
    tokens, content, value, output = jax.tree.map(
        lambda part: jnp.asarray(part, dtype), (x, content, value, output)
    )
    scores = content.scores(tokens, tokens)
    allowed = None if mask is None else jnp.broadcast_to(mask.T, scores.shape)
    layer = multi_head_self_attention(tokens, attention_weights(scores, allowed), value, output)
    mechanism, theta = as_attention_convolution(content, value, output, mask)
    convolution = self_attention_convolution(tokens, mechanism, theta)
    for out in (layer, convolution):
        assert_within(out, expected, bound)
    backwards = self_attention_convolution(tokens, mechanism, theta[::-1])
    with pytest.raises(AssertionError, match="too far"):
        assert_within(backwards, expected, bound)


@pytest.mark.slow
@pytest.mark.parametrize("width", [None, FEATURES])
@pytest.mark.parametrize("kind", ["bi-affine", "dot product"])
def test_the_convolution_is_a_layer(kind, width):
    """Any bi-affine mechanism and any Θ; scores and maps come back exactly."""
    rng = np.random.default_rng(2)
    if kind == "bi-affine":
        shapes = ((HEADS, FEATURES, FEATURES), (HEADS, FEATURES), (HEADS, FEATURES), (HEADS,))
        parameters = bi_affine(*(small_integers(rng, *shape, magnitude=1) for shape in shapes))
        scores = lambda keys, queries: bi_affine_scores(keys, queries, parameters)  # noqa: E731
    else:
        query, key = map(jnp.asarray, small_integers(rng, 2, HEADS, FEATURES, WIDTH, magnitude=1))
        parameters = ScaledDotProduct(key, query)
        scores = lambda keys, queries: scaled_dot_product_scores(keys, queries, parameters)  # noqa: E731
    theta = small_integers(rng, HEADS, FEATURES, OUT)
    x = jnp.asarray(small_integers(rng, BATCH, TOKENS, FEATURES, magnitude=2))
    layer = as_transformer_layer(parameters, jnp.asarray(theta), width)
    assert_equal(layer.content.scores(x, x).swapaxes(2, 3), scores(x, x))
    assert_equal(layer.residual, np.zeros(HEADS))
    weights = attention_weights(layer.content.scores(x, x))
    out = multi_head_self_attention(x, weights, layer.value, layer.output)
    convolution = self_attention_convolution(x, softmax_mechanism(scores), theta)
    expected, bound = within(
        np.asarray(x), layer.content, np.asarray(layer.value), np.asarray(layer.output), "float64"
    )
    assert_within(out, expected, bound)
    assert_within(convolution, expected, bound)
    mechanism, again = as_attention_convolution(*layer[:3])
    assert_equal(again, theta)
    assert_equal(mechanism(x, x), column_softmax(scores(x, x)))


@pytest.mark.slow
@pytest.mark.parametrize("masked", [False, True])
def test_flax_modules_with_copied_weights(masked):
    """NNX and Linen: kernels are `[features, heads, width]`, masks `[batch, heads, q, k]`.

    NNX goes through JAX's function, whose softmax runs in float32.
    """
    x, content, value, output = drawn(4, biases=True)
    mask = np.asarray(causal_mask(TOKENS)) if masked else None
    expected, bound = within(x, content, value, output, "float64", mask)
    wide = within(x, content, value, output, "float32", mask)[1]
    allowed = None if mask is None else jnp.asarray(mask.T)[None, None]
    module = nnx.MultiHeadAttention(
        HEADS, FEATURES, HEADS * WIDTH, OUT,
        dtype=jnp.float64, param_dtype=jnp.float64, decode=False, rngs=nnx.Rngs(0),
    )  # fmt: skip
    kernels = {"query": content.query, "key": content.key, "value": jnp.asarray(value)}
    biases = {"query": content.query_bias, "key": content.key_bias}
    tree: dict[str, dict[str, jax.Array]] = {}
    for name, kernel in kernels.items():
        bias = biases.get(name, jnp.zeros((HEADS, WIDTH)))
        tree[name] = {"kernel": jnp.moveaxis(kernel, 0, 1), "bias": bias}
        getattr(module, name).kernel[...] = tree[name]["kernel"]
        getattr(module, name).bias[...] = bias
    tree["out"] = {"kernel": jnp.asarray(output), "bias": jnp.zeros(OUT)}
    module.out.kernel[...], module.out.bias[...] = tree["out"]["kernel"], tree["out"]["bias"]
    theirs = module(jnp.asarray(x), mask=allowed)
    assert_within(theirs, expected, wide, "nnx")
    linear = linen.MultiHeadDotProductAttention(
        HEADS, qkv_features=HEADS * WIDTH, out_features=OUT, dtype=jnp.float64
    )
    assert_within(
        linear.apply({"params": tree}, jnp.asarray(x), mask=allowed), expected, bound, "linen"
    )
    mechanism, theta = as_attention_convolution(
        content, jnp.asarray(value), jnp.asarray(output), mask
    )
    out = self_attention_convolution(x, mechanism, theta)
    assert_within(out, expected, bound, "ours")
    module.key.kernel[...] = module.query.kernel[...] + 1
    with pytest.raises(AssertionError, match="too far"):
        assert_within(module(jnp.asarray(x), mask=allowed), expected, wide)


def test_mechanisms_of_other_features_are_refused(unchecked):
    maps = ScaledDotProduct(jnp.ones((1, 3, 2)), jnp.ones((1, 4, 2)))
    with pytest.raises(ValueError, match="tokens have 3 features"):
        as_transformer_layer(maps, jnp.ones((1, 3, 5)))
