"""Convolutions that tests convert, and the bound within which they must agree."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from convattn.networks.transformation.attention_of import attention_of
from convattn.networks.transformation.contents import remaining_convolutions
from convattn.networks.transformation.with_attention import with_attention

ORDER = ("NHWC", "HWIO", "NHWC")


def integers(*shape: int, dtype: Any = np.float64, seed: int = 0) -> jax.Array:
    """Integers from -3 to 3."""
    return jnp.asarray(np.random.default_rng(seed).integers(-3, 4, shape), dtype)


def convolve(images: Any, kernel: Any, **options: Any) -> jax.Array:
    """`lax.conv_general_dilated` of images NHWC."""
    settings = {"window_strides": (1, 1), "padding": "SAME", "dimension_numbers": ORDER}
    return lax.conv_general_dilated(images, kernel, **settings | options)


def assert_attention(function: Callable[..., Any], *args: Any, **options: Any) -> None:
    """A function of one convolution and its attention agree within the derived bound.

    The bound covers float32 and float64; no convolution may be left.
    """
    expected = function(*args)
    attended = with_attention(function, **options)
    result = attended(*args)
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
    (layer,) = attention_of(function, *args, **options).report.layers
    assert layer.bound is not None
    assert layer.bound < 1e-4
    assert layer.passed  # a head for each map, which `with_attention` ties
    assert float(jnp.abs(result - expected).max(initial=0)) <= layer.bound
    assert remaining_convolutions(attended, *args) == ()
