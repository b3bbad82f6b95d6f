"""Scores of rotary positions, which the biases of queries and keys make alone.

**Scores.** Let W_Q and W_K be zero on the pairs that are used, and, with S and a_j of `rotary.py`,

    b_Q = √(α√d) √a_j e^(iω_j·Δ),    b_K = √(α√d) √a_j.

The score of the key q + δ is Re Σ_j b_Q conj(b_K) e^(-iω_j·δ)/√d = α S(δ - Δ): of all images the
same, as no token is read; LayerNorm plays no part. The key nearest to q + Δ is ahead by αm.

**Before the grid.** There a key b_K, which is not turned, would look like a token at the origin of
the angles, and win where that is near the target. So tokens before the grid, and no others, hold ρE
in the last two channels, E = (1, -1)/√2. E is orthogonal to the ones: LayerNorm leaves ρE/σ of it,
and of tokens of the grid nothing. Let c be the middle of the grid and i a pair that turns slowly:
cos(ω_i·(q - c)) ≥ γ > 0 on the grid. On this pair let |b_Q| = √(α√d) and |b_K| = √(α√d) a_i, of the
same product, and W_K E = -v e^(iω_i·(c + Δ)). Then such a key has the score

    α S(-q - Δ) - |b_Q| v (ρ/σ) cos(ω_i·(q - c))/√d ≤ α - |b_Q| v (ρ/σ) γ/√d,

q and c counted from the origin of the angles. With the v for which the right side is α(S_min - m)
at the largest σ, S_min the least S of a target, it is behind every target by αm at every σ. ∎

These tokens and what the layers add to them are bounded whatever the image (`streams.py`), and so
is σ: leaks are those of all images.

W_Q E = -b_Q σ_1/ρ, with σ_1 the deviation of the first such token in the first layer: there its
query is zero, so that it attends to all tokens alike.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Complex, Float, Int

from convattn.initialization.construction import Positions
from convattn.initialization.leaks import (
    ROUNDING,
    Deviations,
    PositionNorms,
    deviations,
    leaks,
    least_factor,
)
from convattn.initialization.positions import Shift, targets
from convattn.initialization.rotary import Rotary, largest_lead
from convattn.networks.vision_transformer.state_dicts import Block, VisionTransformer

CHANNELS = 2  # of tokens before the grid
_MIN_COSINE = 0.1  # γ; keys before the grid have norms of about 1/γ
E = np.array([1.0, -1.0]) / math.sqrt(2)
EXACT = Deviations(1.0, 1.0)  # scores that no deviation scales

Pairs = Complex[np.ndarray, "*heads pairs"]


@dataclass(frozen=True, eq=False)
class RotaryPositions(Positions):
    """The scores of this module, for kernels of one reach on one grid.

    Attributes:
        norm: ρ.
        before: How many tokens stand before the grid.
        amplitudes: a_j.
        lead: m.
        lowest: S_min.
        pair: i.
        cosine: γ.
    """

    rotary: Rotary
    grid: tuple[int, int]
    before: int
    amplitudes: Float[np.ndarray, " pairs"]
    lead: float
    lowest: float
    pair: int
    cosine: float

    @classmethod
    def of(
        cls, rotary: Rotary, grid: tuple[int, int], reach: tuple[int, int], before: int
    ) -> "RotaryPositions":
        """With the largest lead, and ρ = 1.

        >>> positions = RotaryPositions.of(Rotary.axial(8, base=10.0), (8, 8), (1, 1), 1)
        >>> round(positions.lead, 3), positions.pair, positions.amplitudes.round(2).tolist()
        (0.144, 1, [0.29, 0.21, 0.29, 0.21])
        """
        amplitudes, lead, lowest = largest_lead(rotary, grid, reach)
        middle = np.array(rotary.origin) + (np.array(grid) - 1) / 2
        around = rotary.tokens(grid) * np.exp(-1j * rotary.angles(middle))
        cosines = around.real.min(axis=0)
        pair = int(cosines.argmax())
        if before and cosines[pair] < _MIN_COSINE:
            raise ValueError(
                f"every pair of rotary.turns turns by about half a turn or more over the grid of "
                f"{grid[0]} × {grid[1]} tokens, but expected a slower one, which keeps tokens "
                "before the grid from looking like tokens of it; take a larger base, or a model "
                "without class and register tokens"
            )
        cosine = float(cosines[pair])
        return cls(1.0, rotary, grid, before, amplitudes, lead, lowest, pair, cosine)

    def stored_norms(self, model: VisionTransformer) -> PositionNorms:
        """Tokens of the grid hold nothing."""
        return PositionNorms(0.0, self.norm, 0.0)

    @property
    def used(self) -> Int[np.ndarray, " features"]:
        """The coordinates of pairs with an amplitude, and of i beside tokens before the grid."""
        needed = self.amplitudes > 0
        needed[self.pair] |= self.before > 0
        return np.sort(self.rotary.coordinates[:, needed].ravel())

    def with_positions(self, model: VisionTransformer) -> VisionTransformer:
        """The network with ρ E in the tokens before the grid; positions keep all other values."""
        if not self.before:
            return model
        channels = slice(-CHANNELS, None)
        patch, patch_bias, prefix = model.patch.copy(), model.patch_bias.copy(), model.prefix.copy()
        patch[channels], patch_bias[channels], prefix[:, channels] = 0, 0, self.norm * E
        positions = None if model.positions is None else model.positions.copy()
        if positions is not None:
            positions[:, channels] = 0
        return replace(
            model, patch=patch, patch_bias=patch_bias, prefix=prefix, positions=positions
        )

    def with_scores(
        self,
        model: VisionTransformer,
        block: Block,
        shifts: Sequence[Shift],
        content: float,
        leak: float,
    ) -> Block:
        """The block whose scores are α S, with the least α."""
        changed, channels = dict(block), slice(-CHANNELS, None)
        deviation_range = deviations(len(model.patch_bias), model.epsilon, content, self.norm)
        vectors = {shift: self._vectors(shift, deviation_range) for shift in shifts}
        heads = [
            (
                self._scores(*each, deviation_range)[0],
                targets(self.grid, "edge", shift, self.before),
            )
            for shift, each in vectors.items()
        ]

        def largest(factor: float) -> float:
            return max(float(leaks(factor * s, 0 * s, at, EXACT).max()) for s, at in heads)

        factor = least_factor(largest, leak, "rotary positions")
        scale = math.sqrt(factor * math.sqrt(2 * len(self.amplitudes)))
        query, key, before = (
            scale * self._features(np.stack([vectors[shift][part] for shift in shifts])).reshape(-1)
            for part in range(3)
        )
        changed["query.bias"], changed["key.bias"] = query, key
        if self.before:
            first = model.prefix[0]
            if model.positions is not None and len(model.positions) > self.grid[0] * self.grid[1]:
                first = first + model.positions[0]
            deviation = math.sqrt(first.var() + model.epsilon)
            for name, read in (("query", -deviation * query), ("key", before)):
                weight = changed[f"{name}.weight"].copy()
                weight[:, channels] = read[:, None] / self.norm * E
                changed[f"{name}.weight"] = weight
        return changed

    def leaks(
        self, model: VisionTransformer, block: Block, shifts: Sequence[Shift], content: float
    ) -> Float[np.ndarray, " heads"]:
        """The largest leak of each head of a block, from the numbers that the network holds."""
        vector = model.prefix[: self.before and 1, -CHANNELS:].sum(axis=0)
        deviation_range = deviations(
            len(model.patch_bias), model.epsilon, content, float(np.linalg.norm(vector))
        )
        read = block["key.weight"][:, -CHANNELS:] @ vector
        pairs = [
            self._pairs(features.reshape(len(shifts), -1))
            for features in (block["query.bias"], block["key.bias"], read)
        ]
        root, worst = math.sqrt(2 * len(self.amplitudes)), []
        for shift, query, key, before in zip(shifts, *pairs, strict=True):
            scores, slack = self._scores(query, key, before, deviation_range)
            at = targets(self.grid, "edge", shift, self.before)
            worst.append(float(leaks(scores / root, slack / root, at, EXACT).max()))
        return np.array(worst)

    def _vectors(self, shift: Shift, deviation_range: Deviations) -> tuple[Pairs, Pairs, Pairs]:
        """b_Q, b_K and ρ W_K E of a head, for α√d = 1."""
        turned = np.exp(1j * self.rotary.angles(np.array(shift)))
        query, key = np.sqrt(self.amplitudes) * turned, np.sqrt(self.amplitudes) + 0j
        before = np.zeros_like(key)
        if self.before:
            at = self.pair
            query[at], key[at] = turned[at], self.amplitudes[at]
            middle = np.array(self.rotary.origin) + (np.array(self.grid) - 1) / 2
            length = (1 - self.lowest + self.lead) * deviation_range.highest / self.cosine
            before[at] = -length * turned[at] * np.exp(1j * self.rotary.angles(middle)[at])
        return query, key, before

    def _scores(
        self, query: Pairs, key: Pairs, before: Pairs, deviation_range: Deviations
    ) -> tuple[Float[np.ndarray, "queries keys"], Float[np.ndarray, "queries keys"]]:
        """The largest scores on all images, times √d, and how far rounding can move them."""
        turned = self.rotary.tokens(self.grid)
        queries, keys = turned * query, turned * key
        unturned = [
            key + before / deviation
            for deviation in (deviation_range.lowest, deviation_range.highest)
        ]
        others = np.max([(queries @ each.conj()).real for each in unturned], axis=0)
        repeated = np.repeat(others[:, None], self.before, axis=1)
        scores = np.concatenate([repeated, (queries @ keys.conj().T).real], axis=1)
        terms = np.abs(query) @ (np.abs(key) + np.abs(before) / deviation_range.lowest)
        return scores, np.full_like(scores, ROUNDING * terms)

    def _pairs(self, features: Float[np.ndarray, "*heads features"]) -> Pairs:
        real, imaginary = self.rotary.coordinates
        return features[..., real] + 1j * features[..., imaginary]

    def _features(self, pairs: Pairs) -> Float[np.ndarray, "*heads features"]:
        features = np.zeros((*pairs.shape[:-1], 2 * pairs.shape[-1]))
        real, imaginary = self.rotary.coordinates
        features[..., real], features[..., imaginary] = pairs.real, pairs.imag
        return features
