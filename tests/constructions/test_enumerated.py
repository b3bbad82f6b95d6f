import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal

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
