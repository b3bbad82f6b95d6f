import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal
from hypothesis import given
from hypothesis import strategies as st
from strategies import seeds, small_integers
from token_grids import GRIDS, compiled_scores, slow_shift_scores

from convattn.encodings.gaussian import GaussianEncoding
from convattn.encodings.quadratic import QuadraticEncoding, printed_features, printed_target

HEADS = 3


def parameters(grid, seed):
    """Integer centres, and widths that are powers of two: nothing is rounded."""
    generator = np.random.default_rng(seed)
    centers = small_integers(generator, HEADS, len(grid.queries))
    return 2.0 ** generator.integers(-3, 8, HEADS), centers


@given(st.sampled_from(GRIDS), seeds())
def test_scores_are_minus_alpha_times_the_squared_distance(grid, seed):
    alpha, centers = parameters(grid, seed)
    centers = centers / 2  # halves are exact too
    encoding = QuadraticEncoding(jnp.asarray(alpha), jnp.asarray(centers))

    def score(head, shift):
        return -alpha[head] * sum((d - c) ** 2 for d, c in zip(shift, centers[head], strict=True))

    assert_equal(compiled_scores(encoding, grid), slow_shift_scores(grid, HEADS, score))


@given(st.sampled_from(GRIDS), seeds())
@pytest.mark.slow
def test_printed_form_is_the_centred_one_plus_alpha_times_the_squared_centre(grid, seed):
    alpha, centers = parameters(grid, seed)
    shifts = grid.shifts
    encoding = QuadraticEncoding(jnp.asarray(alpha), jnp.asarray(centers))
    target = np.asarray(printed_target(jnp.asarray(alpha), jnp.asarray(centers)))
    constant = alpha * (centers**2).sum(axis=-1)
    printed = target @ printed_features(shifts).T
    assert printed.shape == (HEADS, len(shifts))
    assert_equal(printed, encoding.shift_scores(shifts, 1) + constant[:, None])


@given(st.sampled_from(GRIDS), st.integers(-2, 3), seeds())
def test_quadratic_is_gaussian_with_root_precision_root_two_alpha(grid, power, seed):
    """α = 2^(2p-1), so that √(2α) = 2^p is exact."""
    _, centers = parameters(grid, seed)
    alpha = np.full(HEADS, 2.0 ** (2 * power - 1))
    root = jnp.broadcast_to(2.0**power * jnp.eye(len(grid.queries)), (HEADS, *[len(grid.keys)] * 2))
    quadratic = QuadraticEncoding(jnp.asarray(alpha), jnp.asarray(centers))
    gaussian = GaussianEncoding(jnp.asarray(centers), root)
    assert_equal(compiled_scores(quadratic, grid), compiled_scores(gaussian, grid))


def test_a_centre_with_its_axes_swapped_is_noticed():
    grid = GRIDS[3]
    straight = QuadraticEncoding(jnp.ones(1), jnp.array([[1.0, -2.0]])).positional_scores(grid)
    swapped = QuadraticEncoding(jnp.ones(1), jnp.array([[-2.0, 1.0]])).positional_scores(grid)
    with pytest.raises(AssertionError, match="out"):
        assert_equal(swapped, straight)
