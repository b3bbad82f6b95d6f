from itertools import product
from math import ceil, prod

import certificate_builder as build
import pytest
from hypothesis import given
from hypothesis import strategies as st

from convattn_check.convolution import ABSENT, Axis, kernel_entry, response_to_ones

sizes = st.integers(1, 12), st.integers(1, 8), st.integers(1, 6)


@given(*sizes, st.data())
def test_offsets_and_pattern_are_what_a_walk_over_the_pixels_finds(kernel, patch, dilation, data):
    skip = data.draw(st.sampled_from([s for s in range(1, patch + 1) if patch % s == 0]))
    axis = Axis(kernel, patch, dilation, skip)
    assert axis.offsets() == build.axis_offsets(kernel, patch, dilation, skip)
    assert axis.pattern() == build.axis_pattern(kernel, patch, dilation, skip)
    taps = [tap for rows in axis.pattern() for row in rows for tap in row if tap != ABSENT]
    assert sorted(taps) == sorted(list(range(kernel)) * (patch // skip))


@pytest.mark.parametrize("kernel", range(1, 16))
@pytest.mark.parametrize("patch", range(1, 8))
def test_the_papers_counts_of_heads_follow(kernel, patch):
    """So claims.py need not demand them."""
    offsets = Axis(kernel, patch).offsets()
    if patch == 1:
        assert len(offsets) == kernel
    if kernel % 2:
        m = ceil((kernel - 1) / (2 * patch))
        assert offsets == list(range(-m, m + 1))
        assert (len(offsets) == 3) == (3 <= kernel <= 2 * patch + 1)
    assert offsets[0] <= 0 <= offsets[-1]


@given(
    st.lists(st.sampled_from([1, 2, 3, 5]), min_size=1, max_size=2),
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(1, 2),
)
def test_the_entries_of_the_flattened_kernel(kernel, patch, inputs, outputs):
    axes = [Axis(k, patch) for k in kernel]
    count = len(axes)
    table, flat = {}, list(range(100, 100 + prod(kernel) * inputs * outputs))
    for value, index in zip(
        flat, product(*(range(k) for k in kernel), range(inputs), range(outputs)), strict=True
    ):
        taps = tuple(i - (k - 1) // 2 for i, k in zip(index, kernel, strict=False))
        table[(*taps, *index[count:])] = value
    pixels = list(product(range(patch), repeat=2 * count))
    for pixel in pixels[:: max(1, len(pixels) // 7)]:
        for offset in product(range(-2, 3), repeat=count):
            place = [patch * offset[a] + pixel[count + a] - pixel[a] for a in range(count)]
            row = (*pixel, inputs - 1, outputs - 1)
            expected = table.get((*place, inputs - 1, outputs - 1), 0)
            assert kernel_entry(axes, flat, outputs, row, offset) == expected


def test_the_response_to_ones_counts_the_pixels_inside():
    axes = [Axis(3, 2), Axis(4, 1)]
    kernel = list(range(1, 13))
    response = response_to_ones(axes, kernel, (4, 5), (1, 4))
    by_hand = []
    for p in (0, 1):
        total = 0
        for value, (a, b) in zip(kernel, product((-1, 0, 1), (-1, 0, 1, 2)), strict=True):
            total += value if 0 <= 2 + p + a < 4 and 0 <= 4 + b < 5 else 0
        by_hand.append(total)
    assert response == by_hand
    assert response[0] != response[1]
