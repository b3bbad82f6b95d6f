"""The parameters of a network whose attention layers are given filters.

The last channels of a token are reserved for positions, and hold nothing else ever: the patch
projection and both sublayers of a block write zero there. What stands in them, and what queries and
keys make of it, is different for networks with added positions (`AddedPositions`) and with rotary
ones (`rotary.py`).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from convattn.initialization.filters import Filters
from convattn.initialization.leaks import (
    PositionNorms,
    deviations,
    largest_ratio,
    position_channels,
    position_norms,
    sharpest_needed,
    stored_leaks,
)
from convattn.initialization.positions import CHANNELS, USED, PositionCode, Shift, basis
from convattn.networks.vision_transformer.state_dicts import Block, VisionTransformer


@dataclass(frozen=True, eq=False)
class Positions(ABC):
    """How the scores of a network come to depend on positions.

    Attributes:
        norm: Of what is written to the reserved channels.
    """

    norm: float

    @abstractmethod
    def stored_norms(self, model: VisionTransformer) -> PositionNorms:
        """The norms of what the tokens of a stored network hold there."""

    @property
    @abstractmethod
    def used(self) -> Int[np.ndarray, " features"]:
        """The features of a head that the scores need."""

    def usual_norm(self, content: float, before: int) -> float:
        """The norm if none is asked for, beside content of this norm."""
        return content

    @abstractmethod
    def with_positions(self, model: VisionTransformer) -> VisionTransformer:
        """The network with positions in the reserved channels."""

    @abstractmethod
    def with_scores(
        self,
        model: VisionTransformer,
        block: Block,
        shifts: Sequence[Shift],
        content: float,
        leak: float,
    ) -> Block:
        """A block without scores, with the least ones with which no head leaks more.

        Args:
            model: With positions in the reserved channels.
            shifts: Of each head.
            content: The largest norm of a token's other channels.
        """

    @abstractmethod
    def leaks(
        self, model: VisionTransformer, block: Block, shifts: Sequence[Shift], content: float
    ) -> Float[np.ndarray, " heads"]:
        """The largest leak of each head of a block, from the numbers that the network holds."""


@dataclass(frozen=True, eq=False)
class AddedPositions(Positions):
    """ρ E u in the last eight channels of every token (`positions.py`).

    On these channels W_Q = t E Q_h and W_K = t E K, so that a score is t²ρ²·s/(√d σ_q σ_k).

    Attributes:
        norm: 2ρ.
        code: What is written and read.
    """

    code: PositionCode

    def usual_norm(self, content: float, before: int) -> float:
        """That of the content, or more where deviations may not differ so much."""
        ratio = largest_ratio(self.code, before)
        return content * max(1.0, (ratio - 1) ** -0.5)

    def stored_norms(self, model: VisionTransformer) -> PositionNorms:
        """Those of all tokens."""
        return position_norms(position_channels(model, self.code.grid))

    @property
    def used(self) -> Int[np.ndarray, " features"]:
        """The first ones."""
        return np.arange(USED)

    def with_positions(self, model: VisionTransformer) -> VisionTransformer:
        """The network with the positions of the code in place of its own.

        What an image adds to the other channels stays as it is; the class token has zeros there if
        it is the border.
        """
        before, channels = len(model.prefix), slice(-CHANNELS, None)
        vectors = self.norm / 2 * self.code.features(before) @ basis().T
        patch, patch_bias, prefix = model.patch.copy(), model.patch_bias.copy(), model.prefix.copy()
        patch[channels], patch_bias[channels] = 0, 0
        if self.code.border == "class":
            prefix[0] = 0
        prefix[:, channels] = vectors[:before]
        positions = np.zeros_like(model.positions)
        positions[-len(vectors[before:]) :, channels] = vectors[before:]
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
        """The block with the scores s/(σ_q σ_k), times the factor of `sharpest_needed`."""
        changed, width, before = dict(block), len(model.patch_bias), len(model.prefix)
        deviation_range = deviations(width, model.epsilon, content, self.norm)
        factor = sharpest_needed(
            self.code, list(dict.fromkeys(shifts)), before, deviation_range, leak
        )
        head_dim = len(block["query.weight"]) // len(shifts)
        scale = math.sqrt(factor * math.sqrt(head_dim)) * 2 / self.norm
        for name in ("query", "key"):
            weight = changed[f"{name}.weight"].reshape(len(shifts), head_dim, width).copy()
            for head, shift in enumerate(shifts):
                read = self.code.query(shift) if name == "query" else self.code.key()
                weight[head, :USED, -CHANNELS:] = scale * (basis() @ read).T
            changed[f"{name}.weight"] = weight.reshape(-1, width)
        return changed

    def leaks(
        self, model: VisionTransformer, block: Block, shifts: Sequence[Shift], content: float
    ) -> Float[np.ndarray, " heads"]:
        """As `stored_leaks`."""
        return stored_leaks(model, self.code, block, tuple(shifts), content)


def with_filters(
    model: VisionTransformer, filters: Sequence[Filters], used: Int[np.ndarray, " features"]
) -> VisionTransformer:
    """The network with the value and output maps of these filters, and no scores.

    Features that no score needs keep the parameters of their queries; all keys are zero. Biases of
    queries, keys and values are zero, LayerNorm leaves positions as they are, and layer scale in
    the attention's sum is 1.
    """
    pairs = zip(model.blocks, filters, strict=True)
    return replace(
        model, blocks=tuple(_filtered(block, layer_filters, used) for block, layer_filters in pairs)
    )


def _filtered(block: Block, filters: Filters, used: Int[np.ndarray, " features"]) -> Block:
    heads, channels, head_dim = filters.values.shape
    changed = {name: array.copy() for name, array in block.items()}
    width = changed["query.weight"].shape[1]
    query = changed["query.weight"].reshape(heads, head_dim, width)
    query[:, used], query[:, :, channels:] = 0, 0
    value, output = np.zeros((heads, head_dim, width)), np.zeros((width, heads, head_dim))
    value[:, :, :channels] = filters.values.swapaxes(1, 2)
    output[:channels] = np.moveaxis(filters.outputs, 2, 0)
    changed["key.weight"] = np.zeros_like(changed["key.weight"])
    changed["value.weight"] = value.reshape(heads * head_dim, width)
    changed["output.weight"] = output.reshape(width, heads * head_dim)
    for name in ("query", "key", "value"):
        if f"{name}.bias" in changed:
            changed[f"{name}.bias"][:] = 0
    changed["norm1.weight"][channels:], changed["norm1.bias"][channels:] = 1, 0
    if "scale1" in changed:
        changed["scale1"][:] = 1
    for name in ("output.bias", "fc2.weight", "fc2.bias"):
        changed[name][channels:] = 0
    return changed
