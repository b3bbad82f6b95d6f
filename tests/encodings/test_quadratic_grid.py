"""Centres on a grid: the same heads as with free centres, held and computed once."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal
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


@pytest.mark.slow
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
