import math

import certificate_builder as build
import pytest
from certificate_cases import verdict_on


@pytest.mark.parametrize(("alpha", "exponent"), [(46, -68), (86, -126), (102, -149)])
def test_the_weight_of_a_neighbour_survives(alpha, exponent):
    """w = e^-α / Σ is above e^-α / 2: Σ is below 2, summed in floats over a wide grid."""
    assert 1 <= sum(math.exp(-alpha * n * n) for n in range(-30, 31)) ** 2 < 2
    assert verdict_on(build.saturation(alpha, exponent)).accepted
    assert math.exp(-alpha) / 2 > 2.0**exponent


@pytest.mark.parametrize(("alpha", "exponent"), [(88, -126), (104, -149), (104, -150)])
def test_the_weight_of_a_neighbour_vanishes(alpha, exponent):
    assert verdict_on(build.saturation(alpha, exponent, "vanishes")).accepted
    assert math.exp(-alpha) < 2.0**exponent
