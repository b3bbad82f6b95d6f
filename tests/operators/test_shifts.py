"""The one sign convention: taps, token offsets and grids, each against a count by hand."""

from itertools import product

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal
from hypothesis import given
from jax import lax

from convattn.operators.shifts import (
    TokenGrid,
    axis_taps,
    axis_token_offsets,
    kernel_shifts,
)

SIZES = st.integers(1, 9)
RINGS = st.tuples(st.integers(0, 1), st.integers(0, 2))
GRIDS = st.lists(st.tuples(st.integers(1, 4), RINGS), min_size=1, max_size=3).map(
    lambda axes: TokenGrid(tuple(n for n, _ in axes), tuple(ring for _, ring in axes))
)
# Few, as JAX compiles for every shape.
SOME_GRIDS = (
    TokenGrid((1,), ((0, 0),)),
    TokenGrid((5,), ((1, 2),)),
    TokenGrid((2, 3), ((0, 0), (0, 0))),
    TokenGrid((3, 2), ((1, 0), (2, 3))),
    TokenGrid((2, 1, 3), ((0, 1), (1, 1), (0, 2))),
)


@given(SIZES)
def test_taps_are_as_many_as_the_kernel_is_long_and_centred(size):
    taps = axis_taps(size)
    assert len(taps) == size
    assert 0 in taps
    assert taps[0] + taps[-1] == (0 if size % 2 else 1)


@given(SIZES, st.integers(1, 4))
def test_taps_are_those_of_xla_same_padding(size, dilation):
    taps = axis_taps(size)
    extent = dilation * (size - 1) + 1
    (padding,) = lax.padtype_to_pads((12,), (extent,), (1,), "SAME")
    reach = (-dilation * taps[0], dilation * taps[-1])
    assert sum(reach) == sum(padding)
    if size % 2 or dilation == 1:
        assert reach == tuple(padding)
        assert size % 2 or reach[::-1] != tuple(padding)  # a mirrored tap would be noticed


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 3)), min_size=1, max_size=3))
def test_shifts_stand_in_the_order_of_the_flattened_kernel(axes):
    sizes, dilations = [k for k, _ in axes], [d for _, d in axes]
    shifts = kernel_shifts(sizes, dilations)
    flat = np.arange(np.prod(sizes)).reshape(sizes)
    for tap in product(*(range(k) for k in sizes)):
        expected = tuple(d * axis_taps(k)[t] for t, k, d in zip(tap, sizes, dilations, strict=True))
        assert shifts[flat[tap]] == expected


@given(SIZES, st.integers(1, 5), st.integers(1, 4))
def test_token_offsets_are_the_patches_that_hold_a_pixel_that_is_read(size, patch, dilation):
    read = set()
    home = 100  # a patch far enough from the border
    for pixel in range(home * patch, (home + 1) * patch):
        for tap in axis_taps(size):
            read.add((pixel + dilation * tap) // patch - home)
    assert axis_token_offsets(size, patch, dilation) == tuple(sorted(read))


@given(st.sampled_from([1, 3, 5, 7, 9]), st.integers(1, 6))
def test_without_dilation_the_offsets_reach_m_of_the_paper(size, patch):
    m = -(-(size - 1) // (2 * patch))
    assert axis_token_offsets(size, patch, 1) == tuple(range(-m, m + 1))


@pytest.mark.parametrize("grid", SOME_GRIDS)
@pytest.mark.quick(2)
def test_shifts_are_key_minus_query(grid):
    index = np.asarray(grid.shift_index())
    keys, queries = grid.key_positions, grid.query_positions
    assert_equal(grid.shifts[index], keys[None] - queries[:, None], "shifts")
    if keys.shape[0] > 1:  # the opposite sign would be noticed
        assert (grid.shifts[index] != queries[:, None] - keys[None]).any()


@given(GRIDS)
def test_queries_are_the_keys_inside_the_ring(grid):
    number = np.arange(grid.number_of_keys).reshape(grid.keys)
    inside = number[
        tuple(slice(b, b + n) for n, (b, _) in zip(grid.queries, grid.ring, strict=True))
    ]
    positions = np.ravel_multi_index(tuple(grid.query_positions.T), grid.keys)
    assert_equal(positions, inside.reshape(-1), "query_positions")


def test_a_grid_is_hashable_and_its_index_traces():
    grid = TokenGrid((2, 3), ((1, 0), (0, 2)))
    assert hash(grid) == hash(TokenGrid((2, 3), ((1, 0), (0, 2))))
    table = jnp.arange(len(grid.shifts))
    traced = jax.jit(lambda t: t[grid.shift_index()])(table)
    assert_equal(traced, grid.shift_index())


def test_a_causal_grid_shows_the_first_keys():
    grid = TokenGrid((4,), ((2, 1),), ahead=1)
    mask = [[key <= 2 + query + 1 for key in range(7)] for query in range(4)]
    assert grid.mask().tolist() == mask
    assert grid.visible_keys().tolist() == [4, 5, 6, 7]
    assert grid.mask(jnp.array([3, 0])).tolist() == [mask[3], mask[0]]
    longer = TokenGrid((9,), ((0, 0),), ahead=3)
    assert longer.visible_keys().tolist() == [*range(4, 9), 9, 9, 9, 9]
    assert TokenGrid((4,), ((2, 1),)).mask() is None
    assert TokenGrid((4,), ((2, 1),)).visible_keys() == 7
