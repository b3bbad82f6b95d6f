import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal, assert_within
from hypothesis import given
from hypothesis import strategies as st
from roundings import ELEMENTARY, gamma, roundoff
from strategies import seeds, small_integers
from token_grids import GRIDS, compiled_scores, sinusoid, slow_scores

from convattn.encodings.absolute import AbsoluteEncoding, sinusoidal_positions
from convattn.operators.shifts import TokenGrid

HEADS, POSITION_FEATURES, KEY_FEATURES = 3, 4, 5


def parameters(seed):
    generator = np.random.default_rng(seed)
    query = small_integers(generator, HEADS, POSITION_FEATURES, KEY_FEATURES)
    return generator, query, small_integers(generator, HEADS, POSITION_FEATURES, KEY_FEATURES)


@given(st.sampled_from(GRIDS), st.integers(0, 2), seeds())
def test_scores_are_bilinear_in_the_positions(grid, spare, seed):
    """The table may be larger than the grid; the first key stands at its corner."""
    generator, query, key = parameters(seed)
    table = small_integers(generator, *(n + spare for n in grid.keys), POSITION_FEATURES)
    encoding = AbsoluteEncoding(*map(jnp.asarray, (query, key, table)))

    def score(head, q, k):
        return (table[q] @ query[head]) @ (table[k] @ key[head])

    assert_equal(compiled_scores(encoding, grid), slow_scores(grid, HEADS, score))


@pytest.mark.parametrize("grid", [*GRIDS, TokenGrid((29,), ((0, 2),))])
def test_sinusoids_serve_every_size(grid):
    """Two sinusoids, each with an angle off by (8 + 2)u of at most n; sums of 4, 4 and 5 terms."""
    _, query, key = parameters(1)
    encoding = AbsoluteEncoding(jnp.asarray(query), jnp.asarray(key))

    def score(head, q, k):
        left = sinusoid(q, POSITION_FEATURES) @ query[head]
        return left @ (sinusoid(k, POSITION_FEATURES) @ key[head])

    u = roundoff("float64")
    majorant = (np.abs(query).sum(axis=1) * np.abs(key).sum(axis=1)).sum(axis=-1)
    one = max(grid.keys) * (ELEMENTARY + 2) * u + ELEMENTARY * u
    bound = (2.01 * one + 2 * gamma(2 * POSITION_FEATURES + KEY_FEATURES, u)) * majorant
    expected = slow_scores(grid, HEADS, score)
    assert_within(compiled_scores(encoding, grid), expected, bound[:, None, None])


@pytest.mark.parametrize("sides", [(4, 7), (5, 6), (35,)])
def test_a_learned_table_refuses_larger_images_and_other_axes(sides):
    _, query, key = parameters(0)
    table = jnp.zeros((*sides, POSITION_FEATURES))
    encoding = AbsoluteEncoding(jnp.asarray(query), jnp.asarray(key), table)
    with pytest.raises(ValueError, match="learn a larger table or use sinusoids"):
        encoding.positional_scores(TokenGrid((3, 5), ((1, 1), (0, 2))))


@pytest.mark.parametrize(("axes", "features"), [(1, 0), (1, 3), (2, 2), (2, 6)])
def test_numbers_of_features_that_sinusoids_cannot_have(axes, features):
    with pytest.raises(ValueError, match=f"features={features}, but .* multiple of {2 * axes}"):
        sinusoidal_positions(np.zeros((3, axes), int), features)
