"""Bounds of one convolution and of its attention."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from networks.transformation.convolutions import convolve, integers

import convattn as ca
from convattn.networks.transformation.convolution import Convolution
from convattn.networks.transformation.local_error import (
    Magnitudes,
    covered_backend,
    of_attention,
    of_convolution,
)

IMAGES, KERNEL = integers(2, 6, 5, 4), integers(3, 3, 2, 6, seed=1)


def convolution_of(dtype):
    equations = jax.make_jaxpr(lambda *args: convolve(*args, feature_group_count=2))(
        IMAGES.astype(dtype), KERNEL.astype(dtype)
    ).eqns
    return Convolution.of(equations[0])


def test_magnitudes_are_sums_of_absolute_values():
    convolution = convolution_of(np.float64)
    sizes = Magnitudes.of(convolution, IMAGES, KERNEL)
    absolute = convolve(abs(IMAGES), abs(KERNEL), feature_group_count=2)
    assert (sizes.absolute >= absolute).all()
    assert (sizes.absolute <= absolute * (1 + 1e-5)).all()
    total, taps = abs(IMAGES).sum((1, 2)), abs(KERNEL).sum((0, 1))
    expected = np.concatenate([total[:, :2] @ taps[:, :3], total[:, 2:] @ taps[:, 3:]], axis=1)
    np.testing.assert_array_equal(sizes.everywhere, expected[:, None, None])
    assert sizes.largest == 16.0


def test_errors_of_the_dtype_are_a_few_units_in_the_last_place():
    for dtype in (np.float32, np.float64):
        convolution = convolution_of(dtype)
        layer = ca.conv_to_attention(KERNEL.astype(dtype))
        unit = float(jnp.finfo(dtype).eps) / 2
        assert 18 * unit <= of_convolution(convolution).relative <= 18.01 * unit
        relative = of_attention(convolution, layer).relative
        assert 10 * unit < relative < 1000 * unit


def test_there_is_no_bound_for_a_layer_of_another_dtype():
    layer = ca.conv_to_attention(KERNEL.astype(np.float32))
    assert of_attention(convolution_of(np.float64), layer) is None


def test_the_back_end_is_one_that_the_bound_covers():
    convolution, layer = convolution_of(np.float64), ca.conv_to_attention(KERNEL)
    assert covered_backend(convolution, layer) == "shift"
    small = replace(convolution, image_shape=(2, 1, 1, 4))
    assert covered_backend(small, layer) == "dense"
