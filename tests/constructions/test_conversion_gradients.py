"""Conversion compiled and differentiated."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal, assert_within
from constructions.conversion_cases import REGIMES
from constructions.lagrange import amplification

from convattn.constructions.conversion import conv_to_attention
from convattn.fast.application import apply_attention
from convattn.operators.convolution import conv


@pytest.mark.slow
@pytest.mark.parametrize(("encoding", "exact"), REGIMES)
def test_gradients_through_the_conversion_are_those_of_the_convolution(encoding, exact):
    """Both are linear in kernel and bias, so with integer cotangents gradients are integers too.

    d/dW of Σ g·out is Σ_q g_q X_(q+t): the convolution's is exact in float64. The layer's is the
    transpose of what `exact_form_bounds` bounds, with the same factors and the majorant
    n·max|g|·max|X|·(1 + 2ε/(1-ε)), for scalar κ·n times that.
    """
    generator = np.random.default_rng(5)
    images = jnp.asarray(generator.integers(0, 9, (2, 6, 2)).astype(float))
    kernel = jnp.asarray(generator.integers(-5, 6, (3, 2, 3)).astype(float))
    bias = jnp.asarray(generator.integers(-5, 6, 3).astype(float))
    cotangent = jnp.asarray(generator.integers(-3, 4, (2, 6, 3)).astype(float))

    def through_layer(kernel, bias, images):
        layer = conv_to_attention(
            kernel, bias, patch_size=2, encoding=encoding, form="exact" if exact else "limit"
        )
        return jnp.sum(apply_attention(layer, images) * cotangent)

    def through_conv(kernel, bias, images):
        return jnp.sum(conv(images, kernel, bias) * cotangent)

    actual = jax.jit(jax.grad(through_layer, argnums=(0, 1, 2)))(kernel, bias, images)
    expected = jax.jit(jax.grad(through_conv, argnums=(0, 1, 2)))(kernel, bias, images)
    for gradient, exact_gradient in zip(actual, expected, strict=True):
        assert np.abs(exact_gradient).max() > 0
        if exact or encoding == "scalar":
            kappa = float(amplification((2, 3, 4), exact)) if encoding == "scalar" else 3.0
            largest = 3 * max(9 * 12, 5 * 9 * 3)  # max|g| times the largest sums of X, of W
            count = 2000  # more roundings than any summand goes through: all sizes are below 20
            assert_within(
                gradient, exact_gradient, kappa * 12 * largest * count * np.finfo(float).eps
            )
        else:
            assert_equal(gradient, exact_gradient)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options", "start"),
    [
        ("uniform_weight", {}, 0.3),
        ("sharpness", {"form": "limit"}, 2.0),
        ("sharpness", {"encoding": "quadratic"}, 1.5),
        ("sharpness", {"encoding": "enumerated"}, 1.5),
        ("sharpness", {"encoding": "polygon"}, 1.5),
        ("sharpness", {"encoding": "rotary"}, 1.5),
        ("sharpness", {"encoding": "scalar", "form": "limit"}, 2.0),
    ],
)
def test_parameters_may_be_traced_and_have_finite_gradients(name, options, start):
    kernel = jnp.asarray(np.random.default_rng(0).normal(size=(3, 1, 1)))
    images = jnp.asarray(np.random.default_rng(1).normal(size=(1, 5, 1)))

    def loss(parameter):
        layer = conv_to_attention(kernel, **options, **{name: parameter})
        return jnp.sum((apply_attention(layer, images) - conv(images, kernel)) ** 2)

    gradient = jax.jit(jax.grad(loss))(jnp.asarray(start))
    assert np.isfinite(gradient)
    if name != "uniform_weight":  # the exact form is the convolution at every leak
        assert abs(float(gradient)) > 1e-3
        assert float(loss(jnp.asarray(start))) > 1e-3
