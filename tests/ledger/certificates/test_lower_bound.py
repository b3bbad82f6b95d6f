"""Minors of the flattened kernel: their entries, their determinants, what is refused."""

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from convattn.bounds.flattened_kernel import exact_rank, flattened_kernel
from convattn_check import check
from convattn_ledger.certificates.canonical import canonical
from convattn_ledger.certificates.catalogue import make_certificate
from convattn_ledger.certificates.lower_bound import (
    _bound_body,
    box_bound_body,
    minor,
    pixel_bound_body,
)


def determinant(matrix):
    """By elimination in fractions, with a sign for every exchange of rows."""
    rows = [[Fraction(entry) for entry in row] for row in matrix]
    result = Fraction(1)
    for column in range(len(rows)):
        pivot = next((r for r in range(column, len(rows)) if rows[r][column]), None)
        if pivot is None:
            return 0
        if pivot != column:
            rows[pivot], rows[column] = rows[column], rows[pivot]
            result = -result
        result *= rows[column][column]
        for lower in range(column + 1, len(rows)):
            factor = rows[lower][column] / rows[column][column]
            rows[lower] = [a - factor * b for a, b in zip(rows[lower], rows[column], strict=True)]
    return result


def test_the_determinant_of_the_tests_is_leibniz():
    matrix = [[0, 2, -1], [3, 0, 5], [1, 1, 1]]
    total = 0
    for order in permutations(range(3)):
        sign = np.linalg.det(np.eye(3)[list(order)])
        total += round(sign) * matrix[0][order[0]] * matrix[1][order[1]] * matrix[2][order[2]]
    assert determinant(matrix) == total == 4 - 6 + 3


def kernel_of(body):
    shape = (*body["kernel_size"], body["in_channels"], body["out_channels"])
    return np.array(body["kernel"]).reshape(shape)


def by_definition(kernel, patch, rows, columns):
    """W_(Pδ + q - p)[i, j], or zero where that is no tap."""
    size = kernel.shape[0]
    entries = []
    for p1, p2, q1, q2, i, j in rows:
        line = []
        for d1, d2 in columns:
            t1, t2 = (
                patch * d + q - p + (size - 1) // 2 for d, p, q in ((d1, p1, q1), (d2, p2, q2))
            )
            inside = 0 <= t1 < size and 0 <= t2 < size
            line.append(int(kernel[t1, t2, i, j]) if inside else 0)
        entries.append(line)
    return entries


@given(st.integers(0, 2**32 - 1), st.sampled_from([(3, 1), (3, 2), (5, 2), (7, 3), (1, 2)]))
def test_entries_are_those_of_the_definition(seed, size):
    side, patch = size
    rng = np.random.default_rng(seed)
    kernel = rng.integers(-9, 10, (side, side, 2, 3))
    reach = -(-(side - 1) // (2 * patch))
    columns = rng.integers(-reach, reach + 1, (6, 2)).tolist()
    pixels = rng.integers(0, patch, (7, 4)).tolist()
    rows = [[*place, int(rng.integers(2)), int(rng.integers(3))] for place in pixels]
    assert minor(kernel, patch, rows, columns) == by_definition(kernel, patch, rows, columns)


@pytest.mark.parametrize(
    ("side", "wide", "out"), [(3, 9, 1), (3, 3, 1), (3, 3, 3), (5, 25, 1), (3, 2, 6)]
)
def test_pixels_need_as_many_heads_as_channel_pairs_or_taps(side, wide, out):
    made = make_certificate("L21.theorem5", "A statement.", pixel_bound_body, side, wide, out)
    body = made["body"]
    count = min(side**2, wide * out)
    assert body["heads"] == len(body["rows"]) == len(body["columns"]) == count
    matrix = by_definition(kernel_of(body), 1, body["rows"], body["columns"])
    assert matrix == np.eye(count, dtype=int).tolist()
    assert body["determinant"] == determinant(matrix) == 1
    assert exact_rank(flattened_kernel(kernel_of(body), 1)) == count
    assert accepted(made)


@pytest.mark.parametrize("patch", range(2, 13))
def test_the_box_needs_nine_heads_on_every_patch(patch):
    """The minor is 1 for P = 2 to 12: on one axis it does not depend on P beyond P = 2."""
    made = make_certificate("L21.theorem6", "A statement.", box_bound_body, 3, patch)
    body = made["body"]
    matrix = by_definition(kernel_of(body), patch, body["rows"], body["columns"])
    assert body["determinant"] == determinant(matrix) == 1
    assert accepted(made)


@pytest.mark.parametrize(("side", "patch"), [(3, 2), (5, 2), (7, 3), (9, 4), (33, 16)])
def test_the_box_within_a_larger_kernel(side, patch):
    made = make_certificate("L21.theorem6", "A statement.", box_bound_body, side, patch)
    body = made["body"]
    kernel = kernel_of(body)
    assert kernel.shape == (side, side, 1, 1)
    assert kernel.sum() == 9
    assert determinant(by_definition(kernel, patch, body["rows"], body["columns"])) == 1
    assert body["tokens_per_side"] == [2, 2]
    assert accepted(made)


def accepted(made):
    return check(canonical(made) + "\n").accepted


def test_beyond_the_range_of_corollary_4_the_checker_says_no():
    assert not accepted(make_certificate("L21.theorem6", "A statement.", box_bound_body, 7, 2))


def test_a_singular_minor_is_refused():
    kernel = np.zeros((3, 3, 1, 1), int)
    rows, columns = [[0, 0, 0, 0, 0, 0]], [[0, 0]]
    with pytest.raises(ValueError, match=r"the minor on rows .* is singular"):
        _bound_body(kernel, 1, rows, columns)
    twice = np.ones((3, 3, 1, 1), int)
    with pytest.raises(ValueError, match="is singular"):
        _bound_body(twice, 1, rows * 2, [[0, 0], [0, 1]])
