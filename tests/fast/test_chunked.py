"""Chunked attention is the dense one, block by block, and never holds the matrix of all pairs."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal, assert_within
from fast.layers import LayerBucket, make_layer_case, quadratic
from fast.programs import largest_intermediate
from token_grids import IMAGES, SEQUENCES

from convattn.encodings import AbsoluteEncoding, AxialEncoding, QuadraticEncoding
from convattn.encodings.layer import AttentionLayer, ContentScores
from convattn.fast.application import apply_attention
from convattn.fast.chunked import CHUNKED, default_chunk, scorer
from convattn.fast.options import AttentionOptions
from convattn.operators.shifts import TokenGrid
from convattn_ledger.bounds.back_ends.bounds import value_bound


def apply(name, case, **options):
    """The result of a back end, compiled as a whole."""
    return jax.jit(lambda layer, images: apply_attention(layer, images, backend=name, **options))(
        case.layer, case.images
    )


SMALL = LayerBucket(quadratic, 3, 2, (4, 5), ((1, 2), (0, 1)), 2, value=3, output=4)


@cache
def small_case():
    """One case in float64, and the bound on its values."""
    case = make_layer_case(SMALL, 5, "float64")
    return case, value_bound(case.layer, case.images)


@pytest.mark.slow
def test_dropout_is_that_of_dense():
    """A weight times 0 or 1/(1 - rate) enlarges the bound by as much; the product is one rounding
    more where the bound counts at least 32, so by a sixteenth at most."""
    (case, alone), rate = small_case(), 0.3
    dropping = {"dropout_rate": rate, "dropout_key": jax.random.key(2)}
    expected = apply("dense", case, **dropping)
    actual = apply("chunked", case, chunk=5, **dropping)
    bound = 2 * (1 + 1 / 16) * alone / (1 - rate)
    assert_within(actual, expected, bound)
    other = apply("chunked", case, dropout_rate=rate, dropout_key=jax.random.key(3))
    with pytest.raises(AssertionError, match="too far"):
        assert_within(other, expected, bound)


# ------------------------------------------------------------------ scores of some queries
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Foreign:
    """Somebody else's encoding, which offers its matrix of scores alone."""

    matrix: jax.Array

    @property
    def heads(self) -> int:
        return int(self.matrix.shape[0])

    def positional_scores(self, grid: TokenGrid) -> jax.Array:
        return self.matrix

    def head_gains(self, number_of_keys: int) -> None:
        return None


def integers(rng, *shape):
    return jnp.asarray(rng.integers(-3, 4, shape), jnp.float64)


def integer_encodings(rng: Any, grid: TokenGrid) -> Iterator[Any]:
    """Encodings whose scores are integers, each of which gives scores in another way."""
    axes, sides = len(grid.keys), grid.keys
    yield QuadraticEncoding(jnp.array([1.0, 2.0]), integers(rng, 2, axes))
    yield AbsoluteEncoding(*integers(rng, 2, 2, 3, 4), integers(rng, *sides, 3))
    maps = [[integers(rng, 2, 3, 4) for _ in sides] for _ in range(2)]
    tables = tuple(integers(rng, n, 3) for n in sides)
    yield AxialEncoding(tuple(maps[0]), tuple(maps[1]), tables)
    count = math.prod(grid.queries), grid.number_of_keys
    yield Foreign(integers(rng, 2, *count))


@pytest.mark.slow
@pytest.mark.parametrize("grid", [SEQUENCES[0], *IMAGES[:2]], ids=str)
@pytest.mark.parametrize("which", range(4))
def test_scores_of_some_queries_are_rows_of_the_matrix(grid, which):
    """Under jit, in any order, repeated; in integers, so that nothing is rounded."""
    encoding = list(integer_encodings(np.random.default_rng(8), grid))[which]
    count = math.prod(grid.queries)
    queries = np.array([count - 1, 0, count // 2, 0])
    rows = jax.jit(lambda encoding, queries: scorer(encoding, grid)(queries))(
        encoding, jnp.asarray(queries, jnp.int32)
    )
    every = encoding.positional_scores(grid)
    assert_equal(rows, every[:, queries])
    if count > 1:  # the planted case: another query's row
        assert (np.asarray(rows) != np.asarray(every[:, (queries + 1) % count])).any()


# --------------------------------------------------------------------------- what is held
def loss(name, **options):
    def of(layer, images):
        return apply_attention(layer, images, backend=name, **options).sum()

    return jax.value_and_grad(of, argnums=(0, 1), allow_int=True)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["quadratic", "absolute", "axial", "content", "dropout"])
def test_no_array_has_an_entry_for_every_query_and_key(kind):
    """Two heads and 12 × 13 tokens: the largest arrays are blocks of 3 queries, or tables."""
    rng = np.random.default_rng(9)
    tokens, grid = 12 * 13, TokenGrid((12, 13), ((0, 0), (0, 0)))
    which = {"absolute": 1, "axial": 2}.get(kind, 0)
    encoding = list(integer_encodings(rng, grid))[which]
    content = None
    if kind == "content":
        content = ContentScores(integers(rng, 2, 3, 4), integers(rng, 2, 3, 4))
    layer = AttentionLayer(encoding, None, integers(rng, 2, 3, 5), None, content)
    images = integers(rng, 1, 12, 13, 3)
    dropping = {"dropout_rate": 0.5, "dropout_key": jax.random.key(0)} if kind == "dropout" else {}
    assert largest_intermediate(loss("chunked", chunk=3, **dropping), layer, images) < tokens**2
    assert largest_intermediate(loss("dense", **dropping), layer, images) >= tokens**2


def test_a_block_takes_sixteen_mebibytes_at_most_where_one_query_does():
    case = make_layer_case(LayerBucket(quadratic, 9, 1, (4, 5), ((0, 0), (0, 0)), 3), 0, "float32")
    dropping = AttentionOptions(dropout=object())
    for side, batch, options in (
        (64, 1, AttentionOptions()),
        (224, 4, AttentionOptions()),
        (64, 4, dropping),
        (2, 0, dropping),
    ):
        grid = TokenGrid((side, side), ((0, 0), (0, 0)))
        size = default_chunk(case.layer, grid, batch, np.dtype("float32"), options)
        assert 1 <= size <= side**2
        images = max(batch, 1) if options is dropping else 1
        assert images * 9 * side**2 * 4 * size <= 2**24
        blocks = -(-(side**2) // size)
        assert blocks * size - side**2 < blocks  # the last block is filled up by few


def test_work_counts_the_blocks_as_calls():
    case = make_layer_case(SMALL, 5, "float32")
    small = CHUNKED.work(case.layer, TokenGrid((4, 5), SMALL.ring), 2, 2)
    large = CHUNKED.work(case.layer, TokenGrid((96, 96), SMALL.ring), 2, 2)
    assert large.calls > 10 * small.calls
    assert CHUNKED.refusal(replace(case.layer, value=None), case.grid, AttentionOptions()) is None
