"""Majorants of scores: how far computed scores, and their derivatives, can be off.

Every score of this library is a sum of products of parameters, of content and of distances |δ - Δ|,
or log1p of such a product. Let s⁺ be the same sum with every term made positive. Each term is
computed with at most n roundings on its longest path (`score_roundings`: the lengths of its sums
and 16 more, log1p counting as eight), so, with γ_n = n·u/(1 - n·u), in whatever order they are
summed,

    |computed s - s| ≤ γ_n s⁺.

A derivative ∂s/∂θ is such a sum as well, with ∂s⁺/∂|θ| for its majorant. So one function gives
both: s⁺ is written in terms of `rising(value, parameter)`, which is |value| and has the derivative
one, and the transpose of its derivative takes a majorant of the cotangents of the scores to one of
the cotangents of the parameters.

*Encoding by encoding.* For scores that depend on the shift alone s⁺ is the score with every
term made positive; its derivatives are those of the terms, made positive as well.
"""

from functools import singledispatch
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float, Int, Num

from convattn.encodings.absolute import AbsoluteEncoding
from convattn.encodings.axial import AxialEncoding
from convattn.encodings.axial_rotary import AxialRotaryEncoding
from convattn.encodings.base import PositionalEncoding
from convattn.encodings.bias import BiasEncoding
from convattn.encodings.enumerated import EnumeratedEncoding
from convattn.encodings.gaussian import GaussianEncoding
from convattn.encodings.layer import AttentionLayer, ContentScores
from convattn.encodings.learned import LearnedEncoding
from convattn.encodings.mixture import MixtureEncoding
from convattn.encodings.polygon import PolygonEncoding
from convattn.encodings.quadratic import QuadraticEncoding
from convattn.encodings.quadratic_grid import QuadraticGridEncoding
from convattn.encodings.relative import RelativeEncoding
from convattn.encodings.rotary import RotaryEncoding
from convattn.encodings.scalar import ScalarEncoding
from convattn.operators.shifts import TokenGrid


def magnitude(parameter: Num[Array, "*shape"]) -> Num[Array, "*shape"]:
    """|parameter|, with the derivative one.

    >>> [float(part) for part in jax.value_and_grad(magnitude)(jnp.array(-3.0))]
    [3.0, 1.0]
    """
    return rising(parameter, parameter)


def rising(value: Array, parameter: Array) -> Array:
    """|value|, with the derivative one in `parameter`."""
    return jnp.abs(lax.stop_gradient(value)) + (parameter - lax.stop_gradient(parameter))


def distances(shifts: np.ndarray, centers: Array) -> Float[Array, "heads shifts axes"]:
    """|δ - Δ| on each axis."""
    centers = centers[:, None, :]
    return rising(centers - jnp.asarray(shifts, centers.dtype)[None], centers)


@singledispatch
def shift_majorant(
    encoding: object, shifts: np.ndarray, number_of_keys: int
) -> Float[Array, "heads shifts"]:
    """s⁺ at each shift, of an encoding whose scores depend on the shift alone.

    Raises:
        ValueError: For an encoding that is not registered.

    >>> encoding = BiasEncoding(jnp.array([[-2.0]]), None, ((0,),))
    >>> shift_majorant(encoding, np.array([[0], [5]]), 3).tolist()
    [[2.0, 0.0]]
    """
    raise ValueError(
        f"no rounding bound is derived for the scores of this {type(encoding).__name__}; register "
        "its majorant with shift_majorant"
    )


@shift_majorant.register(QuadraticEncoding)
def _(encoding: QuadraticEncoding, shifts: np.ndarray, number_of_keys: int) -> Array:
    squares = distances(shifts, encoding.centers) ** 2
    return magnitude(encoding.alpha)[:, None] * squares.sum(axis=-1)


@shift_majorant.register(QuadraticGridEncoding)
def _(encoding: QuadraticGridEncoding, shifts: np.ndarray, number_of_keys: int) -> Array:
    squares = distances(shifts, encoding.head_centers) ** 2
    return (magnitude(encoding.head_alpha)[:, None] * squares).sum(axis=-1)


@shift_majorant.register(GaussianEncoding)
def _(encoding: GaussianEncoding, shifts: np.ndarray, number_of_keys: int) -> Array:
    far = distances(shifts, encoding.centers)
    scaled = jnp.einsum("hij,hsj->hsi", magnitude(encoding.root_precision), far)
    return (scaled**2).sum(axis=-1) / 2


