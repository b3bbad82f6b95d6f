"""The blocks of an axis are F itself, rows and columns sorted by residue."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from convattn.bounds.flattened_kernel import exact_rank, flattened_kernel
from convattn.bounds.residue_blocks import axis_blocks

SIZES = st.tuples(st.integers(1, 9), st.integers(1, 6), st.integers(1, 7))


@given(SIZES)
def test_rows_and_columns_are_not_empty_and_rows_follow_one_another(size):
    for block in axis_blocks(*size):
        assert block.rows
        assert block.columns
        met = {(u, e) for u in block.rows for e in block.columns if block.tap(u, e) is not None}
        assert {u for u, _ in met} == {*block.rows}
        assert {e for _, e in met} == {*block.columns}
        assert len({*block.rows}) == len(block.rows) <= 2 * block.patch_size - 1
        assert block.window == 2 * block.patch_size - 1


def test_a_class_without_a_tap_is_left_out():
    """K = 1, P = 2, d = 3: the differences -1 and 1 of two pixels have the residues 2 and 1.

    There t = 2ε + 1 is odd, but the only tap is 0.
    """
    (block,) = axis_blocks(1, 2, 3)
    assert (block.rows, block.columns, block.complete) == ((0,), (0,), False)
    assert (block.patch_size, block.taps, block.window) == (2, range(1), 3)
    (block,) = axis_blocks(3, 2, 1)
    assert (block.rows, block.columns, block.complete) == ((-1, 0, 1), (-1, 0, 1), True)


@pytest.mark.parametrize("size", [(5, 2, 1), (5, 3, 2), (4, 4, 6), (7, 6, 4), (3, 2, 5)])
def test_the_ranks_of_the_blocks_add_up_to_that_of_the_definition(size):
    kernel_size, patch_size, dilation = size
    kernel = np.random.default_rng(0).integers(1, 100, kernel_size)
    rank = exact_rank(flattened_kernel(kernel[:, None, None], patch_size, dilation=dilation))
    ranks = [
        exact_rank(
            [
                [0 if (tap := block.tap(u, e)) is None else int(kernel[tap]) for e in block.columns]
                for u in block.rows
            ]
        )
        for block in axis_blocks(*size)
    ]
    assert sum(ranks) == rank
