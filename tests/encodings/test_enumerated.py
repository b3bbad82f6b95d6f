import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal
from hypothesis import given
from hypothesis import strategies as st
from strategies import seeds
from token_grids import GRIDS, compiled_scores, interior, places, slow_shift_scores

from convattn.encodings.enumerated import EnumeratedEncoding
from convattn.operators.roundoff import one_hot_sharpness


def offsets_of(grid):
    """Three offsets that differ in length, sign and axis."""
    return ((-1,), (2,), (0,)) if len(grid.queries) == 1 else ((0, -2), (1, 0), (-1, 1))


def encoding_of(grid, alpha, codes=(4, -1, 0), spare=7):
    offsets = offsets_of(grid)
    alphas = jnp.full(len(codes), alpha)
    return EnumeratedEncoding(alphas, jnp.asarray(codes, float), offsets, codes, spare)


@pytest.mark.slow
@given(st.sampled_from(GRIDS), st.integers(-4, 10), seeds())
def test_scores_are_minus_alpha_times_the_squared_difference_of_the_numbers(grid, power, seed):
    codes = tuple(int(n) for n in np.random.default_rng(seed).permutation(9)[:4])
    *codes, spare = codes
    alpha = 2.0**power
    encoding = encoding_of(grid, alpha, tuple(codes), spare)

    def number(shift):
        offsets = offsets_of(grid)
        return codes[offsets.index(shift)] if shift in offsets else spare

    def score(head, shift):
        return -alpha * (number(shift) - codes[head]) ** 2

    assert_equal(compiled_scores(encoding, grid), slow_shift_scores(grid, 3, score))
    shifts = grid.shifts
    assert_equal(encoding.shift_codes(shifts), [number(tuple(s)) for s in shifts.tolist()])


@given(st.sampled_from(GRIDS), st.integers(-4, 10))
@pytest.mark.slow
def test_two_features_give_the_same_scores_up_to_a_constant(grid, power):
    """r_δ = (n, n²) and v = α(2n_h, -1): v·r_δ = -α(n - n_h)² + α n_h²."""
    alpha = 2.0**power
    encoding = encoding_of(grid, alpha)
    numbers = encoding.shift_codes(grid.shifts)
    features = np.stack([numbers, numbers**2], axis=-1)
    targets = np.asarray(encoding.targets)
    vectors = alpha * np.stack([2 * targets, -np.ones(3)], axis=-1)
    centred = encoding.shift_scores(grid.shifts, 1)
    assert_equal(vectors @ features.T, centred + alpha * targets[:, None] ** 2)


@pytest.mark.slow
@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_attention_is_one_hot_at_the_offset_wherever_the_key_exists(grid, dtype):
    encoding = jax.tree.map(
        lambda leaf: leaf.astype(dtype), encoding_of(grid, one_hot_sharpness(dtype))
    )
    weights = np.asarray(jax.nn.softmax(encoding.positional_scores(grid), axis=-1))
    queries, keys = places(grid)
    count = 0
    for head, offset in enumerate(offsets_of(grid)):
        for row in interior(grid, (offset,)):
            target = tuple(q + d for q, d in zip(queries[row], offset, strict=True))
            assert_equal(weights[head, row], [float(key == target) for key in keys])
            count += 1
    assert count


def test_a_spare_number_equal_to_a_code_is_not_one_hot():
    grid = GRIDS[0]
    encoding = encoding_of(grid, 128.0, spare=4)
    weights = jax.nn.softmax(encoding.positional_scores(grid), axis=-1)
    assert float(weights[0].max()) < 1
