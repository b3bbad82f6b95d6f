import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal, assert_within, gamma
from sac.slow_definitions import printed_bias, query_first

from convattn.sac import EvenBias, even_bias_scores


def table(*shape, seed=0):
    return np.random.default_rng(seed).integers(1, 99, shape)


def test_scores_are_the_printed_ones_and_zero_beyond_the_table() -> None:
    b = table(2, 3, 4)
    scores = even_bias_scores(EvenBias(jnp.asarray(b, jnp.float32)), (4, 6), (4, 6))
    wide = np.pad(b, [(0, 0), (0, 1), (0, 2)])
    for head in range(2):
        assert_equal(scores[head], query_first(printed_bias(wide[head], (4, 6))))
    by_axis = np.asarray(scores).reshape(2, 4, 6, 4, 6)
    assert_equal(by_axis[:, ::-1, :, ::-1], by_axis)  # even in each axis
    assert_equal(by_axis[:, :, ::-1, :, ::-1], by_axis)


@pytest.mark.slow
def test_steps_count_cells_of_the_keys() -> None:
    position = EvenBias(jnp.asarray(table(1, 6, 5), jnp.float32))
    full = even_bias_scores(position, (6, 5), (6, 5)).reshape(1, 6, 5, 30)
    coarse = even_bias_scores(position, (3, 2), (6, 5), step=(2, 3))
    assert_equal(coarse.reshape(1, 3, 2, 30), full[:, ::2, ::3])


@pytest.mark.slow
@pytest.mark.parametrize(("uniform_weight", "keys"), [(0.5, 1), (0.25, 7), (0.9, 300)])
def test_a_leak_sets_the_height_for_the_number_of_keys(uniform_weight, keys) -> None:
    position = EvenBias(jnp.ones((1, 1), jnp.float32), uniform_weight)
    scores = np.asarray(even_bias_scores(position, (keys,), (keys,)))[0]
    height = np.log1p(keys * (1 - uniform_weight) / uniform_weight)
    # ε is a float32: (1-ε)/ε is off by its own rounding too, counted among the sixteen.
    assert_within(scores.diagonal(), np.full(keys, height), gamma(16, jnp.float32) * height)
    assert_equal(scores[~np.eye(keys, dtype=bool)], np.zeros(keys * (keys - 1)))


@pytest.mark.slow
def test_a_leak_counts_the_keys_that_a_query_may_attend_to() -> None:
    position = EvenBias(jnp.ones((1, 1), jnp.float32), 0.5)
    counted = even_bias_scores(position, (3,), (3,), attended=jnp.array([1, 2, 3]))
    for query in range(3):
        alone = even_bias_scores(position, (3,), (3,), attended=query + 1)
        assert_equal(counted[0, query], alone[0, query])
