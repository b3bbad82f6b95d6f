from fractions import Fraction

import numpy as np
import pytest

from convattn.data import Images, load_cifar10_slice
from convattn_lab.data import channel_statistics, statistics


def images_of(pixels: np.ndarray) -> Images:
    return Images(pixels, np.zeros(len(pixels), np.uint8), ("one",))


def exact(values: np.ndarray) -> tuple[Fraction, Fraction]:
    """Mean and variance of x/255, from the definition."""
    numbers = [Fraction(int(value), 255) for value in values.ravel()]
    mean = sum(numbers) / len(numbers)
    return mean, sum((number - mean) ** 2 for number in numbers) / len(numbers)


def test_they_are_those_of_the_definition(monkeypatch) -> None:
    monkeypatch.setattr(statistics, "BLOCK", 2)  # five images in three blocks
    pixels = np.random.default_rng(0).integers(0, 256, (5, 4, 3, 3), np.uint8)
    pixels[..., 2] //= 7
    mean, deviation = channel_statistics(images_of(pixels))
    assert mean.dtype == deviation.dtype == np.float64
    for channel in range(3):
        expected_mean, variance = exact(pixels[..., channel])
        assert mean[channel] == float(expected_mean)
        # float(variance) and the root are each rounded once: √(1 + u)(1 + u) < 1 + 2u, u = 2⁻⁵³
        error = abs(Fraction(deviation[channel]) ** 2 / variance - 1)
        assert error <= 4 * Fraction(1, 2**53)


def test_nearly_constant_channels_lose_no_digits() -> None:
    pixels = np.full((1000, 10, 10, 3), 254, np.uint8)
    pixels[0, 0, 0] = 255
    mean, deviation = channel_statistics(images_of(pixels))
    count = 100_000
    assert mean.tolist() == [float(Fraction(254 * count + 1, 255 * count))] * 3
    variance = Fraction(count - 1, (255 * count) ** 2)
    assert abs(Fraction(deviation[0]) ** 2 / variance - 1) <= 4 * Fraction(1, 2**53)


def test_the_slice_has_the_statistics_that_cifar10_is_known_for() -> None:
    mean, deviation = channel_statistics(load_cifar10_slice("train"))
    # of all 50,000 images; 2,000 differ by about 0.25·√(correlated pixels)/√2000 < 0.02
    assert np.abs(mean - [0.4914, 0.4822, 0.4465]).max() < 0.02
    assert np.abs(deviation - [0.2470, 0.2435, 0.2616]).max() < 0.02


@pytest.mark.parametrize("shape", [(0, 4, 4, 3), (2, 0, 4, 3)])
def test_no_pixels_are_refused(shape) -> None:
    with pytest.raises(ValueError, match="but expected at least one pixel"):
        channel_statistics(images_of(np.zeros(shape, np.uint8)))
