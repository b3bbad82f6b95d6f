"""Minors of the flattened kernel: their entries, their determinants, what is refused."""

import flint
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ledger.certificates.verdicts import accepted, make

from convattn.bounds.flattened_kernel import exact_rank, flattened_kernel
from convattn_ledger.certificates.lower_bound import (
    _bound_body,
    box_bound_body,
    minor,
    pixel_bound_body,
)


def determinant(matrix):
    return int(flint.fmpz_mat(matrix).det())


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
    certificate = make("L21.theorem5", pixel_bound_body, side, wide, out)
    body = certificate["body"]
    count = min(side**2, wide * out)
    assert body["heads"] == len(body["rows"]) == len(body["columns"]) == count
    matrix = by_definition(kernel_of(body), 1, body["rows"], body["columns"])
    assert matrix == np.eye(count, dtype=int).tolist()
    assert body["determinant"] == determinant(matrix) == 1
    assert exact_rank(flattened_kernel(kernel_of(body), 1)) == count
    assert accepted(certificate)


@pytest.mark.parametrize(
    ("side", "patch"), [(3, 2), (3, 3), (3, 5), (3, 12), (5, 2), (7, 3), (9, 4), (33, 16)]
)
def test_the_box_within_a_kernel_needs_nine_heads(side, patch):
    """The minor is 1: on one axis it does not depend on P beyond P = 2."""
    certificate = make("L21.theorem6", box_bound_body, side, patch)
    body = certificate["body"]
    kernel = kernel_of(body)
    assert kernel.shape == (side, side, 1, 1)
    assert kernel.sum() == 9
    matrix = by_definition(kernel, patch, body["rows"], body["columns"])
    assert body["determinant"] == determinant(matrix) == 1
    assert body["tokens_per_side"] == [2, 2]
    assert accepted(certificate)


def test_beyond_the_range_of_corollary_4_the_checker_says_no():
    assert not accepted(make("L21.theorem6", box_bound_body, 7, 2))


def test_a_singular_minor_is_refused():
    kernel = np.zeros((3, 3, 1, 1), int)
    rows, columns = [[0, 0, 0, 0, 0, 0]], [[0, 0]]
    with pytest.raises(ValueError, match=r"the minor on rows .* is singular"):
        _bound_body(kernel, 1, rows, columns)
    twice = np.ones((3, 3, 1, 1), int)
    with pytest.raises(ValueError, match="is singular"):
        _bound_body(twice, 1, rows * 2, [[0, 0], [0, 1]])
