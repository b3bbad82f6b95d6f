"""What a leak and a bias of two layers add to their rounding bound."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from bounds.rounding_formula import INFLATION, RELATIVE, SINGLE
from roundings import gamma

import convattn as ca
from convattn.bounds.rounding import layer_error_bound
from convattn.bounds.two_layers import two_layers_bound


@pytest.mark.slow
def test_a_bias_adds_its_rounding_and_that_of_the_cast():
    """Twice u + 2u' of |X| * |W|, of what the bound is without it, and of |b|.

    u is of bfloat16, in which the layers hold their results, and u' of float32, in which they sum.
    """
    kernel = jnp.array([1.0, -2.0, 0.5, 0.0, 4.0, -3.0], jnp.bfloat16).reshape(2, 3, 1, 1)
    images = jnp.linspace(-3.0, 2.0, 20, dtype=jnp.bfloat16).reshape(1, 5, 4, 1)
    layers = ca.conv_to_two_layers(
        kernel, jnp.array([-7.0], jnp.bfloat16), form="limit", stride=(2, 1)
    )
    plain = two_layers_bound(replace(layers, bias=None), images) / INFLATION
    absolute = (np.abs(np.asarray(part).astype(np.float64)) for part in (images, kernel))
    largest = np.asarray(ca.conv(*absolute, stride=(2, 1), padding="SAME_TORCH"))
    rate = 2 * (2.0**-8 + 2 * 2.0**-24)
    expected = (plain + rate * (largest + plain + 7)) * INFLATION
    np.testing.assert_allclose(two_layers_bound(layers, images), expected, rtol=RELATIVE)


def test_the_error_of_the_first_layer_goes_through_the_second_and_the_leak_adds_its_own():
    """E' + γ_8 M' + A'E, where A' is what the second layer does to magnitudes and M' = A'|A X|."""
    kernel = jnp.array([2.0, -3.0, 1.0], jnp.float32).reshape(1, 3, 1, 1)
    images = jnp.linspace(-3.0, 2.0, 20, dtype=jnp.float32).reshape(1, 5, 4, 1)
    layers = ca.conv_to_two_layers(kernel)
    padded = layers.padded(images)
    between, second = ca.apply_attention(layers.first, padded), layers.second_at(padded.shape[1:3])

    def through(layer, values):
        with jax.enable_x64(True):
            positive = replace(layer, output=jnp.abs(layer.output).astype(jnp.float64))
            return np.asarray(ca.apply_attention(positive, jnp.abs(values).astype(jnp.float64)))

    magnitude = through(second, between)
    before = layer_error_bound(layers.first, padded, through(layers.first, padded))
    own = layer_error_bound(second, between, magnitude) + gamma(8, SINGLE) * magnitude * INFLATION
    expected = layers.cropped(jnp.asarray(own + through(second, before))) * INFLATION
    np.testing.assert_allclose(two_layers_bound(layers, images), expected, rtol=RELATIVE)
