import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal, assert_within
from token_grids import GRIDS, compiled_scores, slow_shift_scores

from convattn.encodings.polygon import PolygonEncoding, polygon_corners


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 9, 121])
def test_corners_are_the_powers_of_one_rotation(count):
    """Against roots of unity by repeated multiplication, whose errors add up to 4·count·u."""
    root, power = complex(math.cos(2 * math.pi / count), math.sin(2 * math.pi / count)), 1 + 0j
    for corner in polygon_corners(count):
        assert_within(corner, [power.real, power.imag], 32 * count * np.finfo(float).eps)
        power *= root
    assert abs(power - 1) < 32 * count * np.finfo(float).eps


@pytest.mark.parametrize("grid", GRIDS)
def test_scores_are_products_with_the_corner_of_the_shift(grid):
    """Four corners and integer queries: exact but for cos(π/2) ≠ 0, off by 2⁻⁵³ times the query."""
    axes = len(grid.queries)
    offsets = ((-1,), (2,), (0,), (1,)) if axes == 1 else ((0, -2), (1, 0), (-1, 1), (0, 0))
    queries = np.array([[3.0, -2.0], [-5.0, 7.0]])
    encoding = PolygonEncoding(jnp.asarray(queries), offsets)

    def score(head, shift):
        if shift not in offsets:
            return 0.0
        first, second = queries[head]
        return (first, second, -first, -second)[offsets.index(shift)]

    expected = slow_shift_scores(grid, 2, score)
    assert_within(compiled_scores(encoding, grid), expected, 8 * np.finfo(float).eps)


def test_queries_of_three_features_are_refused():
    with pytest.raises(ValueError, match=r"query.shape=\(1, 3\), but expected two features"):
        PolygonEncoding(jnp.ones((1, 3)), ((0,),)).check()


def test_the_centre_has_the_score_zero_whatever_the_query():
    encoding = PolygonEncoding(jnp.array([[jnp.pi, -7.0]]), ((0, 0), (0, 1)))
    assert_equal(encoding.shift_scores(np.array([[5, 5], [-1, 0]]), 3), [[0.0, 0.0]])
    slope = jax.grad(lambda q: PolygonEncoding(q, ((0,),)).shift_scores(np.array([[4]]), 3).sum())
    assert_equal(slope(jnp.ones((1, 2))), np.zeros((1, 2)))
