"""The bound between the phases: it holds, and whatever is wrong with a conversion exceeds it."""

from dataclasses import replace
from functools import cache

import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_within
from flax import nnx
from nnx.vision_transformer.tiny_transformer import CONVOLUTION, images, network

from convattn_lab.two_phase.conversion_check import failure
from convattn_lab.two_phase.deviation import ConversionDeviation, deviation
from convattn_lab.two_phase.settings import ConversionSettings, phase_two_settings
from convattn_lab.two_phase.transfer import transfer

EXACT, LIMIT = ConversionSettings("exact"), ConversionSettings("limit")
SETTINGS = replace(CONVOLUTION, depth=1, kernel_size=3)
CASES = {
    "exact": EXACT,
    "limit": LIMIT,
    "limit, M = 10": replace(LIMIT, logit=10.0),
    "bare": replace(EXACT, border="mean"),
}


@cache
def phase_one():
    return network(SETTINGS)


def converted(conversion):
    settings = phase_two_settings(SETTINGS, conversion)
    return transfer(phase_one(), settings, conversion, rngs=nnx.Rngs(7))


@cache
def deviation_of(name):
    return deviation(phase_one(), converted(CASES[name]), images(), CASES[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_logits_of_a_conversion_are_within_the_bound(name) -> None:
    result = deviation_of(name)
    assert result.passed
    assert len(result.entries) == result.logits.size
    assert max(gap for gap, _ in result.entries) == result.difference
    assert all(0 < layer.share <= 1 for layer in result.layers)
    if name in ("exact", "limit"):  # rounding alone; what M = 10 or the border changes is not tiny
        assert result.bound < 0.01
        assert result.difference < 1e-4
    else:
        assert result.difference > 1e-4


@pytest.mark.slow
def test_half_of_the_saturation_exceeds_the_bound() -> None:
    """M = 10 was asked for, and 5 is what the table holds."""
    wrong = converted(replace(LIMIT, logit=5.0))
    assert not deviation(phase_one(), wrong, images(), CASES["limit, M = 10"]).passed


def change(parameter, function) -> None:
    parameter[...] = function(parameter[...])


def shift_ring(mixing) -> None:
    """The same table, read with the zero tokens on one side."""
    mixing.grid = replace(mixing.grid, ring=((0, 2), (0, 2)))


IN_MIXING = {
    "tap": lambda mixing: change(mixing.output, lambda x: x.at[4].set(x[4].T)),
    "ring": shift_ring,
    "key for value": lambda mixing: change(mixing.value, lambda x: mixing.key[...]),
    "a head too few": lambda mixing: change(mixing.output, lambda x: x.at[3].set(0.0)),
    "uniform head": lambda mixing: change(mixing.output, lambda x: x.at[-1].set(0.0)),
    "half of M": lambda mixing: change(mixing.position_bias, lambda x: x / 2),
    "query": lambda mixing: change(mixing.query, jnp.ones_like),
    "bias": lambda mixing: change(mixing.bias, lambda x: x + 0.02),
    "not a number": lambda mixing: change(mixing.bias, lambda x: x * jnp.nan),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", IN_MIXING)
def test_an_error_in_a_layer_exceeds_its_bound(name) -> None:
    two = converted(EXACT)
    IN_MIXING[name](two.layers[0].mixing)
    result = deviation(phase_one(), two, images(), EXACT)
    assert not result.passed
    assert not result.layers[0].share <= 1
    assert "layer 1 differs" in failure(result, EXACT)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["layers.0.inner_norm.scale", "classifier.bias"])
def test_a_change_elsewhere_is_named(name) -> None:
    two = converted(EXACT)
    if name == "classifier.bias":
        change(two.classifier.bias, lambda x: x + 0.02)
    else:
        change(two.layers[0].inner_norm.scale, lambda x: x * 1.05)
    result = deviation(phase_one(), two, images(), EXACT)
    assert not result.passed
    assert result.layers[0].share <= 1
    message = failure(result, EXACT)
    assert "layer 1" not in message
    assert f"{name} changed" in message


@pytest.mark.slow
def test_both_runs_are_the_networks() -> None:
    """They round otherwise, so they agree within twice the bound of the two together."""
    result = deviation_of("exact")
    assert_within(result.logits, phase_one()(images()), result.bound)
    assert_within(result.other_logits, converted(EXACT)(images()), result.bound)


def test_without_a_bound_nothing_passes() -> None:
    logits = np.zeros((2, 3), np.float32)
    assert ConversionDeviation(logits, logits, ((0.0, 0.0),), ()).passed
    result = ConversionDeviation(logits, logits, (), (), without_rule="sort")
    assert not result.passed
    assert "no bound on the logits, for sort" in failure(result, EXACT)


@pytest.mark.slow
def test_another_dtype_is_refused() -> None:
    with pytest.raises(ValueError, match=r"float64.*float32"):
        deviation(network(SETTINGS, "float64"), converted(EXACT), images(), EXACT)
