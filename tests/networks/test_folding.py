"""Batch normalisation in the kernel: exact but for one rounding of each number."""

from fractions import Fraction

import numpy as np
import pytest
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
