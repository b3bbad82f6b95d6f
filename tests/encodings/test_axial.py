"""Absolute rows and columns: the absolute encoding with block-diagonal maps."""

import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal, assert_within
from hypothesis import given
from hypothesis import strategies as st
from roundings import gamma, roundoff
from strategies import seeds, small_integers
from token_grids import GRIDS, IMAGES, compiled_scores, slow_scores

from convattn.encodings import AbsoluteEncoding, AxialEncoding
from convattn.encodings.absolute import sinusoidal_positions
from convattn.operators.shifts import TokenGrid

HEADS, FEATURES, WIDTHS = 3, (2, 4), (3, 2)
MOST = (6, 9)  # positions of the learned tables, more than GRIDS have keys


def integers(generator, *shape):
    return jnp.asarray(small_integers(generator, *shape), float)


def learned(axes, seed):
    generator = np.random.default_rng(seed)
    sizes = list(zip(FEATURES, WIDTHS, strict=True))[2 - axes :]
    maps = [tuple(integers(generator, HEADS, *size) for size in sizes) for _ in range(2)]
    places = zip(MOST[2 - axes :], sizes, strict=True)
    return AxialEncoding(*maps, tuple(integers(generator, most, size[0]) for most, size in places))


@given(st.sampled_from(GRIDS), seeds())
def test_scores_are_a_sum_of_products_of_projected_positions(grid, seed):
    encoding = learned(len(grid.queries), seed)
    arrays = [[np.asarray(a) for a in part] for part in (encoding.query, encoding.key)]
    tables = [np.asarray(table) for table in encoding.tables]

    def score(head, query, key):
        axes = enumerate(zip(*arrays, tables, strict=True))
        return sum(t[query[a]] @ q[head] @ k[head].T @ t[key[a]] for a, (q, k, t) in axes)

    assert_equal(compiled_scores(encoding, grid), slow_scores(grid, HEADS, score))


def block_diagonal(blocks):
    rows, columns = np.sum([block.shape[1:] for block in blocks], axis=0)
    result = np.zeros((HEADS, rows, columns))
    row = column = 0
    for block in blocks:
        height, width = block.shape[1:]
        result[:, row : row + height, column : column + width] = block
        row, column = row + height, column + width
    return result


def absolute(encoding, cross=0):
    """The absolute encoding with these blocks; `cross` is put into one entry beside them."""
    query, key = block_diagonal(encoding.query), block_diagonal(encoding.key)
    query[:, 0, -1] = cross
    rows, columns = (np.asarray(table) for table in encoding.tables)
    height, width = len(rows), len(columns)
    table = np.concatenate(
        [
            np.broadcast_to(rows[:, None], (height, width, rows.shape[1])),
            np.broadcast_to(columns[None], (height, width, columns.shape[1])),
        ],
        axis=-1,
    )
    return AbsoluteEncoding(jnp.asarray(query), jnp.asarray(key), jnp.asarray(table))


@pytest.mark.slow
def test_with_cross_terms_every_query_has_factors_of_its_own():
    """Each row of scores still is a sum u(k_1) + v(k_2), but v then depends on q_1 as well."""
    grid = TokenGrid((3, 4), ((0, 0), (0, 0)))
    encoding = learned(2, 0)

    def by_place(scores):
        return np.asarray(scores).reshape(HEADS, *grid.queries, *grid.keys)

    axial = by_place(encoding.positional_scores(grid))
    crossed = by_place(absolute(encoding, cross=1).positional_scores(grid))
    for scores in (axial, crossed):
        assert not np.diff(np.diff(scores, axis=3), axis=4).any()
    column_steps = np.diff(axial, axis=4)
    assert_equal(column_steps, np.broadcast_to(column_steps[:, :1, :, :1], column_steps.shape))
    assert np.diff(np.diff(crossed, axis=4), axis=1).any()


@pytest.mark.slow
def test_sinusoids_are_those_of_the_absolute_encoding():
    """Each is a sum of 64 products below 1, through at most 16 roundings; terms of 0 add none."""
    generator = np.random.default_rng(3)
    maps = [tuple(jnp.asarray(generator.uniform(-1, 1, (HEADS, 4, 2))) for _ in "12") for _ in "qk"]
    encoding = AxialEncoding(*maps)
    dense = AbsoluteEncoding(*(jnp.asarray(block_diagonal(part)) for part in maps))
    for grid in IMAGES:
        bound = 2 * gamma(16, roundoff("float64")) * 64
        assert_within(compiled_scores(encoding, grid), compiled_scores(dense, grid), bound)
    positions = sinusoidal_positions(np.arange(7)[:, None], 4)
    assert_equal(encoding.positions(IMAGES[0], 1), positions)


@pytest.mark.slow
def test_a_table_smaller_than_the_grid_is_refused():
    encoding = learned(2, 1)
    encoding.positional_scores(TokenGrid((4, 9), ((1, 1), (0, 0))))
    with pytest.raises(ValueError, match=r"axis 0 has 6 positions, but the grid, .* has 7"):
        encoding.positional_scores(TokenGrid((5, 9), ((1, 1), (0, 0))))
