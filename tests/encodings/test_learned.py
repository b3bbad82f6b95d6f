import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal
from hypothesis import given
from hypothesis import strategies as st
from strategies import seeds, small_integers
from token_grids import GRIDS, compiled_scores, slow_shift_scores

from convattn.encodings.learned import LearnedEncoding, initial_learned_encoding
from convattn.operators.shifts import TokenGrid

HEADS = 3
FEATURES = (2, 3)  # each axis has its own number


def encoding_of(grid, seed):
    generator = np.random.default_rng(seed)
    widths = FEATURES[: len(grid.keys)]
    tables = [
        small_integers(generator, 2 * n - 1, width)
        for n, width in zip(grid.keys, widths, strict=True)
    ]
    query = small_integers(generator, HEADS, sum(widths))
    return LearnedEncoding(jnp.asarray(query), tuple(map(jnp.asarray, tables))), query, tables


@given(st.sampled_from(GRIDS), seeds())
def test_scores_are_the_query_with_the_vectors_of_the_shifts_side_by_side(grid, seed):
    encoding, query, tables = encoding_of(grid, seed)

    def score(head, shift):
        centres = [len(table) // 2 for table in tables]
        rows = [t[c + d] for t, c, d in zip(tables, centres, shift, strict=True)]
        return query[head] @ np.concatenate(rows)

    assert_equal(compiled_scores(encoding, grid), slow_shift_scores(grid, HEADS, score))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("queries", "ring", "axis"), [((5, 5), 0, 0), ((4, 6), 0, 1), ((4, 3), 1, 0), ((2, 5), 1, 1)]
)
def test_larger_images_are_refused_and_the_ring_counts(queries, ring, axis):
    encoding, _, _ = encoding_of(TokenGrid((4, 5), ((0, 0), (0, 0))), 0)
    with pytest.raises(ValueError, match=f"axis {axis} of the image has shifts up to"):
        encoding.positional_scores(TokenGrid(queries, ((ring, ring),) * 2))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_initial_encoding_fits_its_images_and_no_larger_ones(dtype):
    encoding = initial_learned_encoding(jax.random.key(0), 9, (4, 5), 8, jnp.dtype(dtype))
    assert encoding.query.shape == (9, 16)
    assert [table.shape for table in encoding.tables] == [(7, 8), (9, 8)]
    for leaf in jax.tree.leaves(encoding):
        assert_dtype(leaf, dtype)
        assert np.unique(np.asarray(leaf, np.float64)).size > 1
    grid = TokenGrid((4, 5), ((0, 0), (0, 0)))
    assert encoding.positional_scores(grid).shape == (9, 20, 20)
    with pytest.raises(ValueError, match="create the encoding for larger images"):
        encoding.positional_scores(TokenGrid((5, 4), ((0, 0), (0, 0))))
