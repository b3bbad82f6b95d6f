"""Pillow's bicubic resizing of floating-point pixels."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_within, gamma
from PIL import Image

from convattn_lab.data.batches import resized

IMAGES = np.random.default_rng(0).normal(size=(2, 6, 9, 3)).astype(np.float32)


def by_pillow(side: int, how: Image.Resampling = Image.Resampling.BICUBIC) -> np.ndarray:
    planes = IMAGES.transpose(0, 3, 1, 2).reshape(6, 6, 9)
    result = [np.asarray(Image.fromarray(plane).resize((side, side), how)) for plane in planes]
    return np.array(result).reshape(2, 3, side, side).transpose(0, 2, 3, 1)


@pytest.mark.parametrize("side", [16, 4])
def test_larger_and_smaller_is_as_in_pillow(side) -> None:
    """A value is a sum over 6 × 9 pixels with weights of total |w| < 3 from either library, each
    rounded a few times, and Pillow rounds after each direction."""
    bound = 3 * gamma(6 + 9 + 20, jnp.float32) * np.abs(IMAGES).max() * 2
    result = jax.jit(resized, static_argnums=1)(IMAGES, side)
    assert result.dtype == jnp.float32
    assert_within(result, by_pillow(side), bound)
    with pytest.raises(AssertionError, match="too far"):  # planted
        assert_within(result, by_pillow(side, Image.Resampling.BILINEAR), bound)


def test_an_image_of_this_size_is_left_alone() -> None:
    square = IMAGES[:, :, :6]
    assert resized(square, 6) is square
    assert resized(IMAGES, None) is IMAGES
