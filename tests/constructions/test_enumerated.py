import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal
from constructions.conversion_cases import applied, reference

from convattn.constructions.conversion import conv_to_attention
from convattn.constructions.enumerated import enumerated_construction
from convattn.constructions.geometry import ConvolutionGeometry
from convattn.operators.roundoff import one_hot_sharpness


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
def test_offsets_are_numbered_and_all_others_share_one_more_number(dtype):
    geometry = ConvolutionGeometry.of((3, 2), (2, 1))
    maps = jnp.ones((geometry.heads, 2, 2), dtype)
    encoding, blocks = enumerated_construction(maps, geometry)
    assert encoding.offsets == geometry.offsets
    assert len({*encoding.codes, encoding.spare}) == geometry.heads + 1
    assert_equal(encoding.targets, encoding.codes)
    assert_equal(encoding.alpha, np.full(geometry.heads, one_hot_sharpness(dtype)))
    assert_dtype(encoding.alpha, "float64" if dtype == "float64" else "float32")
    assert blocks is maps


def test_at_a_small_alpha_it_is_not_the_convolution():
    kernel, images = np.arange(3.0).reshape(3, 1, 1), np.arange(5.0).reshape(1, 5, 1)
    layer = conv_to_attention(kernel, encoding="enumerated", sharpness=2.0)
    with pytest.raises(AssertionError, match="out"):
        assert_equal(applied(layer, images), reference(images, kernel))
