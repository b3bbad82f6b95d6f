"""The generic rank, against the exact rank of random kernels by the definition."""

import numpy as np
import pytest

from convattn.bounds import generic_rank as module
from convattn.bounds.flattened_kernel import exact_rank, flattened_kernel
from convattn.bounds.generic_rank import MAX_ENTRIES, FixedKernel, TooLargeError, generic_rank
from convattn.bounds.residue_blocks import axis_blocks

# kernel size, patch size, dilation, in, out
SIZES = [
    ((3,), (1,), (1,), 1, 2),
    ((9,), (2,), (1,), 1, 1),
    ((9,), (2,), (1,), 2, 1),
    ((8,), (3,), (1,), 1, 1),
    ((5,), (3,), (2,), 1, 2),
    ((7,), (4,), (6,), 1, 1),
    ((3, 3), (1, 1), (1, 1), 2, 2),
    ((3, 3), (2, 2), (1, 1), 1, 1),
    ((4, 4), (3, 3), (1, 1), 1, 1),
    ((9, 9), (2, 2), (1, 1), 1, 1),
    ((9, 9), (2, 2), (1, 1), 1, 2),
    ((9, 9), (2, 2), (1, 1), 3, 1),
    ((7, 3), (1, 3), (1, 1), 1, 2),
    ((7, 3), (1, 4), (1, 1), 4, 1),
    ((3, 3), (2, 2), (2, 2), 1, 2),
    ((3, 4), (2, 3), (3, 2), 1, 1),
    ((5, 3), (3, 2), (2, 1), 2, 1),
    ((1, 5), (4, 2), (1, 1), 1, 1),
    ((2, 3), (1, 4), (1, 1), 1, 1),
    ((2, 3), (1, 4), (1, 1), 1, 2),
    ((7, 3), (1, 8), (1, 1), 3, 1),
]


def random_rank(kernel_size, patch_size, dilation, inputs, outputs):
    shape = (*kernel_size, inputs, outputs)
    kernel = np.random.default_rng(1).integers(-999, 1000, shape)
    return exact_rank(flattened_kernel(kernel, patch_size, dilation=dilation))


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.quick(7)
def test_random_kernels_have_the_rank(size):
    kernel_size, patch_size, dilation, inputs, outputs = size
    rank = generic_rank(kernel_size, patch_size, dilation, inputs * outputs)
    assert random_rank(*size) == rank.least == rank.most <= rank.offsets


def test_proofs_and_computations_agree(monkeypatch):
    """With every proof taken away, the computation says the same."""
    proved = {size: generic_rank(*size[:3], size[3] * size[4]) for size in SIZES}
    monkeypatch.setattr(module, "_is_proved", lambda *args: False)
    generic_rank.cache_clear()
    for size, rank in proved.items():
        again = generic_rank(*size[:3], size[3] * size[4])
        assert (again.least, again.most) == (rank.least, rank.most)
        assert not again.proved
    generic_rank.cache_clear()


@pytest.mark.parametrize(
    ("pairs", "proved"), [(1, True), (2, False), (3, False), (4, True), (25, True)]
)
def test_where_the_windows_settle_it(pairs, proved):
    """K = 7, P = 2: windows of 3 × 3 in 5 × 5 offsets; one fits, four cover. K = 9: tiles do."""
    rank = generic_rank((7, 7), (2, 2), (1, 1), pairs)
    assert (rank.least, rank.proved) == (min(25, 9 * pairs), proved)
    tiled = generic_rank((9, 9), (2, 2), (1, 1), pairs)
    assert (tiled.least, tiled.proved) == (min(25, 9 * pairs), True)


@pytest.mark.parametrize(
    ("sizes", "pairs", "least", "proved"),
    [
        # one row in each class, and a class of one offset
        (((3,), (2,), (3,)), 1, 3, True),
        # one class of one offset beside three offsets of pixels: these decide
        (((5, 1), (2, 2), (1, 3)), 1, 3, True),
        # the second axis has a class with two offsets as well, of which rows are missing
        (((5, 3), (2, 2), (1, 3)), 1, 9, False),
        # one axis alone is always settled, here between two windows and three, of three offsets
        (((7,), (2,), (1,)), 1, 3, True),
        (((11,), (2,), (1,)), 2, 6, True),
        (((13,), (2,), (1,)), 2, 6, True),
        # as are tiles, of one pair too
        (((9, 9), (2, 2), (1, 1)), 1, 9, True),
    ],
)
def test_what_is_proved(sizes, pairs, least, proved):
    """All blocks must be, or the rank of a fixed kernel is computed."""
    rank = generic_rank(*sizes, pairs)
    assert (rank.least, rank.most, rank.proved) == (least, least, proved)


def test_a_rank_is_tried_with_a_few_pairs_first():
    """Twice as many rows as columns, 6 pairs of 9 for 25: what is left of all numbers tells it."""
    block = (*axis_blocks(7, 2, 1), *axis_blocks(7, 2, 1))
    kernel = FixedKernel((7, 7))
    assert kernel.rank(block, 20) == 25
    assert kernel.left == MAX_ENTRIES - 6 * (9 * 25 + 49)


@pytest.mark.parametrize("size", [size for size in SIZES if size[0][0] < 9], ids=str)
def test_a_balanced_kernel_has_no_nonnegative_row(size):
    """Its rows have the sum zero, and it has a rank of at most one less than all offsets."""
    kernel_size, patch_size, dilation, inputs, outputs = size
    rank = generic_rank(kernel_size, patch_size, dilation, inputs * outputs)
    assert rank.balanced <= min(rank.least, rank.offsets - 1)
    assert not rank.balanced or not rank.one_hot


def test_the_balanced_kernel_is_one():
    periods = [2, 3]
    kernel = FixedKernel((5, 4), periods).pair(2)
    sums: dict[tuple[int, int], int] = {}
    for (a, b), weight in kernel.items():
        sums[a % 2, b % 3] = sums.get((a % 2, b % 3), 0) + weight
    assert set(sums.values()) == {0}
    assert len(sums) == 6
    weights = np.array([kernel[a, b] for a in range(5) for b in range(4)]).reshape(5, 4, 1, 1)
    assert not np.asarray(flattened_kernel(weights, (2, 3))).sum(axis=1).any()


def test_matrices_that_are_too_large_are_refused(monkeypatch):
    monkeypatch.setattr("convattn.bounds.generic_rank.MAX_ENTRIES", 100)
    block = (*axis_blocks(9, 2, 1), *axis_blocks(9, 2, 1))
    with pytest.raises(TooLargeError, match="more than 100 numbers; take a smaller kernel"):
        FixedKernel((9, 9)).rank(block, 2)
    generic_rank.cache_clear()
    with pytest.raises(ValueError, match="more than 100 numbers"):
        generic_rank((7, 7), (2, 2), (1, 1), 2)
    rank = generic_rank((7, 7), (2, 2), (1, 1), 1)  # proved; only the balanced kernel is left out
    assert (rank.least, rank.proved, rank.balanced) == (9, True, 0)
    generic_rank.cache_clear()
