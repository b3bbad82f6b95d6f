"""The enclosure of a layer's distance: the documented errors, no more and no less."""

from fractions import Fraction
from math import prod

import numpy as np
import pytest
from roundings import gamma

from convattn.bounds.layer_distance import squared_distance

UNIT = Fraction(1, 2**53)
INFLATION = 1 + Fraction(1, 2**20)
STEP = 2.0**-1074  # between the smallest numbers of float64


def enclosure(weights, blocks, maps, entries):
    """The documented bounds in fractions, where all entries of a map are the same number.

    So many entries has each of them; the weights of a head are over its Z_h, 1 and their sum.
    """
    heads, offsets = len(weights), len(maps)
    sums = [1 + sum(row) for row in weights]
    error = gamma(heads + offsets + 6, UNIT) * INFLATION
    put = [[Fraction(row[at], z) for row, z in zip(weights, sums, strict=True)]
           for at in range(offsets)]  # fmt: skip
    gaps = [sum(s * v for s, v in zip(row, blocks, strict=True)) - m
            for row, m in zip(put, maps, strict=True)]  # fmt: skip
    errors = [error * (sum(s * abs(v) for s, v in zip(row, blocks, strict=True)) + abs(m))
              for row, m in zip(put, maps, strict=True)]  # fmt: skip
    rest = sum(Fraction(v, z) for v, z in zip(blocks, sums, strict=True))
    rest_error = error * sum(Fraction(abs(v), z) for v, z in zip(blocks, sums, strict=True))

    gap = sum(gaps)
    gap_error = sum(errors) + gamma(offsets, UNIT) * sum(map(abs, gaps))
    product = (abs(gap) + gap_error) * (abs(rest) + rest_error)
    cross = 2 * gap * rest * entries
    doubt = 2 * (product - abs(gap * rest)) * INFLATION * entries
    doubt += 4 * gamma(entries + 3, UNIT) * product * entries
    one, all_of_them = gamma(entries + 3, UNIT), gamma(entries * offsets + 3, UNIT)
    high = sum((abs(g) + e) ** 2 for g, e in zip(gaps, errors, strict=True))
    low = sum(max(0, abs(g) - e) ** 2 for g, e in zip(gaps, errors, strict=True))
    high, low = high * entries * (1 + all_of_them), low * entries * (1 - all_of_them)
    most = cross + doubt + (abs(rest) + rest_error) ** 2 * entries * (1 + one)
    least = cross - doubt + max(0, abs(rest) - rest_error) ** 2 * entries * (1 - one)
    slack = Fraction(1, 2**50) * (low + abs(least))
    return (
        max(0, low + min(0, least) / Fraction(offsets) - slack),
        (high + max(0, most) / Fraction(offsets)) * (1 + Fraction(1, 2**50)),
    )


WIDE = (300, 400)  # so many entries that the rounding of their sum shows


@pytest.mark.parametrize(
    ("weights", "blocks", "maps", "shape"),
    [
        # nothing is left but the errors: two heads with maps that cancel, D = R = 0
        ([[1, 2, 0], [0, 1, 2]], [4, -4], [1, 1, -2], (1, 2)),
        # R adds to what is missing: D = 1/2 at both offsets, R = 1
        ([[1, 2]], [4], [Fraction(1, 2), Fraction(3, 2)], WIDE),
        # and takes from it: D = 1/2 and -2, R = 1
        ([[1, 2]], [4], [Fraction(1, 2), 4], WIDE),
        # a small D beside a large R, the distance being that of many keys
        ([[1]], [2], [1 - Fraction(1, 2**20)], (1, 1)),
        # and as far, the other way: R = -1
        ([[1]], [-2], [-1 - Fraction(1, 2**20)], (2, 1)),
        ([[3], [1]], [4, 2], [5], (3, 2)),
    ],
)
def test_the_documented_errors_are_added(weights, blocks, maps, shape):
    """Entries are exact in float64, so that only the bounds' own rounding is left.

    It is below 2⁻⁴⁰: fewer than a hundred roundings, in sums of up to 2¹⁸ numbers by pairs.
    """
    enclosed = squared_distance(
        np.array(weights, float),
        np.array([np.full(shape, float(v)) for v in blocks]),
        np.array([np.full(shape, float(m)) for m in maps]),
    )
    lower, upper = enclosure(weights, blocks, maps, prod(shape))
    assert enclosed.lower == pytest.approx(float(lower), rel=2.0**-40, abs=0)
    assert enclosed.upper == pytest.approx(float(upper), rel=2.0**-40, abs=0)


def test_products_that_underflow_are_allowed_for():
    """One head without a leak that shows, exact in the first entry and nothing in the second.

    There D² = (2⁻⁵³¹)² is 4096 of the smallest steps. It may be off by two, and the products of D
    and R by 16 in each entry.
    """
    blocks, maps = np.array([[[2.0**-100, 0.0]]]), np.array([[[2.0**-100, 2.0**-531]]])
    enclosed = squared_distance(np.full((1, 1), 2.0**1000), blocks, maps)
    assert enclosed.lower == (4096 - 2 - 2 * 16) * STEP


@pytest.mark.parametrize(
    ("block", "entry", "refusal"),
    [
        (2.0**200, 1.0, ""),
        (2.0**200 * (1 + 2.0**-52), 1.0, r"kernel and of the layer's maps is .* 2\*\*200"),
        (1.0, 2.0**150, ""),
        (1.0, 2.0**150 * (1 + 2.0**-52), r"of kernel is .* 2\*\*150"),
        (1.0, 2.0**-150, ""),
        (1.0, 2.0**-150 * (1 - 2.0**-53), r"of kernel is .* 2\*\*150"),
        (0.0, 0.0, ""),
        (2.0**-151, 0.0, "kernel and of the layer's maps"),
    ],
)
def test_the_range_of_the_entries(block, entry, refusal):
    arrays = np.ones((1, 1)), np.full((1, 1, 1), -block), np.full((1, 1, 1), entry)
    if refusal:
        with pytest.raises(ValueError, match=f"the largest entry .*{refusal}"):
            squared_distance(*arrays)
        return
    gap, rest = -Fraction(block) / 2 - Fraction(entry), -Fraction(block) / 2
    enclosed = squared_distance(*arrays)
    assert Fraction(enclosed.lower) <= (gap + rest) ** 2 <= Fraction(enclosed.upper)