@shift_majorant.register(LearnedEncoding)
def _(encoding: LearnedEncoding, shifts: np.ndarray, number_of_keys: int) -> Array:
    tables = tuple(magnitude(table) for table in encoding.tables)
    return LearnedEncoding(magnitude(encoding.query), tables).shift_scores(shifts, number_of_keys)


@shift_majorant.register(RelativeEncoding)
def _(encoding: RelativeEncoding, shifts: np.ndarray, number_of_keys: int) -> Array:
    vectors = magnitude(encoding.vectors(shifts))
    parts = magnitude(encoding.query), magnitude(encoding.position_key)
    return jnp.einsum("he,hde,sd->hs", *parts, vectors)


@shift_majorant.register(EnumeratedEncoding)
def _(encoding: EnumeratedEncoding, shifts: np.ndarray, number_of_keys: int) -> Array:
    codes = encoding.shift_codes(shifts)[:, None]
    squares = distances(codes, encoding.targets[:, None])[..., 0] ** 2
    return magnitude(encoding.alpha)[:, None] * squares


@shift_majorant.register(PolygonEncoding)
def _(encoding: PolygonEncoding, shifts: np.ndarray, number_of_keys: int) -> Array:
    return magnitude(encoding.query) @ jnp.abs(encoding.features(shifts)).T


@shift_majorant.register(RotaryEncoding)
def _(encoding: RotaryEncoding, shifts: np.ndarray, number_of_keys: int) -> Array:
    # An angle is off by γ_n x, and so is its cosine: 1 + x bounds a wave's error, and has the
    # derivative that its slope's error needs when x²/2 is added.
    turns = magnitude(encoding.turns)
    turned = jnp.einsum("hja,sa->hjs", turns, jnp.asarray(np.abs(shifts), turns.dtype))
    angles = 2 * np.pi * turned
    height = magnitude(encoding.cosine) + magnitude(encoding.sine)
    return (height[..., None] * (1 + angles + angles**2 / 2)).sum(axis=1)


@shift_majorant.register(AxialRotaryEncoding)
def _(encoding: AxialRotaryEncoding, shifts: np.ndarray, number_of_keys: int) -> Array:
    first, *others = (
        shift_majorant(encoding.along(axis), shifts[:, [axis]], number_of_keys)
        for axis in range(len(encoding.turns))
    )
    return sum(others, first)


@shift_majorant.register(ScalarEncoding)
def _(encoding: ScalarEncoding, shifts: np.ndarray, number_of_keys: int) -> Array:
    logit = None if encoding.logit is None else -magnitude(encoding.logit)
    parts = magnitude(encoding.exponents), magnitude(encoding.log_bases)
    return ScalarEncoding(*parts, logit, encoding.offsets).shift_scores(shifts, number_of_keys)


@shift_majorant.register(BiasEncoding)
def _(encoding: BiasEncoding, shifts: np.ndarray, number_of_keys: int) -> Array:
    values = BiasEncoding(magnitude(encoding.values), None, encoding.offsets)
    table = values.shift_scores(shifts, number_of_keys)
    if encoding.leak is None:
        return table
    height, slope = jax.value_and_grad(
        lambda leak: jnp.log1p(number_of_keys * ((1 - leak) / leak))
    )(lax.stop_gradient(encoding.leak))
    return table * (height - slope * (encoding.leak - lax.stop_gradient(encoding.leak)))


