"""Gradients in half precision: sums over many tokens are those of float32, map by map and whole."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal, assert_within
from fast.programs import product_dtypes
from flax import nnx
from lab.models.tiny import filled

from convattn.encodings import QuadraticEncoding
from convattn.encodings.layer import AttentionLayer
from convattn.fast.application import apply_attention
from convattn.nnx.layers.linear import Linear
from convattn_lab.models.resnet import NormalizedConvolution
from convattn_lab.models.settings import EncoderSettings
from convattn_lab.models.sizes import abstract_model

TOKENS = 25600
HALVES = ("bfloat16", "float16")


def total(function, inputs):
    return function(inputs).astype(jnp.float32).sum()


@pytest.mark.slow
@pytest.mark.parametrize("dtype", HALVES)
def test_a_bias_has_every_token_in_its_gradient(dtype):
    """Terms of one, so that sums in float32 are exact; in bfloat16 they stand still."""
    options = {"dtype": dtype, "rngs": nnx.Rngs(0)}
    inputs = jnp.ones((100, 256, 4), dtype)
    gradient = nnx.grad(total)(Linear(4, 3, **options), inputs)
    assert_equal(gradient.bias[...], np.full(3, TOKENS))
    assert_equal(gradient.kernel[...], np.full((4, 3), TOKENS))
    assert_dtype(gradient.kernel[...], "float32")
    if dtype == "bfloat16":
        planted = nnx.grad(total)(nnx.Linear(4, 3, **options), inputs)
        with pytest.raises(AssertionError, match="3 of 3 entries differ"):
            assert_equal(planted.bias[...], np.full(3, TOKENS))


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.quick(1)
def test_the_map_and_its_three_gradients_are_exact_on_integers(dtype):
    rng = np.random.default_rng(0)
    inputs, kernel, bias, back = (
        rng.integers(-2, 3, shape) for shape in ((2, 5, 4), (4, 3), (3,), (2, 5, 3))
    )
    layer = Linear(4, 3, dtype=dtype, rngs=nnx.Rngs(0))
    graph, _ = nnx.split(layer)

    def run(parts, inputs):
        layer = nnx.merge(graph, nnx.State({name: nnx.Param(p) for name, p in parts.items()}))
        return layer(inputs)

    parts = {"kernel": jnp.asarray(kernel, "float32"), "bias": jnp.asarray(bias, "float32")}
    out, pull = jax.vjp(run, parts, jnp.asarray(inputs, dtype))
    assert_dtype(out, dtype)
    assert_equal(out, inputs @ kernel + bias)
    gradient, towards = pull(jnp.asarray(back, dtype))
    assert_equal(towards, back @ kernel.T)
    assert_equal(gradient["kernel"], np.einsum("abd,abe->de", inputs, back))
    assert_equal(gradient["bias"], back.sum((0, 1)))
    with pytest.raises(AssertionError, match="entries differ"):
        assert_equal(towards, back @ kernel[::-1].T)


@pytest.mark.parametrize("dtype", HALVES)
def test_products_are_of_halves_with_sums_in_float32_on_the_way_back_too(dtype):
    layer, inputs = Linear(4, 3, dtype=dtype, rngs=nnx.Rngs(0)), jnp.ones((2, 4), dtype)
    run = nnx.value_and_grad(total, argnums=(0, 1))
    assert product_dtypes(run, layer, inputs) == [(dtype, dtype, "float32")] * 3


@pytest.mark.parametrize(("backend", "heads"), [("separable", 1), ("chunked", 1), ("dense", 0)])
def test_the_bias_of_attention_has_every_token_in_its_gradient(backend, heads):
    """Terms of one: 25600 is a number of bfloat16."""
    encoding = QuadraticEncoding(jnp.ones(heads), jnp.zeros((heads, 2)))
    half = jnp.bfloat16

    def run(bias):
        layer = AttentionLayer(encoding, jnp.zeros((heads, 2, 2), half), None, bias)
        images = jnp.ones((TOKENS // 64, 8, 8, 2), half)
        return apply_attention(layer, images, backend=backend, precision="default")

    assert_dtype(jax.eval_shape(run, jnp.ones(2, half)), half)
    gradient = jax.jit(jax.grad(lambda bias: total(run, bias)))(jnp.ones(2, half))
    assert_equal(gradient, np.full(2, TOKENS))


@pytest.mark.slow
def test_a_batch_norm_has_every_pixel_in_its_gradient():
    block = NormalizedConvolution(3, 2, 3, 1, rngs=nnx.Rngs(0), dtype=jnp.bfloat16)
    inputs = jnp.ones((TOKENS // 64, 8, 8, 3), jnp.bfloat16)
    gradient = nnx.grad(lambda block: total(lambda images: block(images, False), inputs))(block)
    assert_equal(gradient.norm.bias[...], np.full(2, TOKENS))


@cache
def gradients(dtype, fold):
    """Of the mean loss of one class, on 100 images of 256 tokens, with one model's parameters.

    The second layer has no heads: its attention is one vector, shared by all tokens.
    """
    settings = EncoderSettings(heads=(2, 0), width=8, inner=6, dropout=0.0)
    options = {"classes": 3, "image_size": (32, 32), "dtype": dtype, "fold": fold}
    model = filled(abstract_model(settings, **options))
    graph, state = nnx.split(model)
    rng = np.random.default_rng(1)
    images = jnp.asarray(1 + rng.normal(size=(TOKENS // 256, 32, 32, 3)), "float32")

    def loss(state):
        return -jax.nn.log_softmax(nnx.merge(graph, state)(images))[:, 0].mean()

    by_parameter = jax.jit(jax.grad(loss))(state)
    paths = jax.tree_util.tree_leaves_with_path(by_parameter)
    return {jax.tree_util.keystr(path): np.asarray(leaf, np.float64) for path, leaf in paths}


# From the images to the loss and back there are some 30 roundings to bfloat16 one after the other,
# each of at most 2⁻⁹. They fall to either side, and together lose far less than 1/16; a sum that
# stands still loses more than half.
LOST = 2.0**-4


def farthest(actual, expected):
    """The largest relative distance of any parameter's gradient, and whose it is."""
    assert actual.keys() == expected.keys()
    distances = {
        name: np.linalg.norm(actual[name] - expected[name]) / np.linalg.norm(expected[name])
        for name in expected
    }
    return max((distance, name) for name, distance in distances.items())


@pytest.mark.slow
@pytest.mark.parametrize("fold", [False, True])
def test_every_gradient_in_bfloat16_is_that_of_float32(fold, monkeypatch):
    expected = gradients("float32", False)
    assert len(expected) == 29
    distance, name = farthest(gradients("bfloat16", fold), expected)
    assert_within(distance, 0.0, LOST, name)
    if not fold:
        monkeypatch.setattr(Linear, "__call__", nnx.Linear.__call__)  # planted: sums in bfloat16
        distance, name = farthest(gradients.__wrapped__("bfloat16", fold), expected)
        assert distance > 0.5
        assert "bias" in name
