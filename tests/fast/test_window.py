"""Windows: the weight outside is bounded from above, closely, and the chosen ones are minimal."""

import re
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal
from hypothesis import given
from hypothesis import strategies as st
from random_windows import HEADS, gaussians, random_windows
from strategies import seeds
from token_grids import GRIDS

from convattn.encodings import (
    BiasEncoding,
    QuadraticEncoding,
)
from convattn.encodings.learned import initial_learned_encoding
from convattn.fast import choose_windows
from convattn.fast.windowed.window import skipped_weight, window_mask, window_problem
from convattn.operators.shifts import TokenGrid


@cache
def shift_index(grid: TokenGrid) -> np.ndarray:
    return np.asarray(grid.shift_index())


def true_skipped_weight(encoding, grid: TokenGrid, windows) -> np.ndarray:
    """From the dense weights of the very same scores, in float64."""
    scores = np.asarray(encoding.shift_scores(grid.shifts, grid.number_of_keys), np.float64)
    index = shift_index(grid)
    weights_outside = []
    for table, window in zip(scores, windows, strict=True):
        rows = table[index]
        weights = np.exp(rows - rows.max(-1, keepdims=True))
        outside = ~window_mask(grid, window).reshape(-1)[index]
        weights_outside.append(((weights * outside).sum(-1) / weights.sum(-1)).max())
    return np.array(weights_outside)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@given(grid=st.sampled_from(GRIDS), seed=seeds())
def test_the_bound_holds_and_is_close(grid, seed, dtype):
    encoding = gaussians(seed, len(grid.queries), dtype=dtype)
    windows = random_windows(np.random.default_rng(seed), grid)
    bound = skipped_weight(encoding, grid, windows)
    assert_close_bound(bound, encoding, grid, windows, "float64")


def assert_close_bound(bound, encoding, grid: TokenGrid, windows, working: str) -> None:
    true = true_skipped_weight(encoding, grid, windows)
    bound, limits = np.asarray(bound, np.float64), jnp.finfo(bound.dtype)
    # The reference sums fewer than 200 exponentials, in float64.
    assert (bound >= true * (1 - 2.0**-40)).all()
    scores = np.asarray(encoding.shift_scores(grid.shifts, grid.number_of_keys), np.float64)
    steps, keys = sum(len(shifts) + 1 for shifts in grid.shift_ranges) + 3, scores.shape[1]
    spread = np.ptp(scores, axis=1) - np.log(float(jnp.finfo(working).tiny)) + np.log(keys) + 16
    # Twice the error of the derivation; raised scores and the last steps add multiples of tiny.
    factor = np.exp(2 * 2 * steps * float(jnp.finfo(working).eps) * spread)
    factor = factor * (1 + 2 * float(limits.eps))
    assert (bound <= factor * (true + (keys + 4) * float(limits.tiny))).all()
    assert (factor < 1.2).all()
    assert_equal(bound == 0, [window_mask(grid, window).all() for window in windows])


@pytest.mark.slow
def test_the_bound_of_a_larger_window_does_not_hold_for_a_smaller_one():
    grid = TokenGrid((6, 5), ((1, 0), (0, 2)))
    encoding = gaussians(1, 2, reach=1)
    small, large = (((-1, 1), (-1, 1)),) * HEADS, (((-2, 2), (-1, 1)),) * HEADS
    assert (
        np.asarray(skipped_weight(encoding, grid, large))
        < true_skipped_weight(encoding, grid, small)
    ).all()


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@given(grid=st.sampled_from((*GRIDS, TokenGrid((9, 14), ((0, 0), (1, 2))))), seed=seeds())
def test_chosen_windows_lose_less_than_a_rounding_and_no_side_moves_in(grid, seed, dtype):
    encoding = gaussians(seed, len(grid.queries), dtype=dtype)
    roundoff = float(jnp.finfo(dtype).eps) / 2
    windows = choose_windows(encoding, grid)
    assert window_problem(windows, HEADS, grid) is None
    assert (true_skipped_weight(encoding, grid, windows) <= roundoff / 2 * (1 + 2.0**-40)).all()
    assert (np.asarray(skipped_weight(encoding, grid, windows)) <= roundoff).all()
    for axis in range(len(grid.queries)):
        for side, step in ((0, 1), (1, -1)):
            smaller = []
            for window in windows:
                pair = list(window[axis])
                pair[side] += step
                smaller.append((*window[:axis], tuple(pair), *window[axis + 1 :]))
            loses = true_skipped_weight(encoding, grid, smaller)
            narrow = np.array([window[axis][0] == window[axis][1] for window in windows])
            assert (narrow | (loses > roundoff / 2 * (1 - 2.0**-40))).all()


@pytest.mark.slow
@pytest.mark.parametrize("grid", GRIDS)
def test_an_encoding_that_never_falls_off_keeps_everything(grid):
    axes = len(grid.queries)
    everything = tuple((shifts.start, shifts.stop - 1) for shifts in grid.shift_ranges)
    offset = ((1,) * axes,)
    for encoding in (
        BiasEncoding(jnp.array([[2.0], [3.0]]), None, offset),
        initial_learned_encoding(jax.random.key(0), 2, grid.keys, 4),
        QuadraticEncoding(jnp.zeros(2), jnp.zeros((2, axes))),
        QuadraticEncoding(jnp.full(2, jnp.nan), jnp.zeros((2, axes))),
    ):
        assert choose_windows(encoding, grid) == (everything,) * 2
    flat = QuadraticEncoding(jnp.zeros(2), jnp.zeros((2, axes)))
    assert_equal(skipped_weight(flat, grid), [0.0, 0.0])


def test_under_tracing_the_choice_is_refused():
    grid, encoding = TokenGrid((6, 5), ((1, 0), (0, 2))), gaussians(5, 2)
    windows = choose_windows(encoding, grid)
    with pytest.raises(ValueError, match=r"are traced .*pass its result as windows="):
        jax.jit(lambda encoding: skipped_weight(encoding, grid))(encoding)

    @jax.jit
    def with_constants(number):
        return number + choose_windows(encoding, grid)[0][0][0]

    assert_equal(with_constants(0), windows[0][0][0])


@pytest.mark.parametrize(
    ("windows", "message"),
    [
        ((((-1, 1), (0, 0)),), "there are 1 windows, but the layer has 2 heads"),
        ((((-1, 1),),) * 2, "head 0 has 1 axes, but the grid has 2"),
        ((((0, 0), (0, 0)), ((2, 1), (0, 0))), r"head 1 on axis 0 is \(2, 1\), but its smallest"),
        (
            (((0, 0), (0, 0, 1)),) * 2,
            r"head 0 on axis 1 is \(0, 0, 1\), but expected two integers",
        ),
        ((((0, 0), (0, 0.5)),) * 2, "expected two integers"),
        ((((0, 0), (False, 1)),) * 2, "expected two integers"),
        (
            (((-3, -2), (0, 0)),) * 2,
            r"leaves a query .*ring \(1, 0\) takes a smallest shift ≤ 0 and",
        ),
        ((((0, 0), (3, 4)),) * 2, "on axis 1 .* a smallest shift ≤ 2 and a largest ≥ 0"),
        ((((1, 1), (0, 0)),) * 2, "on axis 0 .* leaves a query at the border without any key"),
    ],
)
def test_what_is_wrong_with_windows(windows, message):
    problem = window_problem(windows, 2, TokenGrid((4, 5), ((1, 0), (0, 2))))
    assert problem is not None
    assert re.search(message, problem)
