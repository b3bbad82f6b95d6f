import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal, assert_within
from hypothesis import given
from hypothesis import strategies as st
from roundings import ELEMENTARY, gamma, roundoff
from strategies import seeds, small_integers
from token_grids import GRIDS, compiled_scores, sinusoid, slow_shift_scores

from convattn.encodings.relative import RelativeEncoding
from convattn.operators.shifts import TokenGrid

HEADS, POSITION_FEATURES, KEY_FEATURES = 3, 4, 5


def parameters(seed):
    generator = np.random.default_rng(seed)
    query = small_integers(generator, HEADS, KEY_FEATURES)
    position_key = small_integers(generator, HEADS, POSITION_FEATURES, KEY_FEATURES)
    return generator, query, position_key


@given(st.sampled_from(GRIDS), seeds())
@pytest.mark.slow
def test_scores_are_the_query_with_the_mapped_vector_of_the_shift(grid, seed):
    generator, query, position_key = parameters(seed)
    table = small_integers(generator, *(2 * n - 1 for n in grid.keys), POSITION_FEATURES)
    encoding = RelativeEncoding(*map(jnp.asarray, (query, position_key, table)))

    def score(head, shift):
        vector = table[tuple(d + n - 1 for d, n in zip(shift, grid.keys, strict=True))]
        return query[head] @ (vector @ position_key[head])

    assert_equal(compiled_scores(encoding, grid), slow_shift_scores(grid, HEADS, score))


@pytest.mark.parametrize("grid", [*GRIDS, TokenGrid((31,), ((0, 4),))])
def test_sinusoids_serve_every_size(grid):
    """Angles are at most max|δ| and rounded by (8 + 2)u of that; the sums have 4 and 5 terms."""
    _, query, position_key = parameters(0)
    encoding = RelativeEncoding(jnp.asarray(query), jnp.asarray(position_key))

    def score(head, shift):
        return query[head] @ (sinusoid(shift, POSITION_FEATURES) @ position_key[head])

    u = roundoff("float64")
    majorant = (np.abs(query)[:, None, :] * np.abs(position_key)).sum(axis=(1, 2))
    angle = max(grid.keys) * (ELEMENTARY + 2) * u + ELEMENTARY * u
    bound = (angle + 2 * gamma(POSITION_FEATURES + KEY_FEATURES, u)) * majorant
    expected = slow_shift_scores(grid, HEADS, score)
    assert_within(compiled_scores(encoding, grid), expected, bound[:, None, None])


@pytest.mark.slow
@pytest.mark.parametrize(
    "grid", [TokenGrid((4, 3), ((0, 0), (0, 0))), TokenGrid((2, 4), ((1, 0), (0, 0)))]
)
def test_a_learned_table_refuses_larger_images(grid):
    _, query, position_key = parameters(0)
    table = jnp.zeros((5, 7, POSITION_FEATURES))  # three rows and four columns
    encoding = RelativeEncoding(jnp.asarray(query), jnp.asarray(position_key), table)
    assert encoding.positional_scores(TokenGrid((3, 4), ((0, 0), (0, 0)))).shape == (3, 12, 12)
    if grid.keys[0] <= 3:
        assert encoding.positional_scores(grid).shape[0] == 3
    else:
        with pytest.raises(ValueError, match=r"table holds shifts up to \[2, 3\]"):
            encoding.positional_scores(grid)
