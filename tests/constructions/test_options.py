"""What goes together in a conversion, and what is refused."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from constructions.conversion_cases import converted, recovered

import convattn as ca
from convattn.constructions.options import read_options
from convattn.constructions.table import CONSTRUCTIONS

pytestmark = pytest.mark.usefixtures("unchecked")  # the library's own checks must speak
KERNEL = np.ones((3, 3, 1, 1), np.float32)


def options(**arguments):
    return read_options(jnp.float32, jnp.float32, **arguments)


@pytest.mark.parametrize("encoding", CONSTRUCTIONS)
def test_the_default_form_is_exact_where_there_is_one(encoding):
    assert options(encoding=encoding).exact is (CONSTRUCTIONS[encoding].exact is not None)


def test_parameters_in_their_ranges_are_taken():
    for taken in (
        {"form": "limit", "sharpness": 2.0**-126},
        {"encoding": "quadratic", "sharpness": 8.0},
    ):
        assert options(**taken).exact is False
    for weight in (0.25, jnp.float32(0.25), jnp.float32(0.5)):
        assert options(uniform_weight=weight).exact is True


def test_a_map_that_overflows_is_refused_and_the_limit_form_is_not():
    kernel = jnp.full((3, 3, 1, 1), 40000, jnp.float16)
    with pytest.raises(ValueError, match=r"overflow float16.*form='limit'"):
        ca.conv_to_attention(kernel)
    assert ca.conv_to_attention(kernel, form="limit").heads == 9


def test_complex_weights_are_refused():
    for weights in ((KERNEL * 1j,), (KERNEL, np.ones(1) * 1j)):
        with pytest.raises(ValueError, match="complex"):
            ca.conv_to_attention(*weights)


@pytest.mark.slow
def test_a_wider_bias_keeps_its_digits():
    """100001 is no bfloat16; the layer and the convolution both hold it in float32."""
    kernel, bias = jnp.asarray(KERNEL, jnp.bfloat16), jnp.array([100001.0], jnp.float32)
    images = jnp.ones((1, 4, 5, 1), jnp.bfloat16)
    layer = ca.conv_to_attention(kernel, bias, form="limit")
    result, expected = ca.apply_attention(layer, images), ca.conv(images, kernel, bias)
    assert result.dtype == expected.dtype == jnp.float32
    assert (result == expected).all()
    assert result[0, 0, 0, 0] == 100005


@pytest.mark.slow
def test_attention_maps_are_rows_that_sum_to_one():
    """The gains of the scalar encoding are not in them, and a size serves as well as images."""
    for encoding in ("bias", "scalar"):
        layer = ca.conv_to_attention(np.ones((3, 3, 1, 1)), encoding=encoding)
        weights, ring = ca.attention_maps(layer, jnp.ones((2, 4, 5, 1)))
        assert (weights.shape, ring) == ((10, 4, 5, 6, 7), ((1, 1), (1, 1)))
        assert jnp.abs(weights.sum((-1, -2)) - 1).max() <= 42 * jnp.finfo(weights.dtype).eps
        assert (ca.attention_maps(layer, (4, 5)).weights == weights).all()
    bare = ca.attention_maps(layer, (4, 5), border="none")
    assert (bare.weights.shape, bare.ring) == ((10, 4, 5, 4, 5), ((0, 0), (0, 0)))
    jitted = jax.jit(lambda images: ca.attention_maps(layer, images).weights)
    assert jitted(jnp.ones((2, 4, 5, 1))).shape == weights.shape


def test_attention_maps_refuse_what_does_not_fit():
    layer = ca.conv_to_attention(KERNEL, patch_size=2)
    with pytest.raises(ValueError, match=r"GiB, of .* heads, .* but expected at most 2 GiB"):
        ca.attention_maps(layer, (600, 600))
    with pytest.raises(
        ValueError, match=r"images of \(4, 5\) pixels, but expected sides that patch_size"
    ):
        ca.attention_maps(layer, (4, 5))
    content = ca.ContentScores(jnp.ones((layer.heads, 4, 2)), jnp.ones((layer.heads, 4, 2)))
    with pytest.raises(ValueError, match="the layer has content scores"):
        ca.attention_maps(replace(layer, content=content), (4, 4))


@pytest.mark.slow
def test_one_image_size_serves_both_axes():
    layer = converted(KERNEL, form="limit")
    assert (recovered(layer, kernel_size=3, image_size=4).kernel == KERNEL).all()


def test_what_is_no_layer_is_refused():
    with pytest.raises(ValueError, match="layer=NoneType, but expected an AttentionLayer"):
        ca.apply_attention(None, KERNEL)
