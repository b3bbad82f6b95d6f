"""timm's formulas, and the normal distribution."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from convattn.lab.data.variation.magnitudes import COUNT, argument_table, magnitudes

HEIGHT, WIDTH = 24, 40


@pytest.mark.parametrize("mean", [9, 2.5])
def test_magnitudes_are_normal_and_cut(mean) -> None:
    """The share of magnitudes below x is within 1/2,048 of the distribution's, for every x."""
    found = np.array(magnitudes(mean))
    assert found.min() >= 0
    assert found.max() <= 10
    assert (np.diff(found) >= 0).all()
    for x in np.linspace(0.01, 9.99, 300):
        share = np.mean(found <= x)
        assert abs(share - norm.cdf(x, mean, 0.5)) <= 0.5 / COUNT + 1e-12
        if 0.1 < share < 0.9:  # planted
            assert abs(share - norm.cdf(x, mean, 0.45)) > 0.5 / COUNT or abs(x - mean) < 0.05


def test_the_arguments_are_timms() -> None:
    """Integers exactly, others to half of their unit."""
    table = argument_table(9, HEIGHT, WIDTH)
    for place, magnitude in enumerate(magnitudes(9)):
        level = magnitude / 10
        angle = math.radians(level * 30)
        assert table.bits[place] == 4 - int(level * 4)
        assert table.threshold[place] == 256 - int(level * 256)
        assert table.addition[place] == int(level * 110)
        for found, unit, expected in (
            (table.more[place], 2**-12, 1 + level * 0.9),
            (table.less[place], 2**-12, max(0.1, 1 - level * 0.9)),
            (table.cosine[place], 2**-16, math.cos(angle)),
            (table.sine[place], 2**-16, math.sin(angle)),
            (table.shear[place] / 64, 2**-10, level * 0.3),
            (table.across[place] / 64, 2**-11, level * 0.45 * WIDTH),
            (table.down[place] / 64, 2**-11, level * 0.45 * HEIGHT),
        ):
            assert float(found).is_integer()
            assert abs(found * unit - expected) <= unit / 2
    assert {0, 1, 2} == set(table.bits.tolist())
