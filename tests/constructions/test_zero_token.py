"""The zero token: what its weights are, that it is the ring's equal in the limit, and refusals."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal, assert_within, gamma

import convattn as ca
from convattn.constructions.zero_token import (
    attend_with_zero_token,
    zero_token_scores,
    zero_token_weights,
)
from convattn.encodings import BiasEncoding, QuadraticEncoding, QuadraticGridEncoding
from convattn.encodings.layer import ContentScores
from convattn.operators.shifts import TokenGrid
from convattn_ledger.evidence import exact_convolution

KERNEL = np.random.default_rng(0).integers(-3, 4, (3, 5, 2, 3))
IMAGES = np.random.default_rng(1).integers(0, 9, (2, 4, 6, 2))


def layer_of(encoding, dtype="float32", **options):
    kernel = jnp.asarray(KERNEL, dtype)
    sharpness = 2048.0 if dtype == "float64" else 256.0
    return ca.conv_to_attention(
        kernel, encoding=encoding, form="limit", sharpness=sharpness, **options
    )


def test_the_scores_are_half_way():
    bias = BiasEncoding(jnp.array([[0.0, 6.0], [3.0, 0.0]]), None, ((0,), (1,)))
    assert zero_token_scores(bias).tolist() == [3.0, 1.5]
    quadratic = QuadraticEncoding(jnp.array([2.0, 5.0]), jnp.zeros((2, 1)))
    assert zero_token_scores(quadratic).tolist() == [-1.0, -2.5]
    alpha = jnp.array([2.0, 8.0]), jnp.array([4.0])
    grid = QuadraticGridEncoding(alpha, (jnp.zeros(2), jnp.zeros(1)), ((1, 0), (0, 0)))
    assert zero_token_scores(grid).tolist() == [-2.0, -1.0]


@pytest.mark.slow
@pytest.mark.parametrize("encoding", [
    BiasEncoding(jnp.array([[3.0], [8.0]]), None, ((1, -2),)),
    QuadraticEncoding(jnp.array([0.5, 2.0]), jnp.array([[0.0, 1.0], [-2.0, 0.0]])),
    QuadraticGridEncoding(
        (jnp.array([0.5, 2.0]), jnp.ones(1)),
        (jnp.array([0.0, -2.0]), jnp.ones(1)),
        ((0, 0), (1, 0)),
    ),
])  # fmt: skip
def test_the_weights_are_those_of_one_more_key(encoding):
    """Against NumPy: exp 8 roundings, a sum of 13, a quotient, in both."""
    grid = TokenGrid((3, 4), ((0, 0), (0, 0)))
    weights = np.asarray(zero_token_weights(encoding, grid))
    powers = np.exp(np.asarray(encoding.positional_scores(grid)))
    rest = np.exp(np.asarray(zero_token_scores(encoding)))[:, None]
    total = powers.sum(axis=-1) + rest
    assert_within(weights, powers / total[..., None], gamma(60, "float64"))
    assert_within(1 - weights.sum(axis=-1), rest / total, gamma(60, "float64"))


@pytest.mark.parametrize("encoding", ["quadratic", "bias"])
@pytest.mark.parametrize(
    ("dtype", "options"),
    [
        ("float32", {}),
        ("float32", {"stride": (2, 1), "padding": "SAME_TORCH"}),
        ("float64", {"patch_size": (4, 3)}),
        ("bfloat16", {"patch_size": 2}),
    ],
)
def test_it_is_the_zero_padded_convolution(encoding, dtype, options):
    layer = layer_of(encoding, dtype, **options)
    result = jax.jit(attend_with_zero_token)(layer, jnp.asarray(IMAGES, dtype))
    assert_dtype(result, dtype)
    expected = exact_convolution(IMAGES, KERNEL)[:, :: layer.subsampling[0]]
    assert_equal(result, jnp.asarray(expected, "float64").astype(dtype))
    bare = ca.apply_attention(layer, jnp.asarray(IMAGES, dtype), border="none")
    assert (np.asarray(bare, float) != expected).any()


def test_integer_images_become_floats_where_the_layer_has_no_maps():
    layer = ca.conv_to_attention(jnp.ones((3, 1, 1)), form="limit", sharpness=1.0)
    bare = replace(layer, encoding=layer.encoding.take_heads((0,)), output=None)
    result = attend_with_zero_token(bare, jnp.array([[[1], [2], [4]]]))
    assert_dtype(result, "float32")
    assert 1 < float(result[0, 1, 0]) < 4


def test_the_wider_dtype_of_layer_and_images_is_that_of_the_result():
    result = attend_with_zero_token(layer_of("bias"), jnp.asarray(IMAGES, "bfloat16"))
    assert_dtype(result, "float32")
    assert_equal(result, exact_convolution(IMAGES, KERNEL))


def test_a_value_bias_must_not_reach_the_zero_token():
    """A token that is zero but whose value is not leaves its value at the border."""
    layer = layer_of("bias")
    value_bias = 7.0
    shifted = attend_with_zero_token(layer, jnp.asarray(IMAGES + value_bias, "float32"))
    values_zero = exact_convolution(IMAGES + 7, KERNEL)
    assert_equal(shifted, values_zero)
    inputs_zero = exact_convolution(IMAGES, KERNEL) + 7 * KERNEL.sum(axis=(0, 1, 2))
    assert (values_zero != inputs_zero).any()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: zero_token_scores(ca.conv_to_attention(KERNEL).encoding), "BiasEncoding"),
        (
            lambda: zero_token_scores(ca.conv_to_attention(KERNEL, encoding="enumerated").encoding),
            "EnumeratedEncoding",
        ),
        (
            lambda: attend_with_zero_token(
                replace(
                    layer_of("bias"),
                    content=ContentScores(jnp.zeros((15, 2, 1)), jnp.zeros((15, 2, 1))),
                ),
                IMAGES,
            ),
            "content",
        ),
        (lambda: attend_with_zero_token(layer_of("bias"), IMAGES[0]), "2 spatial axes"),
        (lambda: attend_with_zero_token(layer_of("bias"), IMAGES[None]), "2 spatial axes"),
        (lambda: attend_with_zero_token(layer_of("bias"), IMAGES[..., :1]), "tokens of 1 features"),
        (lambda: attend_with_zero_token(layer_of("bias", patch_size=5), IMAGES), "do not divide"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()
