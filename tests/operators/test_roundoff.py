"""Rounding constants: when the weights of far keys underflow."""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal

from convattn.operators.attention import attention_weights
from convattn.operators.roundoff import one_hot_sharpness

DTYPES = ("float64", "float32", "bfloat16", "float16")


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("keys", [2, 4097])
def test_the_sharpness_leaves_exact_zeros_and_half_of_it_does_not(dtype, keys):
    sharpness = one_hot_sharpness(dtype)
    assert math.frexp(sharpness)[0] == 0.5  # a power of two
    scores = jnp.zeros((1, keys), dtype).at[0, 1:].set(-sharpness)
    one_hot = np.zeros((1, keys))
    one_hot[0, 0] = 1
    assert_equal(attention_weights(scores), one_hot)
    halved = np.asarray(attention_weights(scores / 2))
    assert (halved[0, 1:] > 0).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_sharpness_is_beyond_the_logarithm_of_the_smallest_number(dtype):
    """Half of the smallest subnormal number is 2⁻¹⁵⁰ in float32 and 2⁻¹⁰⁷⁵ in float64."""
    exponent = 1075 if dtype == "float64" else 150
    sharpness = one_hot_sharpness(dtype)
    assert sharpness / 2 < exponent * math.log(2) < sharpness
