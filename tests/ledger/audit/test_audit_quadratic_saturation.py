import math

import jax
import numpy as np
import pytest

from convattn.ledger.audit.float_format import float_format
from convattn.ledger.audit.quadratic_saturation import (
    SIDE,
    measure_quadratic_saturation,
    squared_distances,
)


@pytest.mark.parametrize("name", ["float64", "float32", "bfloat16", "float16"])
def test_measured_agrees_with_predicted_and_with_the_subnormal_flags(
    name, check_saturation
) -> None:
    with jax.enable_x64(name == "float64"):
        score = float_format(name)
        rows = measure_quadratic_saturation(score)
        assert {row.axes for row in rows} == {1, 2}
        for row in rows:
            check_saturation(row.alpha, score, float_format(row.softmax_dtype))


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
