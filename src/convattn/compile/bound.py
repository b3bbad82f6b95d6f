"""How far a compiled vision transformer can be from its network, on given images.

Let ṽ be what the transformer stores, v what the network computes, and e_n the part of node n's
difference that arises there. With f_n its function, A_n its affine map and σ_n the secant of f_n
between the two runs,

    ṽ_n - v_n = σ_n · (A_n(ṽ) - A_n(v)) + e_n.

This recursion is linear in the e_n. Its transpose, from each logit back, gives each entry of each
node a weight w, and |logit difference| ≤ Σ_n |<w_n, e_n>|. What arises at a node:

1. *Of each token in common.* LayerNorm multiplies all numbers of token τ by 1 - η_τ, 0 ≤ η_τ ≤
   |f_τ|²/(2(Λ² + εD/2)), and rounds that factor by γ_(D+8). In attention <w, A(η v)> = Σ_τ η_τ
   <(Aᵀw)_τ, v_τ> ≤ Σ_τ η_τ |<(Aᵀw)_τ, v_τ>|; in the MLP, with z what the function is applied to,
   Σ_τ η_τ |<w_τ, Σ jump·ReLU(t - z)>|.
2. *Of each number.* GELU for ReLU: m Σ|jump|/s where a bend is near (`scalar.py`, (2)); from |s(z -
   t)| = 40 on it is below 10^(-300). What softmax leaves on other tokens: at most N e^(-S') a head,
   twice that of the largest number that any token holds; S' is what η and the rounding of scores
   leave of S. What an earlier value has left in a channel that was cleared, as the stream has it.
   Rounding: γ_k of the sums of absolute values, k counting two for each number that a head reads,
   one for each that it passes on, N for a mean, and 24 for the rest. LayerNorm subtracts at most μ
   = |mean| + γ_D (mean|x| + |mean|)/2 from all numbers of a token. That cancels in pairs, but the
   sums in which a head, a unit or a logit reads pairs are rounded with it: γ_12 μ where a number is
   read alone, γ_(12+2n) μ where n are added up.

The first two sentences of both are *construction*, in exact arithmetic; the rest is *rounding*.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from convattn.compile.affine import Value
from convattn.compile.evaluation import (
    absolute_values,
    affine_values,
    node_values,
    one_values,
    secant,
    transposed_values,
)
from convattn.compile.network import Node
from convattn.compile.parameters import GRID, Constants, lost_to_rounding
from convattn.compile.plan import Head, Plan
from convattn.compile.scalar import GELU_DEVIATION, GELU_SLOPE
from convattn.compile.stock import Streams
from convattn.compile.stored_values import StoredValues
from convattn.operators.roundoff import gamma, unit_roundoff

_OTHER_ROUNDINGS = 24
_READ = 12  # of a number by itself: LayerNorm's four, the weights', a sum of four
_NEAR = 40.0  # beyond, z·Φ(-z) is below 1e-300


@dataclass(frozen=True)
class Bound:
    """For each image and logit, `[batch, classes]`.

    Attributes:
        construction: In exact arithmetic.
        rounding: What is added by rounding, in the transformer and in the network's evaluation.
    """

    construction: np.ndarray
    rounding: np.ndarray

    @property
    def total(self) -> np.ndarray:
        """Both."""
        return self.construction + self.rounding


class _Arising(NamedTuple):
    """What arises at a node.

    Attributes:
        attention: η of each source's points, by value.
        inside: η of the node's own points.
        moved: Σ jump·ReLU(t - z).
        common: The rounding of the factor that a token's numbers have in common.
        construction, rounding: Of each number.
    """

    attention: Mapping[Value, np.ndarray]
    inside: np.ndarray
    moved: np.ndarray
    common: float
    construction: np.ndarray
    rounding: np.ndarray


def derived_bound(
    plan: Plan, constants: Constants, images: np.ndarray, streams: Streams
) -> tuple[Bound, np.ndarray]:
    """The bound on how far a run of the transformer is from the network in float64; its logits.

    Args:
        images: `[batch, rows, columns, channels]`.
        streams: Of the run on them.
    """
    network, run = plan.network, _Run(plan, constants, streams)
    exact = node_values(network, images)
    stored: dict[Value, np.ndarray] = {network.image: exact[network.image]}
    slopes, arising = [], []
    for node in network.nodes:
        own = [n for n, block in enumerate(plan.blocks) if block.node is node]
        numbers = affine_values(node.affine, stored)
        slopes.append(secant(node.units, affine_values(node.affine, exact), numbers))
        arising.append(run.arising(node, own, stored, exact, numbers))
        stored[node.value] = run.after(node.value)
    return _carried(run, stored, slopes, arising), affine_values(network.logits, exact)


class _Run(StoredValues):
    """A run, and what arises in it."""

    def arising(
        self,
        node: Node,
        own: list[int],
        stored: dict[Value, np.ndarray],
        exact: dict[Value, np.ndarray],
        numbers: np.ndarray,
    ) -> _Arising:
        """What arises at a node."""
        units, unit, wide = node.units, self.unit, unit_roundoff(np.float64)
        befores, between = [self.before[n] for n in own], self.between[own[-1]]
        attention = {
            value: np.max([self.deviation(value.lattice, x) for x in befores], axis=0)
            for value, _ in node.affine.terms
        }
        sizes, reach = absolute_values(node.affine, stored), units.lipschitz
        heads = [head for n in own for head in self.plan.blocks[n].heads]
        tokens, common = between.shape[1], self.plan.width + 8
        most = max(self.largest_deviation(x) for x in befores)
        mean = max(self.mean(x) for x in befores)
        share = min(tokens * self._leak(most, mean), 1.0)
        leak = 2 * share * sum(self._passed(n) for n in own)
        rest = np.abs(self.read(node.value, befores[0]))
        reads = max((2 * len(head.sources) for head in heads), default=0)
        passes = sum(head.output.shape[0] for head in heads)
        means = tokens * any(head.reading.kind == "mean" for head in heads)
        count = reads + passes + means + len(own) + _OTHER_ROUNDINGS
        of_mean = sum(gamma(_readings(head), unit) * _sum_of_map(head) for head in heads)
        of_attention = gamma(count, unit) * sizes + mean * of_mean
        margin = leak + rest + of_attention + (gamma(common, unit) + most) * sizes
        margin = margin + _NEAR / self.constants.slope
        moved, around = np.zeros_like(numbers), np.abs(numbers)
        near, inside, subtracted = np.zeros_like(numbers), self.mean(between), 0.0
        for bend, jump, side in units.bends:
            moved = moved + jump * np.maximum(side * (numbers - bend), 0)
            around = around + abs(jump) * (abs(bend) + np.abs(numbers))
            subtracted = subtracted + abs(jump) * (1 + abs(bend)) * inside
            near += abs(jump) * (np.abs(bend - numbers) <= margin)
        if units.is_gelu:
            moved, around = GELU_SLOPE * np.abs(numbers), 2 * around
            subtracted = GELU_SLOPE * inside
        of_units = gamma(units.count + _OTHER_ROUNDINGS, unit) + gamma(8, wide)
        terms = sum(len(matrix) for taps in node.affine.terms.values() for matrix in taps.values())
        return _Arising(
            attention,
            self.deviation(node.value.lattice, between),
            moved,
            gamma(common, unit),
            reach * leak + near * GELU_DEVIATION / self.constants.slope,
            reach
            * (of_attention + rest + gamma(terms + 8, wide) * absolute_values(node.affine, exact))
            + of_units * around
            + gamma(_READ, unit) * subtracted,
        )

    def _leak(self, deviation: float, mean: float) -> float:
        """e^(-S'): η takes at most (1 + 4/gap)η of S, rounding `lost_to_rounding` of it."""
        share = 1 - deviation * self.plan.largest_ratio
        share -= lost_to_rounding(self.plan, self.unit, mean)
        return float(np.exp(-self.constants.sharpness * max(share, 0.0)))

    def _passed(self, number: int) -> float:
        """Σ over a block's heads of the largest Σ|M||x| of any token, whatever it holds."""
        wide = np.asarray(self.before[number], np.float64)
        total = 0.0
        for head in self.plan.blocks[number].heads:
            channels = np.array(
                [
                    GRID if value.is_one else self.plan.channels[value][feature]
                    for value, feature in head.sources
                ]
            )
            read = np.abs(wide[..., channels] - wide[..., self.half + channels]) / 2
            total += float((read.max((0, 1)) @ head.absolute_map).max(initial=0.0))
        return total


def _readings(head: Head) -> int:
    """The roundings of sums in which μ stands; of a number that is passed on alone, as few."""
    alone = head.value.shape[0] == head.value.shape[1] and bool(
        (head.value == np.eye(len(head.value))).all()
    )
    return _READ if alone else _READ + 2 * len(head.sources)


def _sum_of_map(head: Head) -> float:
    """The largest Σ|M| of a feature."""
    return float(head.absolute_map.sum(0).max(initial=0.0))


def _carried(
    run: _Run,
    stored: dict[Value, np.ndarray],
    slopes: list[np.ndarray],
    arising: list[_Arising],
) -> Bound:
    """The recursion's transpose applied to each logit of each image."""
    network = run.plan.network
    batch, classes = len(stored[network.image]), network.logits.channels
    one_hot = np.repeat(np.eye(classes), batch, axis=0)  # `[classes · batch, classes]`
    weights = transposed_values(network.logits, one_hot)
    construction, rounding = np.zeros((2, classes * batch))

    def repeated(numbers: np.ndarray) -> np.ndarray:
        return np.tile(numbers, (classes, *[1] * (numbers.ndim - 1)))

    backwards = list(zip(network.nodes, slopes, arising, strict=True))[::-1]
    for node, slope, own in backwards:
        weight = weights.pop(node.value, None)
        if weight is None:
            continue
        moved = weight * repeated(own.moved)
        shares = np.abs(moved).sum(-1) if node.units.is_gelu else np.abs(moved.sum(-1))
        construction += _summed(shares * repeated(own.inside[..., 0]))
        construction += _summed(np.abs(weight) * repeated(own.construction))
        rounding += own.common * _summed(shares)
        rounding += _summed(np.abs(weight) * repeated(own.rounding))
        for value, part in transposed_values(node.affine, weight * repeated(slope)).items():
            held = stored[value] if value in stored else one_values(value, batch)
            shares = np.abs((part * repeated(held)).sum(-1))
            construction += _summed(shares * repeated(own.attention[value][..., 0]))
            rounding += own.common * _summed(shares)
            weights[value] = weights[value] + part if value in weights else part
    sizes = absolute_values(network.logits, stored).T.ravel()
    reads = 2 * sum(value.channels for value, _ in network.logits.terms)
    count = reads + run.plan.width + 8 + _OTHER_ROUNDINGS
    taps = [matrix for own in network.logits.terms.values() for matrix in own.values()]
    read = np.repeat(sum(np.abs(matrix).sum(0) for matrix in taps), batch) * run.mean(run.last)
    construction += repeated(run.deviation(None, run.last))[..., 0] * sizes
    rounding += gamma(count, run.unit) * sizes + gamma(reads + _READ, run.unit) * read
    rounding += gamma(count, unit_roundoff(np.float64)) * sizes
    return Bound(*(part.reshape(classes, batch).T for part in (construction, rounding)))


def _summed(numbers: np.ndarray) -> np.ndarray:
    """By logit and image."""
    return numbers.reshape(len(numbers), -1).sum(-1)
