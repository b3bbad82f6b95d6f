"""The scores of the axes add up to the scores of the grid, and heads share what they may."""

import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal
from hypothesis import given
from hypothesis import strategies as st
from strategies import seeds, small_integers
from token_grids import GRIDS, compiled_scores, places

from convattn.encodings import (
    AbsoluteEncoding,
    AxialEncoding,
    BiasEncoding,
    GaussianEncoding,
    LearnedEncoding,
    QuadraticEncoding,
    QuadraticGridEncoding,
    SeparableEncoding,
)
from convattn.encodings.axis_scores import sum_over_axes

HEADS = 3
LARGEST = 9  # keys of an axis of GRIDS, ring included, and more
NAMES = ("quadratic", "learned", "axial", "grid")


def integer_encoding(name, axes, seed, dtype="float64"):
    """Integers, and widths that are powers of two: every score is exact, in float32 too."""
    generator = np.random.default_rng(seed)

    def draw(*shape):
        return jnp.asarray(small_integers(generator, *shape), dtype)

    def widths(count):
        return jnp.asarray(2.0 ** generator.integers(-2, 4, count), dtype)

    features = (2, 3)[:axes]
    if name == "quadratic":
        return QuadraticEncoding(widths(HEADS), draw(HEADS, axes))
    if name == "learned":
        tables = tuple(draw(2 * LARGEST - 1, size) for size in features)
        return LearnedEncoding(draw(HEADS, sum(features)), tables)
    if name == "axial":
        query = tuple(draw(HEADS, size, 4 - axis) for axis, size in enumerate(features))
        key = tuple(draw(HEADS, size, 4 - axis) for axis, size in enumerate(features))
        return AxialEncoding(query, key, tuple(draw(LARGEST, size) for size in features))
    counts = (2, 4)[:axes]
    pairs = tuple(pair[:axes] for pair in ((0, 3), (1, 0), (0, 0)))  # static: one program a grid
    return QuadraticGridEncoding(tuple(map(widths, counts)), tuple(map(draw, counts)), pairs)


def added_slowly(parts, grid):
    """The definition of `AxisScores`, by a loop over heads, queries and keys."""
    queries, keys = places(grid)
    firsts = [before for before, _ in grid.ring]
    scores = [np.asarray(one) for one in parts.scores]

    def score(head, query, key):
        return sum(
            scores[axis][parts.groups[axis][head], query[axis] - firsts[axis], key[axis]]
            for axis in range(len(scores))
        )

    heads = range(len(parts.groups[0]))
    return np.array([[[score(h, q, k) for k in keys] for q in queries] for h in heads])


@pytest.mark.slow
@given(st.sampled_from(NAMES), st.sampled_from(GRIDS), seeds())
def test_the_scores_of_the_axes_add_up_to_those_of_the_grid(name, grid, seed):
    encoding = integer_encoding(name, len(grid.queries), seed)
    assert isinstance(encoding, SeparableEncoding)
    parts = encoding.axis_scores(grid)
    sizes = [(one.shape[1], one.shape[2]) for one in parts.scores]
    assert sizes == list(zip(grid.queries, grid.keys, strict=True))
    expected = added_slowly(parts, grid)
    assert_equal(compiled_scores(encoding, grid), expected)
    assert_equal(sum_over_axes(parts), expected)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_doubled_axis_does_not_add_up(name):
    grid = GRIDS[5]
    encoding = integer_encoding(name, 2, 5)
    parts = encoding.axis_scores(grid)
    for axis in (0, 1):
        wrong = parts._replace(scores=tuple(
            (1 + (a == axis)) * one for a, one in enumerate(parts.scores)
        ))  # fmt: skip
        assert (sum_over_axes(wrong) != encoding.positional_scores(grid)).any()


def test_other_encodings_are_not_separable():
    for encoding in (
        AbsoluteEncoding(jnp.ones((1, 4, 1)), jnp.ones((1, 4, 1))),
        BiasEncoding(jnp.ones((1, 1)), None, ((0, 0),)),
        GaussianEncoding(jnp.ones((1, 2)), jnp.ones((1, 2, 2))),
    ):
        assert not isinstance(encoding, SeparableEncoding)
