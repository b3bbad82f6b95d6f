"""Centres on a grid: the same heads as with free centres, held and computed once."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal
from hypothesis import given
from hypothesis import strategies as st
from strategies import seeds, small_integers
from token_grids import GRIDS, compiled_scores, slow_shift_scores

from convattn.encodings import QuadraticEncoding, QuadraticGridEncoding, centers_on_grid

COUNTS, HEADS = (2, 4), 5
PAIRS = ((0, 3), (1, 0), (0, 0), (1, 2), (0, 3))  # static, so that each grid compiles once


def parts(axes, seed, same=False):
    """Half-integer centres and widths that are powers of two: nothing is rounded."""
    generator = np.random.default_rng(seed)
    counts = COUNTS[2 - axes :]
    alpha = [np.full(n, 4.0) if same else 2.0 ** generator.integers(-3, 8, n) for n in counts]
    centers = [small_integers(generator, n) / 2 for n in counts]
    pairs = tuple(pair[-axes:] for pair in PAIRS)
    return alpha, centers, pairs


def encoding_of(alpha, centers, pairs):
    return QuadraticGridEncoding(
        tuple(map(jnp.asarray, alpha)), tuple(map(jnp.asarray, centers)), pairs
    )


@given(st.sampled_from(GRIDS), seeds())
def test_scores_are_a_sum_of_alpha_times_the_squared_distance(grid, seed):
    alpha, centers, pairs = parts(len(grid.queries), seed)

    def score(head, shift):
        return -sum(
            alpha[axis][i] * (shift[axis] - centers[axis][i]) ** 2
            for axis, i in enumerate(pairs[head])
        )

    encoding = encoding_of(alpha, centers, pairs)
    assert_equal(compiled_scores(encoding, grid), slow_shift_scores(grid, HEADS, score))


@given(st.sampled_from((GRIDS[0], GRIDS[3])), seeds())
def test_with_one_alpha_it_is_the_quadratic_encoding_there_and_back(grid, seed):
    alpha, centers, pairs = parts(len(grid.queries), seed, same=True)
    encoding = encoding_of(alpha, centers, pairs)
    free = encoding.free()
    assert_equal(free.alpha, np.full(HEADS, 4.0))
    looks = [[centers[axis][i] for axis, i in enumerate(pair)] for pair in pairs]
    assert_equal(free.centers, looks)
    assert_equal(compiled_scores(encoding, grid), compiled_scores(free, grid))
    back = centers_on_grid(free)
    assert_equal(back.positional_scores(grid), compiled_scores(free, grid))
    for axis, column in enumerate(np.transpose(looks)):
        assert back.centers[axis].shape == (len(set(column.tolist())),)


def test_each_coordinate_is_held_once_in_order_of_appearance():
    centers = jnp.array([[1.0, 0.5], [-0.0, 0.5], [0.0, 3.0], [1.0, 0.5], [1.0, 3.0]])
    alpha = jnp.array([2.0, 2.0, 2.0, 8.0, 2.0])
    grid = centers_on_grid(QuadraticEncoding(alpha, centers))
    assert grid.pairs == ((0, 0), (1, 0), (1, 1), (2, 2), (0, 1))
    assert_equal(grid.centers[0], [1.0, 0.0, 1.0])
    assert_equal(grid.alpha[0], [2.0, 2.0, 8.0])
    assert_equal(grid.centers[1], [0.5, 3.0, 0.5])
    assert_equal(grid.alpha[1], [2.0, 2.0, 8.0])
    near = centers.at[2, 0].set(2.0**-1074)
    assert centers_on_grid(QuadraticEncoding(alpha, near)).centers[0].shape == (4,)


def test_the_storage_format_is_kept():
    stored = QuadraticEncoding(jnp.ones(2, "bfloat16"), jnp.ones((2, 2), "float16"))
    grid = centers_on_grid(stored)
    for alpha, centers in zip(grid.alpha, grid.centers, strict=True):
        assert_dtype(alpha, "bfloat16")
        assert_dtype(centers, "float16")
    assert_dtype(grid.free().alpha, "bfloat16")
    assert_dtype(grid.free().centers, "float16")


def test_heads_that_share_a_coordinate_share_its_scores():
    alpha, centers, _ = parts(2, 0)
    encoding = encoding_of(alpha, centers, ((0, 3), (1, 3), (0, 0)))
    found = encoding.axis_scores(GRIDS[3])
    assert found.groups == encoding.groups == ((0, 1, 0), (3, 3, 0))
    assert [one.shape for one in found.scores] == [(2, 3, 4), (4, 4, 7)]


def test_taking_heads_leaves_the_coordinates():
    encoding = encoding_of(*parts(2, 4))
    taken = encoding.take_heads([3, 3, 0])
    assert taken.pairs == tuple(encoding.pairs[head] for head in (3, 3, 0))
    assert taken.centers is encoding.centers
    assert_equal(taken.head_centers, np.asarray(encoding.head_centers)[[3, 3, 0]])
    assert_equal(taken.head_alpha, np.asarray(encoding.head_alpha)[[3, 3, 0]])


def test_the_slope_of_a_coordinate_is_the_sum_of_those_of_its_heads():
    """Integers, so that the sums may be taken in any order."""
    grid = GRIDS[3]
    alpha, centers, pairs = parts(2, 1, same=True)
    encoding = encoding_of(alpha, [2 * axis for axis in centers], pairs)
    shape = (HEADS, len(grid.query_positions), len(grid.key_positions))
    cotangent = jnp.asarray(small_integers(np.random.default_rng(2), *shape), float)

    def loss(candidate):
        return jnp.vdot(cotangent, candidate.positional_scores(grid))

    slopes = jax.jit(jax.grad(loss))
    shared, free = slopes(encoding), np.asarray(slopes(encoding.free()).centers)
    assert np.abs(free).max() > 0
    for axis, group in enumerate(encoding.groups):
        expected = np.zeros(COUNTS[axis])
        np.add.at(expected, list(group), free[:, axis])
        assert_equal(shared.centers[axis], expected)


def test_different_alphas_on_the_axes_have_no_free_form():
    alpha, ones = (jnp.array([1.0, 2.0]), jnp.array([2.0])), (jnp.ones(2), jnp.ones(1))
    QuadraticGridEncoding(alpha, ones, ((1, 0),)).free()
    with pytest.raises(ValueError, match=r"head 1 has the α \[1.0, 2.0\] on its axes"):
        QuadraticGridEncoding(alpha, ones, ((1, 0), (0, 0))).free()


def test_what_looks_at_numbers_is_refused_under_tracing():
    encoding = QuadraticEncoding(jnp.ones(1), jnp.ones((1, 2)))
    with pytest.raises(ValueError, match="traced, so which centres share"):
        jax.jit(centers_on_grid)(encoding)
    with pytest.raises(ValueError, match="alpha is traced"):
        jax.jit(lambda grid: grid.free())(centers_on_grid(encoding))
