"""The majorants of values and gradients, in float64, and how many roundings lie on a path.

The derivation is in `bounds.py`; here is that of the attention weights, each with its own bound.

Let a head have the scores s_k at the keys of a query, with the greatest m, and let the computed
ones be off by e_k (`scores.py`). The arguments of exp are off by

    E_k = e_k(1 + u) + u(m - s_k + max e),

the sum of the exponentials by a factor between Σ A e^(-E) and Σ A e^E, and by convexity both its
logarithm and that of the reciprocal are at most log Σ A e^E in magnitude. exp counts as eight
roundings. So the computed weight is A_k(1 + η_k) with

    |η_k| ≤ e^(λ_k) - 1,   λ_k = E_k + log Σ_j A_j e^(E_j) + κ,

where κ collects the relative roundings: exp twice, a sum of at most N + T + 8 terms, quotients and
products, all of it once for each axis, since a back end may multiply the softmaxes of the axes.
(The E and the logarithms of the axes add up to those of the whole: Σ A e^E factors as A does.)

*One number at all shifts but a few.* A back end may write such a row as c at every key and A_k - c
at the few, c the weight of a key without an entry: Σ_k A_k X_k = Σ_k c X_k + Σ_few (A_k - c) X_k.
Its terms are bounded by B_k = c + |A_k - c| in place of A_k, and c + A_k ≤ 2B_k, so that the
difference of the two, each off by its own factor, is off by A_k(e^(λ_k) - 1) + 2c(e^(λ_c) - 1).

*Underflow.* A weight in the subnormal range may be read as zero, which moves every weight by less
than (2N + 16)·tiny for each axis.
"""

import math
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from convattn.encodings.layer import AttentionLayer
from convattn.encodings.scalar import ScalarEncoding
from convattn.fast.maps import out_features, scaled
from convattn.operators.attention import multi_head_self_attention
from convattn.operators.patches import add_zero_ring
from convattn.operators.roundoff import EXP_ERROR, gamma
from convattn.operators.shifts import TokenGrid
from convattn_ledger.bounds.back_ends.scores import (
    PairScores,
    exact_scores,
    score_majorant,
    score_roundings,
)


class Roundings(NamedTuple):
    """The relative errors of the parts of a path.

    Attributes:
        unit, tiny: The unit roundoff, and the smallest normal number.
        score: γ of a score and of a derivative of it.
        weight: κ, the logarithm of the factor by which a weight is off beside its scores.
        values, maps, parameters: e^ρ - 1 of values, of the gradients of tokens and maps, and of
            those of the parameters of scores and gains.
        score_terms, axes: n_s, and the number of axes.
        terms: The product of the lengths of all sums.
    """

    unit: float
    tiny: float
    score: float
    weight: float
    values: float
    maps: float
    parameters: float
    score_terms: float
    axes: float
    terms: float


def count_roundings(
    layer: AttentionLayer,
    grid: TokenGrid,
    batch: int,
    features: int,
    unit: float,
    tiny: float,
) -> Roundings:
    """The counts of `bounds.py`, as relative errors."""
    queries, keys, heads = math.prod(grid.queries), grid.number_of_keys, layer.heads
    width = features if layer.value is None else layer.value.shape[2]
    out, axes = out_features(layer, features), len(grid.queries)
    entries = len(getattr(layer.encoding, "offsets", ()))
    score_terms = score_roundings(layer, features)
    values = heads * (features + width + keys + entries) + width + 32
    maps = values + heads * (queries + out) + batch * (queries + keys)
    parameters = maps + batch * queries * (keys + features + width + out)
    parameters += 2 * (keys + entries + score_terms) + 64
    if layer.content is not None and layer.content.tables is not None:
        parameters += batch * heads * queries * keys
    of_exponents = 2 * math.atanh(EXP_ERROR * unit) - math.log1p(-gamma(keys + entries + 8, unit))
    gain = 0.0
    if isinstance(layer.encoding, ScalarEncoding):
        parts = layer.encoding.exponents, layer.encoding.log_bases
        height = math.prod(float(np.abs(np.asarray(part)).max()) for part in parts)
        gain = gamma(EXP_ERROR + 3, unit) * height + math.atanh(EXP_ERROR * unit)
        gain += math.log1p(gamma(entries + 3, unit))

    def relative(count: int) -> float:
        return math.expm1(gain + math.log1p(gamma(count, unit)))

    return Roundings(
        unit=unit,
        tiny=tiny,
        score=gamma(score_terms, unit),
        weight=axes * (of_exponents + 8 * unit),
        values=relative(values),
        maps=relative(maps),
        parameters=relative(parameters),
        score_terms=score_terms,
        axes=axes,
        terms=32.0 * batch * queries * keys**2 * heads * features * width * out * score_terms,
    )


