import math

import jax
import numpy as np
import pytest

from convattn_ledger.audit.float_format import FloatFormat, float_format
from convattn_ledger.audit.saturation import (
    SIDE,
    measure_bias_saturation,
    measure_quadratic_saturation,
    measure_saturation,
    softmax_formats,
    squared_distances,
)
from convattn_ledger.audit.subnormals import measure_subnormals

EXP_ULPS = 4


def tolerance(threshold: float, score: FloatFormat, softmax: FloatFormat) -> float:
    """How far a measured threshold may lie outside of its prediction.

    One spacing of the scores' format, since the threshold is a number of it; the shift of x that
    EXP_ULPS of e^-x amount to, as d ln(e^-x) = -dx and an ulp is at most 2^(1-p) of the number; and
    the farther rivals, less than e^-x of the nearest.
    """
    spacing = float(np.spacing(np.array(threshold).astype(score.dtype)).astype(np.float64))
    return spacing + EXP_ULPS * math.ldexp(1, 1 - softmax.precision) + math.exp(-threshold)


def check_saturation(saturation, score: FloatFormat, softmax: FloatFormat) -> None:
    low, high = saturation.rounds_to_one_predicted
    measured = saturation.rounds_to_one
    allowed = tolerance(measured, score, softmax)
    assert low - allowed <= measured <= high + allowed

    flags = measure_subnormals(softmax)
    flushed, gradual = saturation.one_hot_predicted
    measured = saturation.one_hot
    allowed = tolerance(measured, score, softmax)
    if flags.exp_kept and flags.divide_kept:
        assert abs(measured - gradual) <= allowed
    else:
        # Below half of the least normal number nothing can be left.
        assert flushed - allowed <= measured <= flushed + math.log(2) + allowed
    if score == softmax:
        assert abs(measured - flags.exp_zero_from) <= allowed


@pytest.mark.slow
@pytest.mark.parametrize("name", ["float64", "float32", "bfloat16", "float16"])
def test_measured_agrees_with_predicted_and_with_the_subnormal_flags(name) -> None:
    with jax.enable_x64(name == "float64"):
        score = float_format(name)
        quadratic, bias = measure_quadratic_saturation(score), measure_bias_saturation(score, (28,))
        assert {row.axes for row in quadratic} == {1, 2}
        for row in quadratic:
            check_saturation(row.alpha, score, float_format(row.softmax_dtype))
        for row in bias:
            check_saturation(row.logit, score, float_format(row.softmax_dtype))


SINGLE = float_format("float32")


def host_softmax(scale, rivals, flush, *, rivals_first):
    """float32 softmax on the host, each operation correctly rounded from float64."""
    exponential = np.float32(np.exp(-np.float64(scale)))
    if flush and exponential < np.finfo(np.float32).tiny:
        exponential = np.float32(0)
    total = np.float32(0 if rivals_first else 1)
    for _ in range(rivals):
        total = np.float32(total + exponential)
    total = np.float32(total + 1) if rivals_first else total
    return np.array([1, *[exponential] * rivals], np.float32) / total


def planted_saturation(rivals, *, flush=False, rivals_first=False):
    return measure_saturation(
        lambda scale: host_softmax(scale, rivals, flush, rivals_first=rivals_first),
        score=SINGLE,
        softmax=SINGLE,
        rivals=rivals,
    )


@pytest.mark.parametrize(("flush", "powers"), [(False, 150), (True, 126)])
def test_one_hot_of_a_planted_softmax_with_and_without_subnormals(flush, powers) -> None:
    measured = planted_saturation(4, flush=flush)
    assert measured.one_hot == pytest.approx(powers * math.log(2), abs=2 * 2.0**-17)
    assert min(abs(measured.one_hot - end) for end in measured.one_hot_predicted) <= 1e-4


@pytest.mark.parametrize("rivals", [2, 64])
def test_order_of_summation_moves_the_maximum_inside_the_interval(rivals) -> None:
    resolution = 2 * 2.0**-19  # two spacings of float32 between 16 and 32
    for rivals_first, shift in ((False, 0), (True, math.log(rivals))):
        measured = planted_saturation(rivals, rivals_first=rivals_first).rounds_to_one
        assert measured == pytest.approx(24 * math.log(2) + shift, abs=resolution)


def test_a_softmax_that_never_saturates_is_reported_as_such() -> None:
    measured = measure_saturation(
        lambda _: np.float32([0.5, 0.5]), score=SINGLE, softmax=SINGLE, rivals=1
    )
    assert (measured.rounds_to_one, measured.one_hot) == (None, None)


def test_softmax_runs_in_at_least_float32_beside_the_own_format() -> None:
    assert softmax_formats(SINGLE) == (SINGLE,)
    assert softmax_formats(float_format("bfloat16")) == (float_format("bfloat16"), SINGLE)


def test_alpha_46_leaves_rivals_in_float32() -> None:
    for row in measure_quadratic_saturation(float_format("float32")):
        assert row.rival_at_claimed == pytest.approx(math.exp(-46), rel=1e-6)
        assert row.alpha.rounds_to_one < 46 < row.alpha.one_hot
        assert row.alpha.one_hot < 46 * math.log(10)


def test_float16_underflows_before_46() -> None:
    native, library = measure_quadratic_saturation(float_format("float16"))[::2]
    assert (native.softmax_dtype, library.softmax_dtype) == ("float16", "float32")
    assert native.rival_at_claimed == 0
    assert library.rival_at_claimed > 0


@pytest.mark.parametrize("axes", [1, 2])
def test_the_target_is_inside_with_all_its_nearest_rivals(axes) -> None:
    distances = squared_distances(axes)
    assert distances.shape == (SIDE**axes,)
    assert np.count_nonzero(distances == 0) == 1
    assert np.count_nonzero(distances == 1) == 2 * axes


def test_40_rounds_to_one_in_float32_for_every_practical_number_of_keys() -> None:
    rows = measure_bias_saturation(float_format("float32"))
    assert len({row.logit.one_hot for row in rows}) == 1  # whatever the number of keys
    for row in rows:
        assert row.deficit_at_claimed == 0
        assert row.logit.rounds_to_one < 40


@pytest.mark.slow
def test_40_does_not_in_float64_beyond_27_keys() -> None:
    # Added up first, the N - 1 rivals leave 1 alone as long as (N - 1)·e^-40 ≤ 2^-53.
    assert 26 * math.exp(-40) <= 2.0**-53 < 27 * math.exp(-40)
    with jax.enable_x64(True):
        few, *rows = measure_bias_saturation(float_format("float64"), keys=(14, 256, 50176))
    assert few.deficit_at_claimed == 0
    for row in rows:
        assert row.logit.rounds_to_one > 40
        # Added one by one each rival raises Z by at most twice itself, then 1/Z is rounded.
        assert 0 < row.deficit_at_claimed <= 2 * (row.keys - 1) * math.exp(-40) + 2.0**-52
