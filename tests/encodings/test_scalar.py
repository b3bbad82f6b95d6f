import math
from fractions import Fraction

import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal, assert_within
from hypothesis import given
from hypothesis import strategies as st
from roundings import ELEMENTARY, gamma, roundoff
from strategies import seeds
from token_grids import GRIDS, compiled_scores, interior, slow_shift_scores

from convattn.encodings.scalar import ScalarEncoding
from convattn.operators.shifts import TokenGrid

BASES = (2, 3, 5)


def offsets_of(axes):
    return ((-1,), (2,), (0,)) if axes == 1 else ((0, -1), (1, 0), (0, 0))


def encoding_of(offsets, logit=None, exponents=(0, 1, 2, 3), dtype="float64"):
    return ScalarEncoding(
        jnp.asarray(exponents, dtype),
        jnp.asarray(np.log(BASES), dtype),
        None if logit is None else jnp.asarray(logit, dtype),
        offsets,
    )


@given(st.sampled_from(GRIDS), seeds(), st.sampled_from([None, 64.0]))
def test_scores_are_the_exponent_times_one_feature_of_the_shift(grid, seed, logit):
    """One product of two stored numbers: the double loop rounds it the same."""
    offsets = offsets_of(len(grid.queries))
    exponents = np.random.default_rng(seed).integers(-4, 5, 4).astype(float)
    encoding = encoding_of(offsets, logit, exponents)
    logs = np.log(BASES)

    def score(head, shift):
        outside = 0 if logit is None else -logit
        feature = logs[offsets.index(shift)] if shift in offsets else outside
        return exponents[head] * feature

    assert_equal(compiled_scores(encoding, grid), slow_shift_scores(grid, 4, score))


def exponential_error(exponent, base, u):
    """The relative error of e^(h·log t): log t stored (8u + u), one product, exp."""
    return math.exp((ELEMENTARY + 2.01) * u * exponent * math.log(base)) * (1 + ELEMENTARY * u) - 1


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("logit", [None, 64.0])
@pytest.mark.parametrize("grid", [GRIDS[0], GRIDS[3], TokenGrid((4, 5), ((1, 2), (3, 1)))])
def test_gains_are_the_normalisers_at_interior_queries(grid, logit, dtype):
    """Z_h = N + Σ(t^h - 1), or Σ t^h in the limit: in integers, and summed over the scores."""
    offsets = offsets_of(len(grid.queries))
    encoding = encoding_of(offsets, logit, (1, 2, 3), dtype)
    count = grid.number_of_keys
    exact = []
    for exponent in (1, 2, 3):
        outside = count - len(BASES) if logit is None else 0
        exact.append(Fraction(outside) + sum(Fraction(t) ** exponent for t in BASES))
    u = roundoff(dtype)
    relative = (1 + exponential_error(3, max(BASES), u)) * (1 + gamma(count + 1, u)) - 1
    gains = encoding.head_gains(count)
    expected = np.array([float(z) for z in exact])
    assert_within(gains, expected, relative * expected)

    rows = interior(grid, offsets)
    assert rows
    scores = np.asarray(encoding.positional_scores(grid)[:, rows], np.float64)
    sums = np.exp(scores).sum(axis=-1)
    left_over = 0 if logit is None else count * math.exp(-logit)  # what the limit neglects
    bound = 2 * relative * expected[:, None] + left_over
    assert_within(sums, np.broadcast_to(expected[:, None], sums.shape), bound)


def test_gains_are_wrong_at_a_query_that_misses_an_offset():
    """Why the construction needs its ring."""
    grid = TokenGrid((4,), ((0, 0),))
    encoding = encoding_of(offsets_of(1))
    rows = interior(grid, offsets_of(1))
    outside = [row for row in range(4) if row not in rows]
    assert rows
    assert outside
    sums = np.exp(np.asarray(encoding.positional_scores(grid))).sum(axis=-1)
    distance = np.abs(sums[1:, outside] - np.asarray(encoding.head_gains(4))[1:, None])
    assert distance.min() > 0.5  # the least that can be missing is 2¹ - 1
