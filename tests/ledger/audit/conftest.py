import math
from collections.abc import Callable

import numpy as np
import pytest

from convattn.ledger.audit.float_format import FloatFormat
from convattn.ledger.audit.subnormals import measure_subnormals

EXP_ULPS = 4


def _tolerance(threshold: float, score: FloatFormat, softmax: FloatFormat) -> float:
    """How far a measured threshold may lie outside of its prediction.

    One spacing of the scores' format, since the threshold is a number of it; the shift of x that
    EXP_ULPS of e^-x amount to, as d ln(e^-x) = -dx and an ulp is at most 2^(1-p) of the number; and
    the farther rivals, less than e^-x of the nearest.
    """
    spacing = float(np.spacing(np.array(threshold).astype(score.dtype)).astype(np.float64))
    return spacing + EXP_ULPS * math.ldexp(1, 1 - softmax.precision) + math.exp(-threshold)


def _check_saturation(saturation, score: FloatFormat, softmax: FloatFormat) -> None:
    low, high = saturation.rounds_to_one_predicted
    found = saturation.rounds_to_one
    allowed = _tolerance(found, score, softmax)
    assert low - allowed <= found <= high + allowed

    flags = measure_subnormals(softmax)
    flushed, kept = saturation.one_hot_predicted
    found = saturation.one_hot
    allowed = _tolerance(found, score, softmax)
    if flags.exp_kept and flags.divide_kept:
        assert abs(found - kept) <= allowed
    else:
        # Below half of the least normal number nothing can be left.
        assert flushed - allowed <= found <= flushed + math.log(2) + allowed
    if score == softmax:
        assert abs(found - flags.exp_zero_from) <= allowed


@pytest.fixture
def check_saturation() -> Callable:
    return _check_saturation