class WeightRounding(NamedTuple):
    """Majorants of the weights, and bounds on their errors.

    Attributes:
        weights: B, `[heads, queries, keys]`, with a batch axis before if there is content.
        error: ΔB, of the same shape: how far each weight can be off.
        background: c, `[heads, queries, 1]`, or None.
        background_error: How far c can be off, or None.
    """

    weights: Array
    error: Array
    background: Array | None
    background_error: Array | None


def weight_rounding(
    scores: PairScores,
    error: PairScores,
    unit: float | Array,
    relative: float | Array,
    flush: float | Array,
) -> WeightRounding:
    """B and ΔB of the derivation.

    Args:
        scores: Exact ones, in float64.
        error: e, how far each can be off.
        unit: u.
        relative: κ.
        flush: What underflow adds to each weight.

    >>> exact, off = PairScores(jnp.zeros((1, 1, 4)), None), PairScores(jnp.zeros((1, 1, 4)), None)
    >>> rounding = weight_rounding(exact, off, *jnp.array([0.0, 0.5, 0.0]))
    >>> rounding.weights[0, 0, 0].item(), round(rounding.error[0, 0, 0].item(), 4)
    (0.25, 0.1622)
    """
    greatest = scores.pairs.max(axis=-1, keepdims=True)
    normalizer = jax.nn.logsumexp(scores.pairs, axis=-1, keepdims=True)
    slack = unit * error.pairs.max(axis=-1, keepdims=True)

    def exponent(score: Array, off: Array) -> Array:
        return off * (1 + unit) + unit * jnp.abs(greatest - score) + slack

    here = exponent(scores.pairs, error.pairs)
    weights = jnp.exp(scores.pairs - normalizer)
    # Σ A = 1, so that log Σ A e^E is the log1p below, which keeps what is tiny.
    spread = jnp.log1p((weights * jnp.expm1(here)).sum(axis=-1, keepdims=True)) + relative
    wrong = weights * jnp.expm1(here + spread) + flush
    if scores.background is None or error.background is None:
        return WeightRounding(weights, wrong, None, None)
    background = scores.background[:, None, None]
    everywhere = jnp.exp(background - normalizer)
    off = everywhere * jnp.expm1(exponent(background, error.background[:, None, None]) + spread)
    off = off + flush
    majorant = everywhere + jnp.abs(weights - everywhere)
    return WeightRounding(majorant, wrong + 2 * off, everywhere, off)


Pair = tuple[Any, Any]  # a majorant, and a bound on the error, of the same structure


def value_majorants(
    layer: AttentionLayer,
    tokens: Float[Array, "batch *grid features"],
    grid: TokenGrid,
    roundings: Roundings,
) -> tuple[Pair, Array]:
    """G and a bound on the error of what it bounds, without bias, and what underflow adds.

    Returns:
        ((`[batch, queries, out_features]`, the same), scalar).
    """
    keys, weights, parts = path_parts(layer, tokens, grid, roundings)
    exact = _value_path(weights.weights, *parts)
    wrong = _value_path(weights.error, *parts)
    pair = exact, inflate(roundings.values, exact, wrong)
    return pair, underflow(layer, keys, weights, parts[-1], roundings)


def gradient_majorants(
    layer: AttentionLayer,
    tokens: Float[Array, "batch *grid features"],
    cotangent: Float[Array, "batch queries out_features"],
    grid: TokenGrid,
    roundings: Roundings,
) -> tuple[Pair, Array]:
    """Majorants of the gradients of a layer and its tokens, bounds on their errors, and underflow.

    Args:
        cotangent: |Y'|.

    Returns:
        ((a tree like `(layer, tokens)`, the same), scalar).
    """
    keys, weights, parts = path_parts(layer, tokens, grid, roundings)
    passed, *exact = jax.vjp(_value_path, weights.weights, *parts)[1](cotangent)
    _, *wrong = jax.vjp(_value_path, weights.error, *parts)[1](cotangent)
    _, to_scores = jax.vjp(lambda *args: score_majorant(args[0], grid, args[1]), layer, keys)
    to_gains = jax.vjp(lambda part: part.gain_majorant(grid.number_of_keys), layer.encoding)[1]
    to_tokens = jax.vjp(lambda primal: ringed(primal, grid), tokens)[1]
    score_pair = softmax_majorants(weights, passed)
    trees = []
    for scores, (of_keys, value, output, gains) in zip(score_pair, (exact, wrong), strict=True):
        positions, through_scores = to_scores(scores)
        (through_gains,) = to_gains(gains)
        encoding = jax.tree.map(jnp.add, positions.encoding, through_gains)
        trees.append((positions.content, encoding, through_scores, of_keys, value, output))
    rates = (*(roundings.parameters,) * 3, *(roundings.maps,) * 3)
    errors = tuple(map(inflate, rates, *trees))

    def arrange(tree: tuple[Any, ...], bias: Array) -> tuple[AttentionLayer, Array]:
        content, encoding, through_scores, of_keys, value, output = tree
        gradients = replace(layer, encoding=encoding, value=value, output=output, content=content)
        gradients = gradients if layer.bias is None else replace(gradients, bias=bias)
        return gradients, to_tokens(through_scores + of_keys)[0]

    bias = cotangent.sum(axis=(0, 1))
    pair = arrange(trees[0], bias), arrange(errors, roundings.maps * bias)
    magnitudes = underflow(layer, keys, weights, parts[-1], roundings)
    return pair, magnitudes * (1 + cotangent.max(initial=0.0))


