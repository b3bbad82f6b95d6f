"""How far a compiled vision transformer can be from its network, for every image of a box.

*The idea.* `bound.py` looks at a run. Here intervals (`box_values.py`) say how large the numbers of
any run on the box can be, and the same errors are added up from the image to the logits, each at
its worst. So ReLU may be on either side of its bend in the two networks.

*Sizes.* Let a bound the values v of the network, and ẽ how far what tokens store is from them. At
*any* token, also one that holds no point of a value's lattice, softmax mixes values with weights of
sum one: so what a channel holds is at most the sum B of the absolute values of what is added there.

*The factor of a token.* LayerNorm multiplies all numbers of a token by ρ (`parameters.py`), and
rounds mean, variance and weight: by r with |r - 1| ≤ ω = η + γ_(D+8), η = ΣB²/(2(Λ² + εD/2)). The
two halves of a channel add up to at most 2γ_K B, K the roundings after softmax. So the mean that
is subtracted is, with n the other constants of a token, at most

    μ = (γ_(D+1)(2Λ + 2n + 2ΣB) + 2γ_K ΣB)/D.

It cancels in (LN(x)⁺ - LN(x)⁻)/2; what it makes rounding lose does not: that is r·x up to
γ_4(|x| + μ).

*Scores.* With κ = 2S/gap, a score is off by at most 24κ(1 + μ)γ_12 (`parameters.py`) beside the
factors of its two tokens; no score is above 2κ. So the one that is meant is above all others by

    S' = S(1 - ω)(1 - 8ω/gap) - 48κ(1 + μ)γ_12.

Each of the other tokens has a weight of at most e^(-S'), or zero if it underflows. What all N pass
on, what they take from the sum of weights, and what rounding loses by them (of a sum of two no more
than the smaller) is at most 4N e^(-S') B. The scores of a mean are 0, and its weights equal.

*Attention.* With M the matrices of a node, its affine map is off by at most

    e = |M|ẽ + 4N e^(-S') Σ|M|B + R + ((1 + ω)(1 + γ_k) - 1)|M|(a + ẽ) + γ_k μ Σ|M|,

R what an earlier value has left in the channel, and k the roundings on the way: 4 of LayerNorm, two
for each number that a head reads, one for each that it passes on, 2N for a mean, one for each block
and 16. Points outside the image are the class token: the same with a = 0. In B, 2N count in every
head: a token that it is not made for mixes all.

*MLP.* f(z) = z + Σ jump·ReLU(±(z - t)) has slopes of at most L. A unit reads z - t by LayerNorm,
and GELU(s·)/s is m/s away from ReLU (`scalar.py`, (2)). So the value is off by at most

    L e + Σ|jump|(ω ReLU(±(z - t)) + m/s) + γ_k(|z| + Σ|jump|(|z| + |t| + (1 + |t|)μ)),

k = 44 + units. A channel that is cleared keeps R = (ω + γ_k)B + γ_k μ. The logits read the last
LayerNorm as heads read theirs.

*Assumed*, beside what `box_values.py` assumes: sums, products, quotients and square roots are
rounded to nearest; exp is within 8 roundings and exp(0) = 1; 1 + erf is within 16 roundings of 1;
operations on the features of a token are alike, so that equal numbers stay equal. The bound holds
for the stored parameters in exact arithmetic too.
"""

from dataclasses import dataclass
from itertools import groupby
from math import exp

import numpy as np

from convattn.compile.affine import Affine, Value
from convattn.compile.box_values import (
    INFLATED,
    UNDERFLOW,
    BoxValues,
    largest,
    of_all_taps,
)
from convattn.compile.evaluation import absolute_values
from convattn.compile.network import Node
from convattn.compile.parameters import Constants
from convattn.compile.plan import Block, Plan
from convattn.compile.scalar import GELU_DEVIATION, GELU_SLOPE
from convattn.operators.roundoff import gamma, unit_roundoff

_OF_UNIT = 44  # roundings, and one a unit
_ROOM = 2.0**-10  # of Λ, for ΣB at first


