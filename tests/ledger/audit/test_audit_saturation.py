import math

import numpy as np
import pytest

from convattn.ledger.audit.float_format import float_format
from convattn.ledger.audit.saturation import (
    is_one_hot,
    measure_saturation,
    rounds_to_one,
    softmax_formats,
)

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


@pytest.mark.parametrize(("flush", "powers"), [(False, 150), (True, 126)])
def test_one_hot_of_a_planted_softmax_with_and_without_subnormals(flush, powers) -> None:
    found = measure_saturation(
        lambda scale: host_softmax(scale, 4, flush, rivals_first=False),
        score=SINGLE,
        softmax=SINGLE,
        rivals=4,
    )
    assert found.one_hot == pytest.approx(powers * math.log(2), abs=2 * 2.0**-17)
    assert found.one_hot in (
        pytest.approx(found.one_hot_predicted[0], abs=1e-4),
        pytest.approx(found.one_hot_predicted[1], abs=1e-4),
    )


@pytest.mark.parametrize("rivals", [2, 4, 64])
def test_order_of_summation_moves_the_maximum_inside_the_interval(rivals) -> None:
    one_by_one, together = (
        measure_saturation(
            lambda scale, first=first: host_softmax(scale, rivals, False, rivals_first=first),
            score=SINGLE,
            softmax=SINGLE,
            rivals=rivals,
        ).rounds_to_one
        for first in (False, True)
    )
    resolution = 2 * 2.0**-19  # two spacings of float32 between 16 and 32
    assert one_by_one == pytest.approx(24 * math.log(2), abs=resolution)
    assert together == pytest.approx(24 * math.log(2) + math.log(rivals), abs=resolution)


def test_a_softmax_that_never_saturates_is_reported_as_such() -> None:
    found = measure_saturation(
        lambda _: np.float32([0.5, 0.5]), score=SINGLE, softmax=SINGLE, rivals=1
    )
    assert found.rounds_to_one is None
    assert found.one_hot is None


def test_criteria_see_a_single_last_place() -> None:
    assert not rounds_to_one(np.array([np.nextafter(np.float32(1), np.float32(0))]))
    least = np.nextafter(np.float32(0), np.float32(1))
    assert rounds_to_one(np.array([1, least], np.float32))
    assert not is_one_hot(np.array([1, least], np.float32))
    assert is_one_hot(np.array([1, -0.0], np.float32))


def test_softmax_runs_in_at_least_float32_beside_the_own_format() -> None:
    assert softmax_formats(SINGLE) == (SINGLE,)
    assert [each.name for each in softmax_formats(float_format("bfloat16"))] == [
        "bfloat16",
        "float32",
    ]
