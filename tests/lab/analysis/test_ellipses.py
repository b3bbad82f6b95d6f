import math

import numpy as np
import pytest
from comparison import assert_within, gamma
from scipy.stats import chi2

from convattn.lab.analysis import ellipses
from convattn.lab.analysis.ellipses import head_ellipse, radius

CENTER = np.array([1.5, -0.25])
ROOT = np.array([[1.2, 0.7], [-0.3, 0.4]])


def check_mass(share: float) -> None:
    # scipy and we round a few times each; the density of the square at its quantile is at most ½.
    assert_within(chi2.cdf(radius(share) ** 2, 2), share, gamma(50, float))


@pytest.mark.parametrize("share", [0.0, 0.5, 0.9, 0.999])
def test_the_radius_holds_the_share(share: float) -> None:
    check_mass(share)


def test_a_wrong_radius_is_seen(monkeypatch) -> None:
    monkeypatch.setitem(globals(), "radius", lambda share: math.sqrt(-math.log1p(-share)))
    with pytest.raises(AssertionError):
        check_mass(0.5)


def check_boundary(share: float) -> None:
    found = head_ellipse(CENTER, ROOT, share)
    for turn in np.linspace(0, 2 * np.pi, 7):
        along, across = np.cos(turn), np.sin(turn)
        parts = np.array([along, across]) * found.semi_axes
        point = found.center + parts @ found.directions
        distance = np.sum((ROOT @ (point - CENTER)) ** 2)
        # R times a semi-axis is ρ long, with a relative error of some dozens of roundings times
        # the condition number.
        slack = np.linalg.cond(ROOT) * gamma(200, float)
        assert_within(distance / (-2 * math.log(1 - share)), 1.0, slack)


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_the_boundary_is_where_the_gaussian_says(share: float) -> None:
    check_boundary(share)


def test_a_wrong_ellipse_is_seen(monkeypatch) -> None:
    monkeypatch.setattr(ellipses, "radius", lambda share: math.sqrt(-math.log1p(-share)))
    with pytest.raises(AssertionError):
        check_boundary(0.5)


def test_extents_and_angle_of_a_turned_ellipse() -> None:
    half = math.sqrt(0.5)
    turned = np.diag([1.0, 0.5]) @ np.array([[half, half], [-half, half]])
    found = head_ellipse(np.zeros(2), turned, 1 - math.exp(-0.5))
    assert_within(found.semi_axes, [1.0, 2.0], gamma(200, float))
    assert_within(found.half_extents, math.sqrt(2.5) * np.ones(2), gamma(200, float))
    assert_within(found.angle % 180, 45.0, 180 * gamma(200, float))


@pytest.mark.parametrize(
    ("center", "root"),
    [
        ([0.0, 0.0], [[0.0, 0.0], [0.0, 0.0]]),
        ([0.0, 0.0], [[np.nan, 0.0], [0.0, 1.0]]),
        ([0.0, 0.0], [[np.inf, 0.0], [0.0, 1.0]]),
        ([np.nan, 0.0], [[1.0, 0.0], [0.0, 1.0]]),
    ],
)
def test_there_is_none_without_a_shape(center, root) -> None:
    assert head_ellipse(np.array(center), np.array(root), 0.5) is None


def test_a_stripe_is_infinitely_long_in_its_direction_alone() -> None:
    found = head_ellipse(np.zeros(2), np.diag([0.0, 1.0]), 1 - math.exp(-0.5))
    assert found.semi_axes.tolist() == [1.0, np.inf]
    assert found.half_extents.tolist() == [np.inf, 1.0]