@dataclass(frozen=True)
class BoxBound:
    """For each logit `[classes]`, and all images of a box.

    Attributes:
        lower, upper: Between which the network's logits are, in exact arithmetic.
        network: How far its evaluation in the dtype can be from them.
        transformer: How far the logits of the vision transformer can be from them.
    """

    lower: np.ndarray
    upper: np.ndarray
    network: np.ndarray
    transformer: np.ndarray

    @property
    def total(self) -> np.ndarray:
        """How far the two can be from each other."""
        return self.network + self.transformer


def box_bound(
    plan: Plan, constants: Constants, dtype: str, lower: np.ndarray, upper: np.ndarray
) -> BoxBound:
    """The bound of a plan, for all images `[rows, columns, channels]` between two.

    Raises:
        ValueError: For what is no box, and where the constants are too small for it.
    """
    box = BoxValues(plan.network, lower, upper)
    room = _ROOM * constants.norm
    while True:
        run = _Run(plan, constants, unit_roundoff(dtype), box, room)
        if (needed := float(run.held.sum())) <= room:
            break
        room = 2 * needed
        if not room < constants.norm / unit_roundoff(dtype):
            raise ValueError(
                f"Λ={constants.norm:.3g} and numbers whose sum in a token may be {needed:.3g}, but "
                "expected less, for a bound; take a smaller box, or the constants for exactness"
            )
    lower, upper = (bound[0] for bound in box.interval(plan.network.logits))
    return BoxBound(lower, upper, box.evaluation_error(dtype), run.logits())


