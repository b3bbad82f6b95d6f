"""The parameters of a stock vision transformer that computes a network.

Let the stream hold channels c as pairs (x_c, -x_c), so that its mean is 0, and let channel 0 be
λ_t, chosen so that the constants of each token have the square sum Λ². With f the values of a
token, D features and LayerNorm's own ε, and weight γ = √(2/D)·√(Λ² + εD/2),

    LN(x) = x·ρ,   ρ = (1 + |f|²/(Λ² + εD/2))^(-1/2),   1 - |f|²/(2Λ²) ≤ ρ ≤ 1.

*Reading.* A weight that reads channel c takes (LN(x)⁺ - LN(x)⁻)/2, so that the rounding of the
mean, the same in both, cancels.

*Heads.* Token u of n on an axis has the code (cos θu, sin θu), θ = 2π/n', n' ≥ n plus the reach. A
head's queries are codes turned by its offset, so that its score is κ(cos θ(u + o - u') + …) on two
axes: 2κ at the token that is meant, and at most (1 + cos θ)κ elsewhere. The class token's key
scores the middle, and its values are zero: so it is read wherever the token that is meant does not
exist. At κ = S/((1 - cos θ)/2) every other weight is at most e^(-S).

*MLP.* GELU(s z)/s is ReLU(z) within 0.17/s (`scalar.py`); a pair of units GELU(s z) - GELU(-s z) =
s z clears a channel.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from convattn.compile.affine import Value
from convattn.compile.plan import Block, Code, Plan, Reading
from convattn.compile.scalar import GELU_DEVIATION
from convattn.operators.roundoff import gamma

LAMBDA, GRID, CLASS = 0, 1, 2
TRAINING_ERROR = 1 / 200  # τ, of GELU for ReLU and of softmax, for training
_LEAST = 2.0**-10  # of values; Λ must be larger than the constants of a token
Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Constants:
    """What is chosen.

    Λ is so far above the values of a token that |f|²/2Λ² is below rounding, and no farther:
    LayerNorm rounds them to u²Λ. s is so large that 0.17/s is below all that counts, and small
    enough for s times the largest value; S, so that e^(-S) is, and small enough for its rounding.

    Attributes:
        norm: Λ.
        slope: s.
        sharpness: S.
        epsilon: LayerNorm's.

    Raises:
        ValueError: For numbers that are not finite, or not positive; ε may be 0.
    """

    norm: float
    slope: float
    sharpness: float
    epsilon: float

    def __post_init__(self) -> None:
        numbers = self.norm, self.slope, self.sharpness
        if not (all(0 < number < np.inf for number in numbers) and 0 <= self.epsilon < np.inf):
            raise ValueError(
                f"{self}, but expected finite numbers, positive ones for norm, slope and "
                "sharpness, and epsilon ≥ 0"
            )

    @classmethod
    def of(cls, dtype: str, epsilon: float, largest: float = 1.0) -> "Constants":
        """For float32 or float64, and values whose square sum in a token is at most largest².

        Raises:
            ValueError: If LayerNorm's squares would overflow, or a value is not finite.
        """
        wide = dtype == "float64"
        norm = 2.0 ** (34 if wide else 20)
        largest = max(largest, _LEAST)
        if not norm * largest <= float(np.finfo(dtype).max) ** 0.5 / 4:
            raise ValueError(
                f"the network's values reach {largest:.3g} on these images, but expected finite "
                f"ones whose squares LayerNorm can add in {dtype}; scale the network or the images"
            )
        norm *= 2.0 ** np.ceil(np.log2(largest))
        return cls(norm, *((2.0**100, 1024.0) if wide else (2.0**60, 128.0)), epsilon)

    @classmethod
    def for_training(
        cls, plan: Plan, epsilon: float, largest: float, typical: float
    ) -> "Constants":
        """Moderate ones, with which gradients are well scaled.

        Gradients of fc2 grow like s, and those of scores fall like e^(-S). Those of weights that
        read λ would grow like Λ: none does, so LayerNorm's weight is 0 there. Λ = F√(2 + 8/gap),
        where F² is the largest square sum of a token's values: LayerNorm leaves three quarters of S
        or more (`bound.py`). With τ = 1/200, GELU(sz)/s is within τ|z| at s = m/(τ|z|), |z| being
        typical, and the weight on all other tokens is N e^(-S) = τ.

        Args:
            plan, epsilon: For the gap and the number of tokens; LayerNorm's own ε.
            largest, typical: F; the smallest of the nodes' root mean squares of what functions with
                bends are applied to.
        """
        lattice = plan.network.image.lattice
        assert lattice is not None
        tokens = lattice.tokens[0] * lattice.tokens[1] + 1
        return cls(
            float(np.sqrt(2 * (largest**2 + plan.constants) * plan.largest_ratio)),
            GELU_DEVIATION / (TRAINING_ERROR * max(typical, _LEAST)),
            float(np.log(tokens / TRAINING_ERROR)),
            epsilon,
        )


def lost_to_rounding(plan: Plan, unit: float, mean: float = 0.0) -> float:
    """The fraction of S by which rounding may bring two scores nearer.

    With κ = 2S/gap, a query's five features add up to at most (2√2 + 3)κ in absolute value, a key's
    are at most 1. LayerNorm rounds the factor that a token's numbers have in common by γ_(D+8): two
    scores of at most 2κ come nearer by 12κ/2·γ_(D+8). Each number that is read is rounded with μ,
    what LayerNorm subtracts: g = γ_12(1 + μ). Errors of a query's features add 5κg to a score,
    those of a key's 5.9κg, products and sums 5.9κg, and both errors together 10.7κg²: at most 24κg
    where g ≤ 1/2. So two scores come nearer by 48κg = 96Sg/gap; where g > 1/2, that is all of S.

    Args:
        plan: For the width, and the tokens that are nearest.
        unit: The unit roundoff.
        mean: μ.
    """
    common, own = gamma(plan.width + 8, unit), gamma(12, unit) * (1 + mean)
    return (12 * common + 96 * own) / plan.least_gap


class Builder:
    """Writes the arrays of a plan, by timm's names."""

    def __init__(self, plan: Plan, constants: Constants, *, for_training: bool = False) -> None:
        if not constants.norm**2 > plan.constants:
            raise ValueError(
                f"norm={constants.norm}, but expected more than {plan.constants**0.5:.3g}, so that "
                f"it holds the {plan.constants - 1} other constants of a token; take a larger Λ"
            )
        self.plan, self.constants, self.for_training = plan, constants, for_training
        self.width, self.half = plan.width, plan.width // 2
        self.weight = np.sqrt(2 / self.width) * np.sqrt(
            constants.norm**2 + constants.epsilon * self.width / 2
        )

    def arrays(self) -> Arrays:
        """All of them, in float64."""
        plan = self.plan
        arrays = self._embedding()
        for number, block in enumerate(plan.blocks):
            own = {**self._attention(block), **self._hidden(block)}
            arrays |= {f"blocks.{number}.{name}": array for name, array in own.items()}
        arrays |= self._norm("norm") | self._classifier()
        return arrays

    # Reading and writing channels.

    def read(self, channels: np.ndarray) -> Float[np.ndarray, "channels width"]:
        """Rows that read channels."""
        weights = np.zeros((len(channels), self.width))
        rows = np.arange(len(channels))
        weights[rows, channels], weights[rows, self.half + channels] = 0.5, -0.5
        return weights

    def written(self, channels: np.ndarray) -> Float[np.ndarray, "width channels"]:
        """Columns that add to channels."""
        weights = np.zeros((self.width, len(channels)))
        columns = np.arange(len(channels))
        weights[channels, columns], weights[self.half + channels, columns] = 1.0, -1.0
        return weights

    def channel_of(self, value: Value, feature: int) -> int:
        """Where a feature of a value is."""
        if value.is_one:
            return CLASS if value.lattice is None else GRID
        return int(self.plan.channels[value][feature])

    # The stream's beginning.

    def _embedding(self) -> Arrays:
        image = self.plan.network.image
        lattice = image.lattice
        assert lattice is not None
        rows, columns = lattice.patch
        patch = np.zeros((self.width, image.channels, rows, columns))
        for place, (row, column) in enumerate(lattice.places()):
            for channel in range(image.channels):
                own = self.channel_of(image, place * image.channels + channel)
                patch[own, channel, row, column] = 1.0
                patch[self.half + own, channel, row, column] = -1.0
        held = self.positions()
        return {
            "cls_token": np.zeros((1, 1, self.width)),
            "pos_embed": held[None],
            "patch_embed.proj.weight": patch,
            "patch_embed.proj.bias": np.zeros(self.width),
        }

    def positions(self) -> Float[np.ndarray, "tokens width"]:
        """The constants of each token, the class token first."""
        lattice = self.plan.network.image.lattice
        assert lattice is not None
        rows, columns = lattice.tokens
        held = np.zeros((rows, columns, self.half))
        held[..., GRID] = 1.0
        for code, channel in self.plan.codes.items():
            row, column = (
                np.stack([np.cos(angle), np.sin(angle)], -1) for angle in self._angles(code)
            )
            inside = held[:: code.tokens.apart[0], :: code.tokens.apart[1]]
            inside = inside[: code.tokens.count[0], : code.tokens.count[1]]
            inside[..., channel : channel + 2] = row[:, None]
            inside[..., channel + 2 : channel + 4] = column[None]
        own = np.zeros((1, self.half))
        own[0, CLASS] = 1.0
        for tokens, channel in self.plan.means.items():
            held[..., channel], own[0, channel] = 1.0, 1.0
            inside = held[:: tokens.apart[0], :: tokens.apart[1]]
            inside[: tokens.count[0], : tokens.count[1], channel] = 0.0
        flat = np.concatenate([own, held.reshape(-1, self.half)])
        flat[:, LAMBDA] = np.sqrt(self.constants.norm**2 - (flat**2).sum(axis=1))
        constants = np.zeros((len(flat), self.width))
        constants[:, : self.half], constants[:, self.half : 2 * self.half] = flat, -flat
        return constants

    def _angles(self, code: Code) -> list[np.ndarray]:
        steps = zip(code.tokens.count, self.plan.steps(code), strict=True)
        return [step * np.arange(count) for count, step in steps]

    # Blocks.

    def _norm(self, name: str) -> Arrays:
        weight = np.full(self.width, self.weight)
        if self.for_training:  # nothing reads λ, and a weight that did would have gradients of Λ
            weight[[LAMBDA, self.half + LAMBDA]] = 0.0
        return {f"{name}.weight": weight, f"{name}.bias": np.zeros(self.width)}

    def _attention(self, block: Block) -> Arrays:
        dim, width = self.plan.head_dim, self.width
        queries, keys, values = (np.zeros((self.plan.num_heads, dim, width)) for _ in range(3))
        output = np.zeros((width, self.plan.num_heads, dim))
        writes = self.written(self.plan.channels[block.node.value])
        for number, head in enumerate(block.heads):
            query, key = self.scores(head.reading)
            queries[number, : len(query)] = query * np.sqrt(dim)
            keys[number, : len(key)] = key
            sources = np.array([self.channel_of(*source) for source in head.sources])
            passed = head.value.T @ self.read(sources)
            values[number, : len(passed)] = passed
            output[:, number, : len(passed)] = writes @ head.output.T
        flat = [each.reshape(width, width) for each in (queries, keys, values)]
        return {
            **self._norm("norm1"),
            "attn.qkv.weight": np.concatenate(flat),
            "attn.qkv.bias": np.zeros(3 * width),
            "attn.proj.weight": output.reshape(width, width),
            "attn.proj.bias": np.zeros(width),
        }

    def scores(self, reading: Reading) -> tuple[np.ndarray, np.ndarray]:
        """What a head's queries and keys read, five rows each."""
        sharp, code = self.constants.sharpness, reading.code
        mine = self.read(np.array([GRID, CLASS]))
        if reading.kind == "mean":
            key = self.read(np.array([self.plan.means[code.tokens]]))
            return -sharp * mine[1:], key
        channel = self.plan.codes[code]
        codes = self.read(np.arange(channel, channel + 4))
        steps = self.plan.steps(code)
        gap = self.plan.gap(code)
        kappa = 2 * sharp / gap
        if reading.kind == "point":
            angles = [step * place for step, place in zip(steps, reading.where, strict=True)]
            target = np.array([f(angle) for angle in angles for f in (np.cos, np.sin)])
            return kappa * target[:, None] * mine[1], codes
        query = np.zeros((5, self.width))
        for axis, (step, offset) in enumerate(zip(steps, reading.where, strict=True)):
            turn = step * offset
            rotation = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
            query[2 * axis : 2 * axis + 2] = kappa * rotation @ codes[2 * axis : 2 * axis + 2]
        level = 2 - gap / 2 if code.border == "zeros" else -3.0
        query[4] = kappa * (level * mine[0] + 2 * mine[1])
        return query, np.concatenate([codes, mine[1:]])

    def _hidden(self, block: Block) -> Arrays:
        slope, rows, columns = self.constants.slope, [], []
        one = self.read(np.array([CLASS if block.node.value.lattice is None else GRID]))[0]

        def add(
            reads: np.ndarray, writes: np.ndarray, inner: float, outer: float, s: float
        ) -> None:
            rows.append(inner * s * reads)
            columns.append(outer / s * writes)

        target = self.plan.channels[block.node.value]
        units = block.units
        if units is not None:
            reads, writes = self.read(target), self.written(target)
            for bend, jump, side in units.bends:
                add(reads - bend * one, writes, side, jump, slope)
            if units.is_gelu:
                add(reads, writes, -1.0, 1.0, 1.0)
        if block.cleared:
            dead = np.array(block.cleared)
            for sign in (1.0, -1.0):
                add(self.read(dead), self.written(dead), sign, -sign, slope)
        first, last = (
            np.zeros((self.plan.hidden, self.width)),
            np.zeros((self.width, self.plan.hidden)),
        )
        if rows:
            inner, outer = np.concatenate(rows), np.concatenate(columns, axis=1)
            first[: len(inner)], last[:, : len(inner)] = inner, outer
        return {
            **self._norm("norm2"),
            "mlp.fc1.weight": first,
            "mlp.fc1.bias": np.zeros(self.plan.hidden),
            "mlp.fc2.weight": last,
            "mlp.fc2.bias": np.zeros(self.width),
        }

    def _classifier(self) -> Arrays:
        logits = self.plan.network.logits
        weight, bias = np.zeros((logits.channels, self.width)), np.zeros(logits.channels)
        for (value, _), taps in logits.terms.items():
            for matrix in taps.values():
                if value.is_one:
                    bias += matrix[0]
                else:
                    weight += matrix.T @ self.read(self.plan.channels[value])
        return {"head.weight": weight, "head.bias": bias}
