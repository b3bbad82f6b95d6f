"""The bounds of one step: worked examples from the formulas of the module, and what has none."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from bounds.rounding_formula import (
    INFLATION,
    RELATIVE,
    SINGLE,
    TINY,
    relative_error_of,
    softmax_factors,
)
from comparison import assert_equal, assert_within
from roundings import gamma, roundoff

import convattn as ca
from convattn.networks.folding import FoldedConvolution
from convattn.networks.local_errors import (
    LocalError,
    leak_of,
    local_error,
    magnitudes,
    of_attention,
    of_model,
    of_products,
)
from convattn.networks.steps import Convolution

# 3 × 1 taps from 2 to 5 channels, so sums of up to 15 products, and of 18 keys in images of 4 × 3.
KERNEL = np.random.default_rng(0).integers(-4, 5, (3, 1, 2, 5)).astype(np.float32)
STEP = Convolution(jnp.asarray(KERNEL), jnp.arange(-2.0, 3, dtype="float32"), 1, "stem")
SIZE, TAPS, TERMS, KEYS = (4, 3), 3, 15, 18


def images(dtype: str = "float32") -> np.ndarray:
    """Two images."""
    return np.random.default_rng(1).integers(-9, 10, (2, *SIZE, 2)).astype(dtype)


def attention(leak: float, dtype: str = "float32") -> ca.AttentionLayer:
    """A head for each tap and a uniform one."""
    return ca.conv_to_attention(KERNEL.astype(dtype), np.ones(5, dtype), leak=leak)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_bounds_of_convolutions_are_those_of_their_sums(dtype) -> None:
    """γ_(n+1) of the folded one; γ_(n+16) and twice the rounding of the fold of the model."""
    unit, magnitude = roundoff(dtype), np.array([1.0, 2, 3, 4, 5])
    found = of_products(STEP, unit)
    assert found.relative == gamma(TERMS + 1, unit)
    assert_equal(found.beside, np.zeros(5))
    assert (found.mean, found.floor) == (0, 4 * (TERMS + 2) * TINY)
    turned = replace(STEP, kernel=STEP.kernel.transpose(1, 0, 3, 2))
    assert of_products(turned, unit).relative == found.relative  # and of its transpose
    model = of_model(STEP, FoldedConvolution(KERNEL, magnitude, magnitude), dtype)
    fold = SINGLE * (1 + 2.0**-20) if dtype == "float32" else gamma(6, unit)
    assert_within(model.relative, gamma(TERMS + 16, unit) + 2 * fold, RELATIVE * model.relative)
    assert_equal(model.beside, magnitude)
    assert (model.mean, model.floor) == (0, found.floor)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_bound_of_attention_is_the_product_of_its_factors(dtype) -> None:
    """Π - 1, the mean of all keys with the leak, and what underflows in the two sums."""
    leak, unit, heads = 0.25, roundoff(dtype), TAPS + 1
    found = of_attention(STEP, attention(leak, dtype), images(dtype))
    height = np.log1p(KEYS * (1 / leak - 1))
    factors = softmax_factors(unit, KEYS, gamma(15, unit) * height, height, 0.0)
    factors += [gamma(TAPS + 4, unit), unit]  # of the maps, and of storing them
    factors += [gamma(KEYS, unit), gamma(heads * 2, unit), unit, unit]
    expected = relative_error_of(factors) * INFLATION
    assert_within(found.relative, expected, RELATIVE * expected)
    spread = 2 * leak / (1 - leak) / KEYS * (1 + 2 * gamma(KEYS + 16, SINGLE))
    assert_within(found.mean, spread, RELATIVE * spread)
    floor = 16 * TINY * (KEYS * heads * 2) * (1 + heads) * (1 + TAPS / (1 - leak))
    assert_within(found.floor, floor, RELATIVE * floor)
    assert_equal(found.beside, np.zeros(5))


def test_there_is_a_bound_while_the_least_weight_is_twice_the_smallest_number() -> None:
    """That weight is e^(-S - 2E)/N, less than leak/N² by the part 2E = 1.6e-4 of it."""
    layer, smallest = attention(0.25), 2 * TINY * KEYS**2

    def with_leak(leak: float) -> ca.AttentionLayer:
        return replace(layer, encoding=replace(layer.encoding, leak=jnp.float32(leak)))

    assert of_attention(STEP, with_leak(smallest * (1 + 2e-4)), images()).relative > 0
    with pytest.raises(ValueError, match=r"^stem: at the leak 7.*e-36 weights underflow"):
        of_attention(STEP, with_leak(smallest * (1 + 1.2e-4)), images())


def test_a_layer_of_two_dtypes_has_no_bound() -> None:
    with pytest.raises(ValueError, match="in float64, its scores in float64, the images in float3"):
        of_attention(STEP, attention(0.25, "float64"), images())
    with pytest.raises(ValueError, match="in float32, its scores in float32, the images in float6"):
        of_attention(STEP, attention(0.25), images("float64"))
    half = attention(0.25)
    half = replace(half, output=half.output.astype("float16"), bias=None)
    with pytest.raises(ValueError, match="in float16, its scores in float32, the images in float1"):
        of_attention(STEP, half, images("float16"))


def test_the_leak_is_that_of_an_exact_form_on_pixels() -> None:
    layer = attention(0.25)
    assert leak_of(layer) == 0.25
    for other in (
        replace(layer, patch_size=(1, 2)),
        replace(layer, encoding=replace(layer.encoding, leak=None)),
        ca.conv_to_attention(KERNEL, encoding="scalar"),
        ca.conv_to_attention(KERNEL, leak=0.25, padding="EDGE"),
    ):
        with pytest.raises(ValueError, match="derived for pixels, leaky biases"):
            leak_of(other)


def test_magnitudes_are_sums_of_absolute_values() -> None:
    """Of integers, so exact; at every second pixel, in float32 also for float64."""
    step, given = replace(STEP, stride=2), images("float64")
    padded = np.pad(np.abs(given), ((0, 0), (1, 1), (0, 0), (0, 0)))
    windows = [padded[:, tap : tap + 4][:, ::2, ::2] for tap in range(3)]
    expected = np.abs(np.asarray(step.bias)) + sum(
        window @ np.abs(KERNEL[tap, 0]) for tap, window in enumerate(windows)
    )
    found = magnitudes(step, given)
    assert found.dtype == np.float32
    assert_equal(found, expected)


def test_what_a_local_error_says_is_the_formula() -> None:
    """relative·(G + beside + mean·J) + floor·(1 + max|W|)(1 + max|x|), and G inflated."""
    given, size = images("float64"), np.random.default_rng(2).random((2, *SIZE, 5))
    beside = np.array([1.0, 2, 4, 8, 16])
    found = local_error(STEP, given, size, LocalError(0.5, beside, 0.25, 0.125))
    whole = size * (1 + 2 * gamma(TERMS + 16, SINGLE)) + beside
    for number, out in np.ndindex(2, 5):
        mean = sum(
            abs(given[number, :, :, k]).sum() * abs(KERNEL[:, 0, k, out]).sum() for k in range(2)
        )
        whole[number, :, :, out] += 0.25 * float(mean)
    expected = 0.5 * whole + 0.125 * (1 + abs(KERNEL).max()) * (1 + abs(given).max())
    assert_within(found, expected, RELATIVE * expected)
    assert local_error(STEP, given[:0], size[:0], LocalError(1, beside, 1, 1)).shape[0] == 0
