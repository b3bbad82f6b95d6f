"""How far a compiled vision transformer can be from its network, on given images.

Of a node, the network computes v = f(z), z = A(v). In a run of the vision transformer, let z̃ be
what the stream holds between attention and MLP, and ṽ what it holds after. With σ the secant of f
from z to z̃, a what arises in attention and e what arises in the MLP,

    z̃ - z = A(ṽ) - A(v) + a,   ṽ - v = σ·(z̃ - z) + e.

This recursion is linear in a and e. Its transpose, from each logit back, gives each entry of each
node a weight w, and |logit difference| ≤ Σ |<σw, a>| + |<w, e>|. What arises at a node:

1. *Of each token in common.* LayerNorm multiplies all numbers of token τ by 1 - η_τ, 0 ≤ η_τ ≤
   |f_τ|²/(2(Λ² + εD/2)), and rounds that factor by γ_(D+8). In the MLP, Σ_τ η_τ |<w_τ, Σ
   jump·ReLU(t - z̃)>|. In attention, where one block makes the node, <σw, A(ηṽ)> = Σ_τ η_τ
   <(Aᵀσw)_τ, ṽ_τ> ≤ Σ_τ η_τ |<(Aᵀσw)_τ, ṽ_τ>|. Several blocks have several factors, and what
   cancels in A may stand in different ones: η|A||ṽ| of each number.
2. *Of each number.* GELU for ReLU: m Σ|jump|/s where a bend is near (`scalar.py`, (2)); from |s(z -
   t)| = 40 on it is below 10^(-300). What softmax leaves on other tokens: at most N e^(-S') a head,
   twice that of the largest number that any token holds, and as much again by rounding, since a sum
   of two loses no more than the smaller; S' is what η and the rounding of scores leave of S. What
   an earlier value has left in a channel that was cleared, as the stream has it. Rounding: γ_k of
   the sums of absolute values, k counting two for each number that a head reads, one for each that
   it passes on, N for a mean, and 24 for the rest. LayerNorm subtracts at most μ = |mean| + γ_D
   (mean|x| + |mean|)/2 from all numbers of a token. That cancels in pairs, but the sums in which a
   head, a unit or a logit reads pairs are rounded with it: γ_12 μ where a number is read alone,
   γ_(12+2n) μ where n are added up.

Assumed: no weight, score or value leaves the normal range of the dtype, but where softmax's weights
become zero.

The deviation η, GELU for ReLU and half of what softmax leaves are *construction*, in exact
arithmetic; the rest is *rounding*, with that of the network's own evaluation in float64.
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
from convattn.compile.scalar import GELU_DEVIATION, GELU_SLOPE, Units
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


class _Part(NamedTuple):
    """What arises of each number, `[batch, rows, columns, channels]` or `[batch, channels]`."""

    construction: np.ndarray
    rounding: np.ndarray


class _Arising(NamedTuple):
    """What arises at a node.

    Attributes:
        slope: σ.
        attention: η of each source's points, by value, if one block makes the node.
        inside: η of the node's own points.
        moved: Σ jump·ReLU(t - z̃).
        a, e: Of each number.
    """

    slope: np.ndarray
    attention: Mapping[Value, np.ndarray]
    inside: np.ndarray
    moved: np.ndarray
    a: _Part
    e: _Part


def derived_bound(
    plan: Plan, constants: Constants, images: np.ndarray, streams: Streams
) -> tuple[Bound, np.ndarray, float]:
    """The bound on how far a run of the transformer is from the network in float64.

    Args:
        images: `[batch, rows, columns, channels]`.
        streams: Of the run on them.

    Returns:
        The bound, the network's logits, and √Σ x² of the values in any token of the run.
    """
    network, run = plan.network, _Run(plan, constants, streams)
    exact = node_values(network, images)
    stored: dict[Value, np.ndarray] = {network.image: exact[network.image]}
    arising = []
    for node in network.nodes:
        arising.append(run.arising(node, stored, exact))
        stored[node.value] = run.after(node.value)
    bound = _carried(run, stored, exact, arising)
    return bound, affine_values(network.logits, exact), run.largest()


class _Run(StoredValues):
    """A run, and what arises in it."""

    @property
    def common(self) -> float:
        """The rounding of the factor that a token's numbers have in common."""
        return gamma(self.plan.width + 8, self.unit)

    def arising(
        self, node: Node, stored: dict[Value, np.ndarray], exact: dict[Value, np.ndarray]
    ) -> _Arising:
        """What arises at a node."""
        own = [n for n, block in enumerate(self.plan.blocks) if block.node is node]
        between = self.between[own[-1]]
        computed, held = affine_values(node.affine, exact), self.read(node.value, between)
        deviation = np.max([self.deviation(self.before[n]) for n in own], axis=0)
        attention = {v: self.at_points(v.lattice, deviation) for v, _ in node.affine.terms}
        a = self._of_attention(node, own, stored, exact, float(deviation.max()))
        if len(own) > 1:
            moved = {value: share * stored.get(value, 1.0) for value, share in attention.items()}
            by_factor = absolute_values(node.affine, moved)
            rounding = self.common * absolute_values(node.affine, stored)
            a, attention = _Part(a.construction + by_factor, a.rounding + rounding), {}
        inside = self.at_points(node.value.lattice, self.deviation(between))
        moved_by_units, e = self._of_units(node.units, computed, held, inside, self.mean(between))
        slope = secant(node.units, computed, held)
        return _Arising(slope, attention, inside, moved_by_units, a, e)

    def _of_attention(
        self,
        node: Node,
        own: list[int],
        stored: dict[Value, np.ndarray],
        exact: dict[Value, np.ndarray],
        deviation: float,
    ) -> _Part:
        """What attention in a node's blocks adds to each number, but for the factor of a token.

        Args:
            deviation: The largest η of any token.
        """
        befores = [self.before[n] for n in own]
        heads = [head for n in own for head in self.plan.blocks[n].heads]
        tokens, unit = befores[0].shape[1], self.unit
        mean = max(self.mean(x) for x in befores)
        share = min(tokens * self._leak(deviation, mean), 1.0)
        leak = 2 * share * sum(self._passed(n) for n in own)
        reads = max((2 * len(head.sources) for head in heads), default=0)
        passes = sum(head.output.shape[0] for head in heads)
        means = tokens * any(head.reading.kind == "mean" for head in heads)
        count = reads + passes + means + len(own) + _OTHER_ROUNDINGS
        sizes = absolute_values(node.affine, stored)
        rounding = leak + np.abs(self.read(node.value, befores[0])) + gamma(count, unit) * sizes
        rounding += mean * sum(gamma(_readings(head), unit) * _sum_of_map(head) for head in heads)
        evaluated = gamma(node.affine.products + 8, unit_roundoff(np.float64))
        rounding += evaluated * absolute_values(node.affine, exact)
        return _Part(np.full_like(rounding, leak), rounding)

    def _of_units(
        self,
        units: Units,
        computed: np.ndarray,
        held: np.ndarray,
        inside: np.ndarray,
        mean: float,
    ) -> tuple[np.ndarray, _Part]:
        """Σ jump·ReLU(t - z̃), and what the MLP adds to each number.

        Args:
            computed, held: z and z̃.
            inside: η.
            mean: μ.
        """
        unit, wide = self.unit, unit_roundoff(np.float64)
        sizes = np.abs(held)
        moved, near, subtracted = np.zeros_like(held), np.zeros_like(held), 0.0
        for bend, jump, side in units.bends:
            distance = side * (held - bend)
            moved = moved + jump * np.maximum(distance, 0)
            lost = gamma(_READ, unit) * (sizes + abs(bend) + (1 + abs(bend)) * mean)
            lost = lost + (inside + self.common) * np.abs(distance)
            near += abs(jump) * (np.abs(distance) - lost <= _NEAR / self.constants.slope)
            subtracted += abs(jump) * (1 + abs(bend)) * mean
        if units.is_gelu:
            moved, subtracted = GELU_SLOPE * sizes, GELU_SLOPE * mean
        rounding = gamma(units.count + _OTHER_ROUNDINGS, unit) * units.around(sizes)
        rounding += gamma(2 * units.count + 8, wide) * units.around(
            np.maximum(sizes, np.abs(computed))
        )
        rounding += gamma(_READ, unit) * subtracted
        return moved, _Part(near * GELU_DEVIATION / self.constants.slope, rounding)

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
    exact: dict[Value, np.ndarray],
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

    for node, own in list(zip(network.nodes, arising, strict=True))[::-1]:
        weight = weights.pop(node.value, None)
        if weight is None:
            continue
        before = weight * repeated(own.slope)
        for factor, part in ((weight, own.e), (before, own.a)):
            construction += _summed(np.abs(factor) * repeated(part.construction))
            rounding += _summed(np.abs(factor) * repeated(part.rounding))
        moved = weight * repeated(own.moved)
        shares = np.abs(moved).sum(-1) if node.units.is_gelu else np.abs(moved.sum(-1))
        construction += _summed(shares * repeated(own.inside[..., 0]))
        rounding += run.common * _summed(shares)
        for value, cotangent in transposed_values(node.affine, before).items():
            weights[value] = weights[value] + cotangent if value in weights else cotangent
            if value in own.attention:
                numbers = stored[value] if value in stored else one_values(value, batch)
                shares = np.abs((cotangent * repeated(numbers)).sum(-1))
                construction += _summed(shares * repeated(own.attention[value][..., 0]))
                rounding += run.common * _summed(shares)
    sizes = absolute_values(network.logits, stored).T.ravel()
    reads = 2 * sum(value.channels for value, _ in network.logits.terms)
    count = reads + run.plan.width + 8 + _OTHER_ROUNDINGS
    read = np.repeat(network.logits.tap_sums, batch) * run.mean(run.last)
    construction += repeated(run.at_points(None, run.deviation(run.last)))[..., 0] * sizes
    rounding += gamma(count, run.unit) * sizes + gamma(reads + _READ, run.unit) * read
    evaluated = gamma(network.logits.products + 8, unit_roundoff(np.float64))
    rounding += evaluated * absolute_values(network.logits, exact).T.ravel()
    return Bound(*(part.reshape(classes, batch).T for part in (construction, rounding)))


def _summed(numbers: np.ndarray) -> np.ndarray:
    """By logit and image."""
    return numbers.reshape(len(numbers), -1).sum(-1)
