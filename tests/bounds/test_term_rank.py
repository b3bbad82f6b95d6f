"""The term rank, against SciPy's matching, another algorithm, and ranks of random matrices."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from convattn.bounds.flattened_kernel import exact_rank
from convattn.bounds.term_rank import term_rank

PATTERNS = st.integers(1, 7).flatmap(
    lambda rows: st.lists(st.sets(st.integers(0, rows - 1)).map(sorted), min_size=1, max_size=9)
)


def pattern_matrix(neighbours, copies):
    rows = max((row for line in neighbours for row in line), default=0) + 1
    matrix = np.zeros((rows, len(neighbours)), int)
    for column, line in enumerate(neighbours):
        matrix[line, column] = 1
    return np.tile(matrix, (copies, 1))


@given(PATTERNS, st.integers(1, 3))
def test_it_is_the_largest_matching(neighbours, copies):
    matched = maximum_bipartite_matching(csr_array(pattern_matrix(neighbours, copies)))
    assert term_rank(neighbours, copies) == np.count_nonzero(matched >= 0)


@given(PATTERNS, st.integers(1, 3), st.integers(0, 9))
def test_random_matrices_with_these_zeros_have_it(neighbours, copies, seed):
    pattern = pattern_matrix(neighbours, copies)
    numbers = np.random.default_rng(seed).integers(1, 10**12, pattern.shape)
    assert exact_rank(pattern * numbers) == term_rank(neighbours, copies)


@pytest.mark.parametrize("length", [1, 2, 50, 3000])
def test_long_augmenting_paths(length):
    """Column c has the rows c and c + 1 but the last, which has row 0 alone: all have to move."""
    chain = [[c, c + 1] for c in range(length)] + [[0]]
    assert term_rank(chain) == length + 1
    assert term_rank([*chain, [0]]) == length + 1


def test_a_column_that_has_moved_gives_no_row_back():
    """The first leaves row 0 for row 1 when the second comes; for the third there is none."""
    assert term_rank([[0, 1, 2], [0], [0]]) == 2
    assert term_rank([[0, 1, 2], [0], [0], [0]], copies=2) == 3