class _Run:
    """The recursion, where ΣB of a token is at most `room`.

    Attributes:
        most: B of each channel as it is now.
        held: B of all that was added up there, from the beginning.
        error, outside: ẽ of each value, at its points and at the class token.
    """

    def __init__(
        self, plan: Plan, constants: Constants, unit: float, box: BoxValues, room: float
    ) -> None:
        self.plan, self.constants, self.unit, self.box = plan, constants, unit, box
        image, self.common = plan.network.image, gamma(plan.width + 8, unit)
        self.error = {image: np.zeros_like(box.low[image])}
        self.outside = {image: np.zeros(image.channels)}
        self.most, self.held = np.zeros((2, plan.width // 2))
        own, pixels = plan.channels[image], largest(box.sizes(self.error))[image]
        self.most[own] = self.held[own] = np.resize(pixels, len(own))
        assert image.lattice is not None
        self.tokens = image.lattice.tokens[0] * image.lattice.tokens[1] + 1
        passed = sum(len(head.output) for block in plan.blocks for head in block.heads)
        halves = gamma(2 * len(plan.blocks) + passed + plan.hidden, unit)
        sums = (
            gamma(plan.width + 1, unit) * (constants.norm + plan.constants + room) + halves * room
        )
        self.mean = 2 * sums / plan.width
        for node, blocks in groupby(plan.blocks, lambda block: block.node):
            self._add(node, list(blocks))

    def _factor(self) -> float:
        """ω."""
        square = self.constants.norm**2 + self.constants.epsilon * self.plan.width / 2
        return float((self.most**2).sum()) / (2 * square) + self.common

    def _leak(self, factor: float) -> float:
        """4N e^(-S'); a mixture is within 2B whatever its weights are."""
        sharpness, gap = self.constants.sharpness, self.plan.least_gap
        share = max(1 - factor, 0.0) * max(1 - 8 * factor / gap, 0.0)
        share -= 48 * (2 / gap) * (1 + self.mean) * gamma(12, self.unit)
        return min(4 * self.tokens * exp(-sharpness * max(share, 0.0)), 2.0)

    def _read(self, affine: Affine, factor: float, rounding: float) -> np.ndarray:
        """|M|ẽ + ((1 + ω)(1 + γ_k) - 1)|M|(a + ẽ) + γ_k μ Σ|M|."""
        sizes = absolute_values(affine, self.box.sizes(self.error))
        grown = factor + rounding + factor * rounding
        error = absolute_values(affine, self.error, constants=False) + grown * sizes
        return error + rounding * self.mean * affine.tap_sums + UNDERFLOW

    def _add(self, node: Node, blocks: list[Block]) -> None:
        """B and ẽ of a node's value."""
        value, units, own = node.value, node.units, self.plan.channels[node.value]
        heads = [head for block in blocks for head in block.heads]
        sums = np.zeros(len(own))  # Σ|M|B
        ones = np.zeros(len(own))  # Σ|M|
        for head in heads:
            matrix = head.absolute_map
            sums += np.array([self._of(*source) for source in head.sources]) @ matrix
            ones += matrix.sum(0)
        reads = max((2 * len(head.sources) for head in heads), default=0)
        means = 2 * self.tokens * any(head.reading.kind == "mean" for head in heads)
        passed = sum(len(head.output) for head in heads)
        others = 20 + reads + passed + len(blocks)
        rounding = gamma(others + means, self.unit)
        anywhere = gamma(others + 2 * self.tokens, self.unit)  # most tokens mix all, in some heads
        of_unit = gamma(_OF_UNIT + units.count, self.unit)
        rest = self.most[own]
        grown = (1 + self.common) * (1 + anywhere) * sums + rest + anywhere * self.mean * ones
        after = units.around(grown, of_unit * self.mean) * (1 + self.common) * (1 + of_unit)
        self.most[own] = after
        self.held[own] += after
        factor = self._factor()
        of_all = _by_channel(self._leak(factor) * sums + rest, value.channels)
        beyond = of_all_taps(node.affine, self.outside) * (1 + factor) * (1 + rounding)
        error = self._read(node.affine, factor, rounding) + beyond + of_all
        low, high = self.box.interval(node.affine)
        jumps = sum(abs(jump) for _, jump, _ in units.bends)
        deviation = jumps * GELU_DEVIATION / self.constants.slope + UNDERFLOW

        def after_units(error: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
            sizes = np.maximum(np.abs(low), np.abs(high)) + error
            moved = GELU_SLOPE * sizes * units.is_gelu
            for bend, jump, side in units.bends:
                end = high if side > 0 else low
                moved = moved + abs(jump) * np.maximum(side * (end - bend) + error, 0)
            rounded = of_unit * units.around(sizes, self.mean)
            return (units.lipschitz * error + factor * moved + deviation + rounded) * INFLATED

        self.error[value] = after_units(error, low, high)
        zero = np.zeros(value.channels)
        at_class = rounding * self.mean * node.affine.tap_sums + beyond + of_all
        self.outside[value] = after_units(at_class + UNDERFLOW, zero, zero)
        at_zero = float(units.call(np.zeros(1))[0])
        mapped = np.maximum(units.lipschitz, 1.0) * grown + abs(at_zero) + deviation
        self.most[own] = mapped + (self.common + of_unit) * after
        if self._is_everywhere(value):
            known = np.maximum(largest(self.box.sizes(self.error))[value], self.outside[value])
            self.most[own] = np.minimum(self.most[own], np.resize(known, len(own)))
        self._clear(blocks[-1], factor)

    def _is_everywhere(self, value: Value) -> bool:
        """Whether every token but the class token holds points of a value."""
        lattice, image = value.lattice, self.plan.network.image.lattice
        assert image is not None
        return lattice is not None and lattice.tokens == image.tokens

    def _of(self, value: Value, feature: int) -> float:
        return 1.0 if value.is_one else float(self.most[self.plan.channels[value][feature]])

    def _clear(self, block: Block, factor: float) -> None:
        """What is left in the channels that a block clears."""
        dead, rounding = np.array(block.cleared, int), gamma(_OF_UNIT + 2, self.unit)
        old = self.most[dead]
        self.held[dead] += 2 * (1 + self.common) * (1 + rounding) * (old + self.mean)
        self.most[dead] = (factor + rounding + factor * rounding) * old + rounding * self.mean

    def logits(self) -> np.ndarray:
        """ẽ of the logits, `[classes]`."""
        affine = self.plan.network.logits
        reads = 2 * sum(value.channels for value, _ in affine.terms)
        return self._read(affine, self._factor(), gamma(20 + reads, self.unit))[0] * INFLATED


def _by_channel(features: np.ndarray, channels: int) -> np.ndarray:
    """The largest of the points of a token."""
    return features.reshape(-1, channels).max(0)
