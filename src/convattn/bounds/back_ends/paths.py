"""The majorants of values and gradients, in float64: the derivation is in `bounds.py`."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from convattn.bounds.back_ends.counts import Roundings
from convattn.bounds.back_ends.scores import (
    PairScores,
    exact_scores,
    gain_majorant,
    score_majorant,
)
from convattn.bounds.back_ends.weights import WeightRounding, weight_rounding
from convattn.encodings.layer import AttentionLayer
from convattn.operators.attention import multi_head_self_attention
from convattn.operators.patches import add_zero_ring
from convattn.operators.shifts import TokenGrid

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
    exact = value_path(weights.weights, *parts)
    wrong = value_path(weights.error, *parts)
    pair = exact, widen(roundings.values, exact, wrong)
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
    passed, *exact = jax.vjp(value_path, weights.weights, *parts)[1](cotangent)
    _, *wrong = jax.vjp(value_path, weights.error, *parts)[1](cotangent)
    to_scores = jax.vjp(lambda *given: score_majorant(given[0], grid, given[1]), layer, keys)[1]
    to_gains = jax.vjp(lambda part: gain_majorant(part, grid.number_of_keys), layer.encoding)[1]
    to_tokens = jax.vjp(lambda given: ringed(given, grid), tokens)[1]
    score_pair = softmax_majorants(weights, passed)
    trees = []
    for scores, (of_keys, value, output, gains) in zip(score_pair, (exact, wrong), strict=True):
        positions, through_scores = to_scores(scores)
        (through_gains,) = to_gains(gains)
        encoding = jax.tree.map(jnp.add, positions.encoding, through_gains)
        trees.append((positions.content, encoding, through_scores, of_keys, value, output))
    rates = (*(roundings.parameters,) * 3, *(roundings.maps,) * 3)
    errors = tuple(map(widen, rates, *trees))

    def arrange(tree: tuple[Any, ...], bias: Array) -> tuple[AttentionLayer, Array]:
        content, encoding, through_scores, of_keys, value, output = tree
        found = replace(layer, encoding=encoding, value=value, output=output, content=content)
        found = found if layer.bias is None else replace(found, bias=bias)
        return found, to_tokens(through_scores + of_keys)[0]

    bias = cotangent.sum(axis=(0, 1))
    pair = arrange(trees[0], bias), arrange(errors, roundings.maps * bias)
    magnitudes = underflow(layer, keys, weights, parts[-1], roundings)
    return pair, magnitudes * (1 + cotangent.max(initial=0.0))


def widen(rate: Any, exact: Any, wrong: Any) -> Any:
    """wrong + rate·(exact + wrong), leaf by leaf."""
    return jax.tree.map(lambda e, w: w + rate * (e + w), exact, wrong)


def ringed(
    tokens: Float[Array, "batch *grid features"], grid: TokenGrid
) -> Float[Array, "batch keys features"]:
    """The tokens with their ring, in one row."""
    batch, features = tokens.shape[0], tokens.shape[-1]
    return add_zero_ring(tokens, grid.ring).reshape(batch, grid.number_of_keys, features)


def value_path(
    weights: Array, tokens: Array, value: Array | None, output: Array | None, gains: Array
) -> Float[Array, "batch queries out_features"]:
    """Σ_h g_h A_h X V_h O_h."""
    return multi_head_self_attention(tokens, weights * gains[:, None, None], value, output)


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
    gains = gain_majorant(layer.encoding, grid.number_of_keys)
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