def inflate(rate: Any, exact: Any, wrong: Any) -> Any:
    """wrong + rate·(exact + wrong), leaf by leaf."""
    return jax.tree.map(lambda e, w: w + rate * (e + w), exact, wrong)


def ringed(
    tokens: Float[Array, "batch *grid features"], grid: TokenGrid
) -> Float[Array, "batch keys features"]:
    """The tokens with their ring, in one row."""
    batch, features = tokens.shape[0], tokens.shape[-1]
    return add_zero_ring(tokens, grid.ring).reshape(batch, grid.number_of_keys, features)


def _value_path(
    weights: Array, tokens: Array, value: Array | None, output: Array | None, gains: Array
) -> Float[Array, "batch queries out_features"]:
    """Σ_h g_h A_h X V_h O_h."""
    return multi_head_self_attention(tokens, scaled(weights, gains, weights.dtype), value, output)


def path_parts(
    layer: AttentionLayer, tokens: Array, grid: TokenGrid, roundings: Roundings
) -> tuple[Array, WeightRounding, tuple[Any, ...]]:
    """The keys; B and ΔB; and |X|, |V|, |O| and g⁺."""
    keys = ringed(tokens, grid)
    largest = jnp.prod(jnp.stack([1 + peak(leaf) for leaf in jax.tree.leaves(layer)]))
    floor = roundings.score_terms * roundings.tiny * (largest * (1 + peak(keys))) ** 2
    floor = floor * float(max(grid.keys)) ** 2

    def off(majorant: Array) -> Array:
        return roundings.score * majorant + floor

    errors = PairScores(*jax.tree.map(off, tuple(score_majorant(layer, grid, keys))))
    weights = weight_rounding(
        exact_scores(layer, grid, keys),
        errors,
        roundings.unit,
        roundings.weight,
        roundings.axes * (2 * grid.number_of_keys + 16) * roundings.tiny,
    )
    value, output = jax.tree.map(jnp.abs, (layer.value, layer.output))
    encoding: Any = layer.encoding
    gains = encoding.gain_majorant(grid.number_of_keys)
    return keys, weights, (jnp.abs(keys), value, output, gains)


def softmax_majorants(
    weights: WeightRounding, passed: Float[Array, "*batch heads queries keys"]
) -> tuple[PairScores, PairScores]:
    """D and a bound on its error without (e^ρ - 1)(D + ΔD), from dA = `passed`."""
    row = (weights.weights * passed).sum(axis=-1, keepdims=True)
    wrong = (weights.error * passed).sum(axis=-1, keepdims=True)
    exact = weights.weights * (passed + row)
    error = weights.error * (passed + row + wrong) + weights.weights * wrong
    if weights.background is None or weights.background_error is None:
        return PairScores(exact, None), PairScores(error, None)
    count = passed.shape[-1]
    everywhere = 2 * passed.sum(axis=-1, keepdims=True) + count * row
    through = weights.background * everywhere
    off = weights.background_error * (everywhere + count * wrong)
    off = off + weights.background * count * wrong
    return PairScores(exact, through.sum((1, 2))), PairScores(error, off.sum((1, 2)))


def underflow(
    layer: AttentionLayer, keys: Array, weights: WeightRounding, gains: Array, roundings: Roundings
) -> Float[Array, ""]:
    """The smallest normal number, times the lengths of sums and all that can multiply it."""
    parts = [1 + peak(leaf) for leaf in (*jax.tree.leaves(layer), keys, gains, weights.weights)]
    return roundings.tiny * roundings.terms * jnp.prod(jnp.stack(parts)) ** 2


def peak(array: Array) -> Float[Array, ""]:
    """The largest magnitude, zero of nothing."""
    return jnp.abs(array).max(initial=0.0)
