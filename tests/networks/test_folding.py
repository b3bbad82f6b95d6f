"""Batch normalisation in the kernel: exact but for one rounding of each number."""

from fractions import Fraction

import numpy as np
import pytest
from comparison import assert_within
from networks.small import small_images, small_model

from convattn.lab.models.resnet_network import fold, normalized_convolutions
from convattn.networks import fold_batch_norm
from convattn.networks.folding import folding_error

ONES, ROUNDOFF = np.ones(2), folding_error(np.float32)
KERNEL = np.arange(18, dtype=np.float32).reshape(3, 3, 1, 2) - 7


def folded_in_float64(epsilon: float = 1e-3):
    rng = np.random.default_rng(0)
    mean, variance, scale, shift = rng.uniform(0.3, 3, (4, 2))
    factor = scale / np.sqrt(variance + epsilon)
    exact = KERNEL * factor, shift - mean * factor
    return fold_batch_norm(KERNEL, mean, variance, scale, shift, 1e-3), exact


def test_each_number_is_rounded_once() -> None:
    found, (kernel, bias) = folded_in_float64()
    assert (np.abs(found.kernel - kernel) <= ROUNDOFF * np.abs(kernel)).all()
    assert (np.abs(found.bias - bias) <= ROUNDOFF * found.magnitude).all()
    assert found.kernel.dtype == found.bias.dtype == np.float32


def test_of_many_channels_none_is_rounded_twice() -> None:
    """Two roundings in float32 pass the bound where both go one way and the number is near 2^n.

    Statistics in float64; float64 itself is 2⁻²⁷ of the bound.
    """
    rng = np.random.default_rng(0)
    mean, shift = rng.uniform([[-3.0], [0.3]], [[-0.3], [3]], (2, 512))
    variance, scale = rng.uniform(0.3, 3, (2, 512))
    kernel = rng.uniform(1, 2, (1, 1, 1, 512)).astype(np.float32)
    factor = scale / np.sqrt(variance + 1e-3)
    result = fold_batch_norm(kernel, mean, variance, scale, shift, 1e-3)
    assert_within(result.kernel, kernel * factor, ROUNDOFF * np.abs(kernel * factor))
    assert_within(result.bias, shift - mean * factor, ROUNDOFF * result.magnitude)


def test_in_float64_there_are_six_roundings() -> None:
    """γ_6 = 6u/(1 - 6u): sum, root, quotient, product, and for the bias two more."""
    unit = Fraction(1, 2**53)
    exact = 6 * unit / (1 - 6 * unit)
    assert exact <= Fraction(folding_error(np.float64)) <= exact * (1 + 2 * unit)


def test_in_float64_a_few_roundings_are_left() -> None:
    """Against fractions: variance + ε is a square."""
    entry = [np.array([part]) for part in (0.1, 0.7, 1 / 3, 0.9)]
    found = fold_batch_norm(KERNEL[..., :1], *entry, 0.42, np.float64)
    root = Fraction(np.sqrt(0.7 + 0.42))
    assert found.kernel.dtype == np.float64
    scale, shift, mean = (Fraction(part) for part in (1 / 3, 0.9, 0.1))
    share = folding_error(np.float64)
    assert 0 < share < 1e-15
    for got, weight in zip(found.kernel.ravel(), KERNEL[..., :1].ravel(), strict=True):
        exact = Fraction(float(weight)) * scale / root
        assert abs(Fraction(got) - exact) <= Fraction(share) * abs(exact)
    exact = shift - mean * scale / root
    assert abs(Fraction(found.bias[0]) - exact) <= Fraction(share * found.magnitude[0])


def test_the_magnitude_is_of_both_parts_of_the_bias() -> None:
    """|β| + |m·s| with s = 3/√(0 + 4) and -5/√(12 + 4), and the kernel times s."""
    found = fold_batch_norm(
        KERNEL, np.array([-4.0, 8]), np.array([0.0, 12]), np.array([3.0, -5]), -ONES, 4.0
    )
    factor = np.array([3 / 2, -5 / 4])
    assert found.magnitude.tolist() == [1 + 6, 1 + 10]
    assert found.bias.tolist() == [-1 + 6, -1 + 10]
    assert (found.kernel == KERNEL * factor).all()


def test_the_norm_s_own_epsilon_and_statistics_are_taken() -> None:
    """Far outside the bound with any other."""
    model = small_model()
    _, layer = next(normalized_convolutions(model))
    images = (small_images() / 128 - 1).astype(np.float32)
    kernel = np.asarray(layer.convolution.kernel[...], np.float64)
    factor = np.asarray(layer.norm.scale[...]) / np.sqrt(np.asarray(layer.norm.var[...]) + 1e-5)
    found = fold(layer)
    assert (np.abs(found.kernel - kernel * factor) <= 4 * ROUNDOFF * np.abs(found.kernel)).all()
    assert layer(images, False).shape == (2, 8, 8, 3)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"mean": ONES * np.nan}, "the mean of a batch normalisation is not finite"),
        ({"variance": -ONES}, "are mean and variance exchanged"),
        ({"epsilon": 0.0}, "epsilon > 0"),
        ({"variance": 0 * ONES, "scale": 1e38 * ONES}, "overflows float32"),
    ],
)
def test_what_cannot_be_folded_is_refused(changed, message) -> None:
    parts = {"mean": ONES, "variance": ONES, "scale": ONES, "shift": ONES, "epsilon": 1e-5}
    with pytest.raises(ValueError, match=message):
        fold_batch_norm(KERNEL, **{**parts, **changed})
