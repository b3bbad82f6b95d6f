"""Tokens in integers, against `convattn.operators.patches` and against the definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import seeds

from convattn.operators.patches import patchify
from convattn_ledger.evidence.exact_tokens import cut_tokens, join_tokens, tokens_at

sides = st.integers(1, 4)


@pytest.mark.slow
@given(seeds(), sides, sides, st.integers(1, 3), st.integers(1, 3))
def test_cutting_agrees_with_the_library_and_is_undone(seed, rows, columns, patch, channels):
    images = np.random.default_rng(seed).integers(
        0, 256, (2, rows * patch, columns * patch, channels)
    )
    tokens = cut_tokens(images, patch)
    assert tokens.shape == (2, rows, columns, patch**2 * channels)
    assert np.array_equal(tokens, np.asarray(patchify(images, (patch, patch))))
    assert np.array_equal(join_tokens(tokens, patch), images)


def test_patches_must_divide_the_image():
    with pytest.raises(ValueError, match="size 2 should divide the sides"):
        cut_tokens(np.zeros((1, 4, 3, 1), int), 2)


@given(seeds(), sides, sides, st.tuples(st.integers(-5, 5), st.integers(-5, 5)))
def test_a_token_is_read_where_it_stands(seed, rows, columns, offset):
    tokens = np.random.default_rng(seed).integers(1, 99, (2, rows, columns, 3))
    outside = -np.arange(1, 7).reshape(2, 1, 1, 3)
    shifted = tokens_at(tokens, offset, outside)
    for row in range(rows):
        for column in range(columns):
            there = row + offset[0], column + offset[1]
            inside = 0 <= there[0] < rows and 0 <= there[1] < columns
            expected = tokens[:, there[0], there[1]] if inside else outside[:, 0, 0]
            assert np.array_equal(shifted[:, row, column], expected)


def test_without_more_said_the_outside_is_zero():
    tokens = np.ones((1, 2, 2, 1), int)
    assert tokens_at(tokens, (1, 0)).ravel().tolist() == [1, 1, 0, 0]
    assert tokens_at(tokens, (0, 2)).ravel().tolist() == [0, 0, 0, 0]
