"""Majorants of a layer's scores: its encoding's (`convattn.encodings.majorants`) and content's."""

from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array
from jaxtyping import Float, Int, Num

from convattn.encodings.base import PositionalEncoding
from convattn.encodings.layer import AttentionLayer, ContentScores
from convattn.encodings.majorants import magnitude
from convattn.operators.shifts import TokenGrid


class PairScores(NamedTuple):
    """Scores, or majorants of them.

    Attributes:
        pairs: `[heads, queries, keys]`, with a batch axis before if there is content.
        background: `[heads]`, of a shift without an entry, for the encodings whose scores are one
            and the same number at all shifts but a few; None for the others.
    """

    pairs: Array
    background: Array | None


def exact_scores(
    layer: AttentionLayer, grid: TokenGrid, keys: Num[Array, "batch keys features"]
) -> PairScores:
    """The scores of a layer in the precision of its parameters: float64, to stand for exact."""
    pairs = layer.encoding.positional_scores(grid)
    if layer.content is not None:
        pairs = pairs[None] + layer.content.scores(keys[:, query_rows(grid)], keys, grid)
        return PairScores(pairs, None)
    far = far_shift(layer.encoding)
    if far is None:
        return PairScores(pairs, None)
    table = layer.encoding.shift_scores(far, grid.number_of_keys)  # type: ignore[attr-defined]
    return PairScores(pairs, table[:, 0])


def score_majorant(
    layer: AttentionLayer, grid: TokenGrid, keys: Num[Array, "batch keys features"]
) -> PairScores:
    """s⁺ of every pair; its derivative in any array of `layer` and in `keys` is nonnegative.

    >>> import jax.numpy as jnp
    >>> from convattn.encodings import QuadraticEncoding
    >>> encoding = QuadraticEncoding(jnp.array([2.0]), jnp.array([[1.0]]))
    >>> layer = AttentionLayer(encoding, None, None, patch_size=(1,), stride=(1,), dilation=(1,))
    >>> grid = TokenGrid((1,), ((0, 3),))
    >>> score_majorant(layer, grid, jnp.zeros((1, 4, 1))).pairs.tolist()
    [[[2.0, 0.0, 2.0, 8.0]]]
    """
    encoding: Any = layer.encoding
    pairs = encoding.score_majorant(grid)
    if layer.content is not None:
        return PairScores(pairs[None] + _content_majorant(layer.content, grid, keys), None)
    far, count = far_shift(encoding), grid.number_of_keys
    return PairScores(pairs, None if far is None else encoding.shift_majorant(far, count)[:, 0])


def score_roundings(layer: AttentionLayer, features: int) -> int:
    """n: on the longest path of a score, or of a derivative of it, there are so many roundings."""
    count: int = 16 + layer.encoding.roundings  # type: ignore[attr-defined]
    if layer.content is not None:
        count += 2 * features + layer.content.query.shape[2] + 8
        count += 0 if layer.content.tables is None else len(layer.content.tables) + 1
    return count


def query_rows(grid: TokenGrid) -> Int[np.ndarray, " queries"]:
    """Which of the keys the queries are."""
    return np.ravel_multi_index(tuple(grid.query_positions.T), grid.keys)


def far_shift(encoding: PositionalEncoding) -> Int[np.ndarray, "1 axes"] | None:
    """A shift without an entry, if the encoding has entries."""
    offsets = getattr(encoding, "offsets", None)
    return None if offsets is None else np.abs(np.array(offsets)).max(axis=0, keepdims=True) + 1


def _content_majorant(
    content: ContentScores, grid: TokenGrid, keys: Num[Array, "batch keys features"]
) -> Float[Array, "batch heads queries keys"]:
    """(|X_q||Q| + |a|)·(|X_k||K| + |c| + |r_(k - q)|) / scale."""
    tokens = magnitude(keys)
    positive = jax.tree.map(magnitude, content)
    return positive.scores(tokens[:, query_rows(grid)], tokens, grid)
