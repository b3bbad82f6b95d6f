import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal, assert_within
from hypothesis import given
from hypothesis import strategies as st
from roundings import ELEMENTARY, roundoff, softmax_factor
from strategies import seeds, small_integers
from token_grids import GRIDS, compiled_scores, places, slow_shift_scores

from convattn.encodings.bias import BiasEncoding
from convattn.operators.shifts import TokenGrid

HEADS = 3
LEAKS = (Fraction(1, 2), Fraction(1, 1024), Fraction(3, 4), Fraction(1023, 1024))


def offsets_of(axes):
    return ((-1,), (2,), (0,), (5,))[:4] if axes == 1 else ((0, -1), (1, 0), (-2, 3), (9, 0))


@given(st.sampled_from(GRIDS), seeds())
def test_scores_are_the_table_and_zero_where_it_has_no_entry(grid, seed):
    offsets = offsets_of(len(grid.queries))
    table = small_integers(np.random.default_rng(seed), HEADS, len(offsets))
    encoding = BiasEncoding(jnp.asarray(table), None, offsets)

    def score(head, shift):
        return table[head, offsets.index(shift)] if shift in offsets else 0

    assert_equal(compiled_scores(encoding, grid), slow_shift_scores(grid, HEADS, score))


def leaky(offsets, uniform_weight, dtype="float64"):
    """One head for each offset, and one without bias."""
    table = jnp.eye(len(offsets) + 1, len(offsets), dtype=dtype)
    return BiasEncoding(table, jnp.asarray(float(uniform_weight), dtype), offsets)


def leaky_weight_factor(uniform_weight, keys, u):
    """How far a weight can be off, as a factor.

    M = log1p(x) with x = N((1-ε)/ε), three roundings in x: log1p(x) has the derivative 1/(1+x), so
    they shift M by at most γ_3, and log1p itself by 8uM. Scores are M or zero, and M - M and 0 - M
    are exact.
    """
    height = math.log1p(keys * (1 - uniform_weight) / uniform_weight)
    shift = 3 * u / (1 - 3 * u) + ELEMENTARY * u * height
    return softmax_factor(shift, keys, u)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("uniform_weight", LEAKS)
@pytest.mark.parametrize("grid", [*GRIDS, TokenGrid((37,), ((1, 0),))])
def test_softmax_is_the_one_hot_row_and_the_uniform_row_mixed_by_the_leak(
    grid, uniform_weight, dtype
):
    """(1-ε) one-hot + ε/N where the key exists, 1/N where it does not, in rational numbers."""
    offsets = offsets_of(len(grid.queries))
    queries, keys = places(grid)
    count = len(keys)
    exact = []
    for offset in (*offsets, None):
        for query in queries:
            target = offset and tuple(q + d for q, d in zip(query, offset, strict=True))
            if target in keys:
                row = [
                    (1 - uniform_weight) * (key == target) + uniform_weight / count for key in keys
                ]
            else:
                row = [Fraction(1, count)] * count
            assert sum(row) == 1
            exact.append([float(weight) for weight in row])
    expected = np.array(exact).reshape(len(offsets) + 1, len(queries), count)
    scores = compiled_scores(leaky(offsets, uniform_weight, dtype), grid)
    assert_dtype(scores, dtype)
    weights = jax.nn.softmax(scores, axis=-1)
    factor = leaky_weight_factor(float(uniform_weight), count, roundoff(dtype))
    assert factor < 1.01  # the bound says something
    assert_within(weights, expected, (factor - 1 + roundoff("float64")) * expected)


@pytest.mark.slow
def test_the_bound_tells_a_leak_from_its_neighbour():
    """A leak that is off by one part in a thousand is out of the bound."""
    grid = GRIDS[3]
    offsets = offsets_of(2)
    right = jax.nn.softmax(leaky(offsets, 0.5).positional_scores(grid))
    wrong = jax.nn.softmax(leaky(offsets, 0.5005).positional_scores(grid))
    factor = leaky_weight_factor(0.5, grid.number_of_keys, roundoff("float64"))
    with pytest.raises(AssertionError, match="too far"):
        assert_within(wrong, right, 2 * (factor - 1) * np.asarray(right))