@shift_majorant.register(MixtureEncoding)
def _(encoding: MixtureEncoding, shifts: np.ndarray, number_of_keys: int) -> Array:
    return MixtureEncoding(magnitude(encoding.weights), encoding.offsets).shift_scores(
        shifts, number_of_keys
    )


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

    Raises:
        ValueError: For an encoding whose scores have no majorant here.

    >>> from convattn.encodings import QuadraticEncoding
    >>> encoding = QuadraticEncoding(jnp.array([2.0]), jnp.array([[1.0]]))
    >>> layer = AttentionLayer(encoding, None, None, patch_size=(1,), stride=(1,), dilation=(1,))
    >>> grid = TokenGrid((1,), ((0, 3),))
    >>> score_majorant(layer, grid, jnp.zeros((1, 4, 1))).pairs.tolist()
    [[[2.0, 0.0, 2.0, 8.0]]]
    """
    encoding, count = layer.encoding, grid.number_of_keys
    if isinstance(encoding, AbsoluteEncoding):
        positions = magnitude(encoding.positions(grid))
        left = jnp.einsum("qd,hde->hqe", positions[query_rows(grid)], magnitude(encoding.query))
        right = jnp.einsum("kd,hde->hke", positions, magnitude(encoding.key))
        pairs = jnp.einsum("hqe,hke->hqk", left, right)
    elif isinstance(encoding, AxialEncoding):
        pairs = axial_majorant(encoding, grid)
    else:
        pairs = shift_majorant(encoding, grid.shifts, count)[:, grid.shift_index()]
    if layer.content is not None:
        return PairScores(pairs[None] + content_majorant(layer.content, grid, keys), None)
    far = far_shift(encoding)
    return PairScores(pairs, None if far is None else shift_majorant(encoding, far, count)[:, 0])


def score_roundings(layer: AttentionLayer, features: int) -> int:
    """n: on the longest path of a score, or of a derivative of it, there are so many roundings."""
    encoding, count = layer.encoding, 16
    if isinstance(encoding, AbsoluteEncoding):
        count += 2 * encoding.query.shape[1] + encoding.query.shape[2]
    elif isinstance(encoding, AxialEncoding):
        count += sum(2 * part.shape[1] + part.shape[2] for part in encoding.query)
    elif isinstance(encoding, RelativeEncoding):
        count += encoding.position_key.shape[1] + encoding.position_key.shape[2]
    elif isinstance(encoding, LearnedEncoding):
        count += encoding.query.shape[1]
    elif isinstance(encoding, RotaryEncoding):
        count += 16 + encoding.turns.shape[1] + 2 * encoding.turns.shape[2]
    elif isinstance(encoding, AxialRotaryEncoding):
        count += 16 + sum(part.shape[1] + 2 for part in encoding.turns)
    elif isinstance(encoding, GaussianEncoding):
        count += 4 * encoding.centers.shape[1]
    if layer.content is not None:
        count += 2 * features + layer.content.query.shape[2] + 8
        count += 0 if layer.content.tables is None else len(layer.content.tables) + 1
    return count


def gain_majorant(encoding: PositionalEncoding, number_of_keys: int) -> Float[Array, "heads"]:
    """Σ_δ t_δ^h + |N - T| of a scalar encoding, the gain without its sign; else ones."""
    if not isinstance(encoding, ScalarEncoding):
        return jnp.ones(encoding.heads)
    exponents, logs = encoding.exponents[:, None], encoding.log_bases[None]
    product = magnitude(exponents) * magnitude(logs)
    powers = lax.stop_gradient(jnp.exp(exponents * logs)) * (
        1 + product - lax.stop_gradient(product)
    )
    outside = number_of_keys - len(encoding.offsets) if encoding.logit is None else 0
    return powers.sum(axis=-1) + abs(outside)


def query_rows(grid: TokenGrid) -> Int[np.ndarray, "queries"]:
    """Which of the keys the queries are."""
    return np.ravel_multi_index(tuple(grid.query_positions.T), grid.keys)


def far_shift(encoding: PositionalEncoding) -> Int[np.ndarray, "1 axes"] | None:
    """A shift without an entry, if the encoding has entries."""
    offsets = getattr(encoding, "offsets", None)
    return None if offsets is None else np.abs(np.array(offsets)).max(axis=0, keepdims=True) + 1


def axial_majorant(encoding: AxialEncoding, grid: TokenGrid) -> Float[Array, "heads queries keys"]:
    """The sum over the axes of |P^a_q||W^a_qry||W^a_key|ᵀ|P^a_k|ᵀ."""
    total = jnp.zeros((encoding.heads, 1, 1))
    for axis, (query, key) in enumerate(zip(encoding.query, encoding.key, strict=True)):
        positions = magnitude(encoding.positions(grid, axis))
        own = positions[grid.ring[axis][0] :][: grid.queries[axis]]
        left = jnp.einsum("qd,hde->hqe", own, magnitude(query))
        here = jnp.einsum("hqe,kd,hde->hqk", left, positions, magnitude(key))
        total = total[:, :, None, :, None] + here[:, None, :, None, :]
        total = total.reshape(encoding.heads, total.shape[1] * total.shape[2], -1)
    return total


def content_majorant(
    content: ContentScores, grid: TokenGrid, keys: Num[Array, "batch keys features"]
) -> Float[Array, "batch heads queries keys"]:
    """(|X_q||Q| + |a|)·(|X_k||K| + |c| + |r_(k - q)|) / scale."""
    tokens = magnitude(keys)
    positive = jax.tree.map(magnitude, content)
    return positive.scores(tokens[:, query_rows(grid)], tokens, grid)
