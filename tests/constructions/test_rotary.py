import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal
from constructions.conversion_cases import applied, reference

from convattn.constructions.conversion import conv_to_attention
from convattn.constructions.geometry import ConvolutionGeometry
from convattn.constructions.rotary import PAIRS, rotary_construction
from convattn.operators.roundoff import one_hot_sharpness


@pytest.mark.quick(2)
@pytest.mark.parametrize("dtype", ["bfloat16", "float64"])
@pytest.mark.parametrize("size", [(3,), (4,), (3, 3)])
def test_alpha_is_the_lead_on_the_largest_grids(size, dtype):
    """At all shifts of a sequence, and on both axes of an image through each of the offsets."""
    geometry = ConvolutionGeometry.of(size, 1)
    encoding, blocks = rotary_construction(jnp.ones((geometry.heads, 1, 1), dtype), geometry)
    assert_equal(blocks, np.ones((geometry.heads, 1, 1)))
    assert_dtype(encoding.cosine[0], "float64" if dtype == "float64" else "float32")
    sides = [range(-last, last + 1) for last in encoding.largest_shift]
    if len(size) == 1:
        shifts = np.array(sides[0])[:, None]
    else:
        line = [(far, near) for far in sides[0] for near in (-1, 0, 1)]
        shifts = np.unique([*line, *((near, far) for far, near in line)], axis=0)
    scores = np.asarray(encoding.shift_scores(shifts, 9), np.float64)
    sharpness = one_hot_sharpness(dtype)
    off = 64 * PAIRS * sharpness * np.finfo(encoding.cosine[0].dtype).eps
    for head, offset in enumerate(geometry.offsets):
        own = (shifts == offset).all(axis=1)
        lead = scores[head, own] - scores[head, ~own].max()
        assert abs(lead - sharpness).max() <= off


def test_sequences_of_1024_keys_are_converted_and_longer_ones_refused():
    kernel = np.arange(1.0, 4.0, dtype=np.float32).reshape(3, 1, 1)
    layer = conv_to_attention(kernel, encoding="rotary")
    images = np.random.default_rng(0).integers(0, 9, (1, 1022, 1)).astype(np.float32)
    assert_equal(applied(layer, images), reference(images, kernel))
    with pytest.raises(ValueError, match=r"shifts up to \(1023,\) occur, but expected at most"):
        applied(layer, np.ones((1, 1023, 1), np.float32))


def test_kernels_that_reach_too_far_are_refused():
    kernel = np.ones((3, 1, 1), np.float32)
    conv_to_attention(kernel, encoding="rotary", dilation=511)
    with pytest.raises(ValueError, match=r"reaches over .*512.* tells 1024 tokens a side apart"):
        conv_to_attention(kernel, encoding="rotary", dilation=512)
