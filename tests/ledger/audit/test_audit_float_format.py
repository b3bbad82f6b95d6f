import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from convattn_ledger.audit.float_format import (
    available_formats,
    bit_patterns,
    float_format,
    least_representable,
)


@pytest.mark.parametrize(
    ("name", "precision", "min_exponent", "flushed", "one_hot"),
    [
        ("float32", 24, -126, 126, 150),
        ("bfloat16", 8, -126, 126, 134),
        ("float16", 11, -14, 14, 25),
    ],
)
def test_parameters_and_thresholds(name, precision, min_exponent, flushed, one_hot) -> None:
    measured = float_format(name)
    assert (measured.precision, measured.min_exponent) == (precision, min_exponent)
    assert measured.one_hot_flushed == flushed * math.log(2)
    assert measured.one_hot_kept == one_hot * math.log(2)
    assert measured.dtype == jnp.dtype(name)
    stored = np.array([measured.least_normal, math.ldexp(1, min_exponent - precision + 1)])
    patterns = bit_patterns(stored.astype(measured.dtype)).tolist()
    assert patterns == [2 ** (precision - 1), 1]


def test_float64_follows_the_switch() -> None:
    with jax.enable_x64(False):
        assert [each.name for each in available_formats()] == ["float32", "bfloat16", "float16"]
        with pytest.raises(ValueError, match="64-bit types are off"):
            float_format("float64")
    with jax.enable_x64(True):
        assert available_formats()[0].name == "float64"
        assert float_format(np.float64).one_hot_kept == 1075 * math.log(2)


@pytest.mark.parametrize("dtype", ["int32", "float8_e4m3fn", "no dtype"])
def test_other_dtypes_are_refused(dtype) -> None:
    with pytest.raises(ValueError, match="one of float64, float32, bfloat16, float16"):
        float_format(dtype)


@pytest.mark.parametrize("name", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("threshold", [1.0001, math.pi, 46 * math.log(10), 1000.5])
def test_finds_the_least_number_of_the_format(name, threshold) -> None:
    number_format = float_format(name)
    least = least_representable(lambda x: float(x) >= threshold, 1.0, 2048.0, number_format)
    assert least >= threshold
    before = np.nextafter(
        np.array(least).astype(number_format.dtype), np.array(0, number_format.dtype)
    )
    assert float(before) < threshold


def test_the_ends_of_the_search() -> None:
    single = float_format("float32")
    for criterion, least in ((lambda _: True, 1.0), (lambda _: False, None), (lambda x: x >= 2, 2)):
        assert least_representable(criterion, 1.0, 2.0, single) == least


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (2.0, 1.0), (1.0, 1.0), (1.0, 1e9)])
def test_ends_out_of_order_or_range_are_refused(low, high) -> None:
    with pytest.raises(ValueError, match="0 < low < high"), np.errstate(over="ignore"):
        least_representable(lambda _: True, low, high, float_format("float16"))
