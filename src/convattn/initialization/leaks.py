"""How much of a head's attention can miss its target, whatever the image, and how sharp that takes.

With the score v_k/(σ_q σ_k) of key k and the target t, 1 - A(q, t) = S/(1 + S) for S = Σ_(k≠t)
e^D_k and D_k = (v_k/σ_k - v_t/σ_t)/σ_q. Where each deviation can be anywhere in its range, D_k is
largest with each of the three at one of its ends.

The deviations: |x - μ1|² is at most B² + |u|², and at least |u|² - (Σu)²/8 with the eight numbers u
that are stored, which are not quite orthogonal to the ones.

v is worked out from the stored query and key maps. Rounding leaves some of the mean in it, at most
|μ| times sums that are formed, which are added.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np
from jaxtyping import Float, Int

from convattn.initialization.positions import CHANNELS, PositionCode, Shift, targets
from convattn.networks.vision_transformer.state_dicts import Block, VisionTransformer

SLACK = 1 + 2.0**-30  # for the rounding of sums of nonnegative numbers in float64
ROUNDING = 2.0**-40  # of a score's numerator, relative to the sum of its absolute terms
DOUBLINGS, HALVINGS = 60, 50


@dataclass(frozen=True)
class Deviations:
    """The range of σ in a layer."""

    lowest: float
    highest: float


@dataclass(frozen=True)
class PositionNorms:
    """Of the reserved channels, over all tokens.

    Attributes:
        least: Of what stands there less its mean, the least norm.
        most: The largest norm.
        leaning: The largest sum: zero but for rounding.
    """

    least: float
    most: float
    leaning: float


def position_norms(vectors: Float[np.ndarray, "tokens channels"]) -> PositionNorms:
    """The three numbers of stored tokens.

    >>> position_norms(np.array([[3.0, -3.0], [4.0, -4.0]])).leaning
    0.0
    """
    centred = vectors - vectors.mean(axis=1, keepdims=True)
    least = float(np.linalg.norm(centred, axis=1).min()) / SLACK
    most = float(np.linalg.norm(vectors, axis=1).max()) * SLACK
    return PositionNorms(least, most, float(np.abs(vectors.sum(axis=1)).max()))


def position_channels(
    model: VisionTransformer, grid: tuple[int, int]
) -> Float[np.ndarray, "tokens channels"]:
    """What all tokens hold in the reserved channels."""
    assert model.positions is not None
    tokens = model.positions[-grid[0] * grid[1] :]
    return np.concatenate([model.prefix, tokens])[:, -CHANNELS:]


def deviations(width: int, epsilon: float, content: float, norm: float) -> Deviations:
    """From |x_c| ≤ content and |u| = norm.

    >>> 2.5 < deviations(4, 0.0, 3.0, 4.0).highest < 2.5001
    True
    """
    low, high = norm**2 / width + epsilon, (content**2 + norm**2) / width + epsilon
    return Deviations(float(np.sqrt(low)) / SLACK, float(np.sqrt(high)) * SLACK)


def leaks(
    numerators: Float[np.ndarray, "queries keys"],
    slack: Float[np.ndarray, "queries keys"],
    targets: Int[np.ndarray, " queries"],
    deviation_range: Deviations,
) -> Float[np.ndarray, " queries"]:
    """The largest weight that each query can give to other keys than its target.

    >>> one = np.array([[1.0, 0.0]])
    >>> leaks(one, 0 * one, np.array([0]), Deviations(1.0, 1.0)).round(4).tolist()  # 1/(1 + e)
    [0.2689]
    """
    ends = np.array([1 / deviation_range.highest, 1 / deviation_range.lowest])
    rows = np.arange(len(targets))
    at = (numerators - slack)[rows, targets]
    target = np.minimum(at * ends[0], at * ends[1])
    above = numerators + slack
    others = np.maximum(above * ends[0], above * ends[1])
    ahead = others - target[:, None]
    ahead = np.maximum(ahead * ends[0], ahead * ends[1])
    ahead[rows, targets] = -np.inf
    with np.errstate(over="ignore"):
        total = np.exp(ahead).sum(axis=1) * SLACK
    return np.where(np.isinf(total), 1.0, total / (1 + np.where(np.isinf(total), 0, total)))


def stored_leaks(
    model: VisionTransformer,
    code: PositionCode,
    block: Block,
    shifts: tuple[Shift, ...],
    content: float,
) -> Float[np.ndarray, " heads"]:
    """The largest leak of each head of a block, from the numbers that the network holds."""
    before, width = len(model.prefix), len(model.patch_bias)
    vectors, channels = position_channels(model, code.grid), width - CHANNELS
    norms = position_norms(vectors)
    low, high = (
        deviations(width, model.epsilon, content, norm) for norm in (norms.least, norms.most)
    )
    deviation_range = Deviations(low.lowest, high.highest)
    mean = (np.sqrt(channels) * content + norms.leaning) / width
    query, key = (
        block[f"{name}.weight"].reshape(len(shifts), -1, width)[..., channels:].swapaxes(1, 2)
        for name in ("query", "key")
    )
    root, worst = np.sqrt(query.shape[2]), []
    for head, shift in enumerate(shifts):
        queries, keys = vectors[before:] @ query[head], vectors @ key[head]
        sums = query[head].sum(axis=0), key[head].sum(axis=0)
        slack = mean * (np.abs(queries @ sums[1])[:, None] + np.abs(keys @ sums[0])[None])
        slack = slack + mean**2 * abs(float(sums[0] @ sums[1]))
        absolute = (
            np.abs(part) @ np.abs(m[head])
            for part, m in ((vectors[before:], query), (vectors, key))
        )
        terms = next(absolute) @ next(absolute).T
        slack = (slack + ROUNDING * terms) * SLACK
        at = targets(code.grid, code.border, shift, before)
        rows = leaks(queries @ keys.T / root, slack / root, at, deviation_range)
        worst.append(float(rows.max()))
    return np.array(worst)


def largest_ratio(code: PositionCode, before: int) -> float:
    """As far as deviations may differ by a factor, every target stays ahead at some sharpness.

    Infinite but for the border "edge", whose targets outside have negative scores.

    >>> [round(largest_ratio(PositionCode.of((8, 8), (r, r), "edge"), 0), 2) for r in (1, 2, 3)]
    [2.75, 1.31, 1.14]
    """
    if code.border != "edge":
        return np.inf
    features = code.features(before)
    keys, least = features @ code.key(), np.inf
    for shift in product(*(range(-r, r + 1) for r in code.reach)):
        scores = features[before:] @ code.query((shift[0], shift[1])) @ keys.T
        at = targets(code.grid, code.border, (shift[0], shift[1]), before)
        own = scores[np.arange(len(at)), at]
        others = scores[own < 0]
        others[np.arange(len(others)), at[own < 0]] = -np.inf
        ratios = others.max(axis=1, initial=-np.inf) / own[own < 0]
        least = min(least, float(ratios.min(initial=np.inf)))
    return least


def sharpest_needed(
    code: PositionCode, shifts: list[Shift], before: int, deviation_range: Deviations, leak: float
) -> float:
    """The least factor of s with which no head leaks more."""
    features = code.features(before)
    keys = features @ code.key()
    heads = [
        (
            features[before:] @ code.query(shift) @ keys.T,
            targets(code.grid, code.border, shift, before),
        )
        for shift in shifts
    ]

    def largest(factor: float) -> float:
        return max(float(leaks(factor * s, 0 * s, at, deviation_range).max()) for s, at in heads)

    return least_factor(
        largest,
        leak,
        f"border={code.border!r}: the deviation of a token varies from "
        f"{deviation_range.lowest:.3g} to {deviation_range.highest:.3g}; take a larger "
        "position_norm, or border='circular'",
        deviation_range.highest**2,
    )


def least_factor(
    largest: Callable[[float], float], leak: float, cause: str, start: float = 1.0
) -> float:
    """The least factor of the scores with which the largest leak is no more than this.

    The leak falls as the factor rises if every target is ahead; so it is bisected.

    Args:
        start: A factor of about the right size.
    """
    if largest(0.0) <= leak:
        raise ValueError(
            f"leak={leak}, but expected less than {largest(0.0):.3g}, which heads leak that look "
            "at all tokens alike"
        )
    high = start
    for _ in range(DOUBLINGS):
        if largest(high) <= leak:
            break
        high *= 2
    else:
        raise ValueError(f"no sharpness keeps the leak below {leak} with {cause}")
    low = 0.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if largest(middle) > leak else (low, middle)
    return high
