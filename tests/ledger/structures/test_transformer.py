"""The Transformer layer as an attention convolution: ours and Flax's, on the same numbers."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal, assert_within
from flax import linen, nnx
from matrix_products import HIGHEST, precisions
from strategies import small_integers

from convattn.encodings.layer import ContentScores
from convattn_ledger.evidence.influence_rounding import attention_within, column_weights_within
from convattn_ledger.structures import (
    as_attention_convolution,
    as_bi_affine,
    bi_affine_scores,
    causal_mask,
    self_attention_convolution,
)

BATCH, HEADS, TOKENS, FEATURES, WIDTH, OUT = 2, 3, 6, 5, 4, 7


def draw(seed: int, *, biases: bool = False):
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


@pytest.mark.parametrize("biases", [False, True])
@pytest.mark.parametrize("scaled", [False, True])
def test_scores_are_bi_affine(biases, scaled):
    """All four terms of eq. 8 with biases, Λ alone without; D = 4, so that √D divides exactly."""
    x, content, _, _ = draw(3, biases=biases)
    content = replace(content, scaled=scaled)
    keys, queries = jnp.asarray(x), jnp.asarray(x[:, :2] + 1)
    parameters = as_bi_affine(content)
    expected = content.scores(queries, keys).swapaxes(2, 3)
    assert_equal(bi_affine_scores(keys, queries, parameters), expected)
    assert (parameters.offset is None) == (not biases)
    assert {*precisions(as_bi_affine, content)} == {HIGHEST}


@pytest.mark.slow
@pytest.mark.parametrize("masked", [False, True])
def test_flax_modules_with_copied_weights(masked):
    """NNX and Linen: kernels are `[features, heads, width]`, masks `[batch, heads, q, k]`.

    NNX goes through JAX's function, whose softmax runs in float32.
    """
    x, content, value, output = draw(4, biases=True)
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
