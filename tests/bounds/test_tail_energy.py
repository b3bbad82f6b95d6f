"""Lower bounds on the tails of the flattened kernel: their own rounding, where G is diagonal."""

import math

import numpy as np
import pytest
from bounds.rounding_formula import INFLATION, RELATIVE
from roundings import gamma

from convattn.bounds import tail_energy
from convattn.bounds.tail_energy import nearly_diagonal, require_range, tail_energy_bounds

UNIT = 2.0**-53


def test_the_rounding_where_the_computed_vectors_are_unit_vectors():
    """G = diag(32, 150, 16) in five rows; its eigenvectors in rising order are e_3, e_1 and e_2.

    No number here is rounded, so that r and η are the bounds on what rounding could do: each entry
    of G by γ_(5+2), two products by γ_(2·3+2), and VᵀV - I by γ_(3+1) of VᵀV and of I.
    """
    rows = np.zeros((5, 3))
    rows[[0, 1, 2, 3], [0, 1, 1, 2]] = 4.0, 5.0, -5.0, 2.0
    counts = np.array([2, 1, 5, 4, 7])
    diagonal, rest, eta = nearly_diagonal(rows * counts[:, None], rows)
    assert diagonal.tolist() == [16.0, 32.0, 150.0]
    size = math.hypot(16, 32, 150)
    assert rest == pytest.approx(
        (gamma(7, UNIT) * INFLATION + gamma(8, UNIT)) * size, rel=RELATIVE, abs=0
    )
    assert eta == pytest.approx(gamma(4, UNIT) * 2 * math.sqrt(3) * INFLATION, rel=RELATIVE, abs=0)
    least = [(value - rest * INFLATION) / (1 + eta) for value in (16.0, 32.0, 150.0)]
    tails = np.array([sum(least), sum(least[:2]), least[0], 0.0]) * (1 - gamma(3 + 6, UNIT))
    assert np.abs(tail_energy_bounds(rows, counts) - tails).max() <= 4 * UNIT * tails[0]


def test_far_from_diagonal_the_rest_is_inflated(monkeypatch):
    """D = (1, 4), r = 1/2 and η = 1/4: what cannot be seen where r is a few roundings."""
    parts = np.array([1.0, 4.0]), 0.5, 0.25
    monkeypatch.setattr(tail_energy, "nearly_diagonal", lambda *_: parts)
    low, high = ((value - 0.5 * INFLATION) / 1.25 for value in (1.0, 4.0))
    tails = np.array([low + high, low, 0.0]) * (1 - gamma(2 + 6, UNIT))
    bounds = tail_energy_bounds(np.eye(2), np.array([1, 1]))
    assert np.abs(bounds - tails).max() <= 4 * UNIT * tails[0]


@pytest.mark.parametrize("size", [2.0**-151, 2.0**151])
def test_rows_out_of_range_are_refused(size):
    with pytest.raises(ValueError, match="the largest entry of kernel"):
        tail_energy_bounds(np.array([[size, 0.0]]), np.array([1]))


@pytest.mark.parametrize("size", [2.0**-150, 1.0, 2.0**150])
def test_rows_in_range_are_taken(size):
    bounds = tail_energy_bounds(np.array([[size, 0.0]]), np.array([1]))
    assert bounds[1:].tolist() == [0.0, 0.0]
    assert bounds[0] == pytest.approx(size**2, rel=1e-14, abs=0)


def test_the_range_has_both_its_ends():
    assert tail_energy_bounds(np.zeros((1, 1)), np.array([1])).tolist() == [0.0, 0.0]
    require_range(2.0**200, 200)
    for size, limit in ((2.0**-150 * (1 - UNIT), 0), (2.0**150 * (1 + 2 * UNIT), 150)):
        with pytest.raises(ValueError, match=rf"of a map is .* 2\*\*-150 and 2\*\*{limit}: powers"):
            require_range(size, limit, "a map")
