import math
from fractions import Fraction

import pytest

from convattn.fast.backend import Work
from convattn.fast.cost_model import RATES, Rates, seconds

NOTHING = Work(0.0, 0.0, 0.0, 0.0)


def test_nothing_takes_no_time() -> None:
    assert [seconds(NOTHING, platform) for platform in RATES] == [0.0] * len(RATES)


@pytest.mark.parametrize("platform", RATES)
@pytest.mark.parametrize(
    ("field", "rate"),
    [
        ("products", "product"),
        ("moved", "moved"),
        ("exponentials", "exponential"),
        ("calls", "call"),
    ],
)
def test_each_count_is_priced_with_its_own_rate(platform, field, rate) -> None:
    assert seconds(NOTHING._replace(**{field: 4.0}), platform) == 4 * getattr(RATES[platform], rate)


def test_the_rates_are_added(monkeypatch) -> None:
    monkeypatch.setitem(RATES, "cpu", Rates(0.5, 0.25, 2.0, 8.0))
    expected = Fraction(3, 2) + Fraction(5, 4) + 14 + 88
    assert seconds(Work(3.0, 5.0, 7.0, 11.0), "cpu") == expected


def test_an_unknown_platform_is_taken_for_a_gpu() -> None:
    work = Work(1e9, 1e6, 1e5, 10.0)
    assert seconds(work, "rocm") == seconds(work, "gpu") != seconds(work, "cpu")


@pytest.mark.parametrize("platform", RATES)
def test_rates_are_times(platform) -> None:
    assert all(math.isfinite(rate) and rate >= 0 for rate in RATES[platform])
    assert max(RATES[platform]) > 0
