import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype

from convattn.constructions.conversion import conv_to_attention
from convattn.constructions.geometry import ConvolutionGeometry
from convattn.constructions.polygon import polygon_construction, polygon_gap, refuse_small_gap
from convattn.operators.roundoff import one_hot_sharpness


@pytest.mark.quick(4)
@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float64"])
@pytest.mark.parametrize("size", [(1, 1), (2, 1), (2, 2), (5, 5)])
def test_alpha_is_the_gap_and_maps_are_kept(size, dtype):
    geometry = ConvolutionGeometry.of(size, (1, 1))
    maps = jnp.ones((geometry.heads, 2, 2), dtype)
    encoding, blocks = polygon_construction(maps, geometry)
    assert blocks is maps
    assert encoding.offsets == geometry.offsets
    assert_dtype(encoding.query, "float64" if dtype == "float64" else "float32")
    shifts = np.array([*geometry.offsets, (9, 9)])
    scores = np.asarray(encoding.shift_scores(shifts, 100), np.float64)
    sharpness, count = one_hot_sharpness(dtype), geometry.heads
    off = 64 * jnp.finfo(encoding.query.dtype).eps * sharpness / polygon_gap(count)
    for head in range(count):
        rivals = scores[head, head] - np.delete(scores[head], head)
        assert abs(rivals.min() - sharpness) <= off


def test_the_neighbour_binds_beyond_four_corners_and_the_centre_up_to_four():
    for count in range(1, 30):
        neighbour = 1 - np.cos(2 * np.pi / count) if count > 1 else 2.0
        assert abs(polygon_gap(count) - min(1.0, neighbour)) < 1e-15
        assert (neighbour < 1 - 1e-9) == (count > 4)


def test_more_corners_than_the_dtype_tells_apart_are_refused():
    largest = max(n for n in range(3000) if n == 0 or polygon_gap(n) >= 512 * 2.0**-24)
    refuse_small_gap(largest, jnp.dtype("float32"))
    with pytest.raises(ValueError, match=r"offsets=.*float32 swallows; use encoding='bias'"):
        refuse_small_gap(largest + 1, jnp.dtype("float32"))
    refuse_small_gap(largest + 1, jnp.dtype("float64"))
    with pytest.raises(ValueError, match="offsets=900"):
        conv_to_attention(np.ones((30, 30, 1, 1), np.float32), encoding="polygon")
