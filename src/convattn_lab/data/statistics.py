"""The mean and the standard deviation of each colour channel, from exact sums."""

import math
from fractions import Fraction

import numpy as np
from jaxtyping import Float64

from convattn.data.cifar10_slice import Images

BLOCK = 4096  # images counted at a time


def channel_statistics(
    images: Images,
) -> tuple[Float64[np.ndarray, " 3"], Float64[np.ndarray, " 3"]]:
    """Mean and standard deviation of x/255 over all pixels, for each channel.

    With n pixels, S₁ = Σ x and S₂ = Σ x², all integers, a channel has the mean S₁/(255 n) and the
    standard deviation √(n S₂ - S₁²)/(255 n). Only the last division (and the root) is rounded. A
    channel that is constant gets the standard deviation 1, so that normalising makes it 0.

    Args:
        images: at least one image with at least one pixel.

    Returns:
        The mean and the standard deviation, ``[3]`` each.

    Raises:
        ValueError: there are no pixels.

    >>> half = np.zeros((1, 2, 1, 3), np.uint8)
    >>> half[0, 0, 0, 0] = 255
    >>> mean, deviation = channel_statistics(Images(half, np.zeros(1, np.uint8), ("one",)))
    >>> mean.tolist(), deviation.tolist()
    ([0.5, 0.0, 0.0], [0.5, 1.0, 1.0])
    """
    pixels = images.images
    count = pixels.size // 3
    if not count:
        raise ValueError(
            f"images.shape={list(pixels.shape)}, but expected at least one pixel; is the set empty?"
        )
    mean, deviation = np.empty(3), np.empty(3)
    for channel in range(3):
        histogram = np.zeros(256, np.int64)
        for start in range(0, len(pixels), BLOCK):
            block = pixels[start : start + BLOCK, ..., channel]
            histogram += np.bincount(block.ravel(), minlength=256)
        numbers = histogram.tolist()
        first = sum(value * number for value, number in enumerate(numbers))
        second = sum(value * value * number for value, number in enumerate(numbers))
        variance = Fraction(count * second - first**2, (255 * count) ** 2)
        mean[channel] = Fraction(first, 255 * count)
        deviation[channel] = math.sqrt(variance) if variance else 1.0
    return mean, deviation
