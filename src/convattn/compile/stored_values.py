"""What the streams of one run hold of a network's values, looked at in float64."""

from typing import Any

import numpy as np

from convattn.compile.affine import Value
from convattn.compile.lattice import Lattice
from convattn.compile.parameters import Constants
from convattn.compile.plan import Plan
from convattn.compile.stock import Streams
from convattn.operators.roundoff import gamma, unit_roundoff


class StoredValues:
    """The values of a network in the streams of a run of its vision transformer."""

    def __init__(self, plan: Plan, constants: Constants, streams: Streams) -> None:
        self.plan, self.constants = plan, constants
        self.half = plan.width // 2
        self.unit = unit_roundoff(streams.logits.dtype)
        self.before, self.between = list(streams.before), list(streams.between)
        self.last = streams.last

    def points(self, lattice: Lattice | None, tokens: np.ndarray, channels: int) -> np.ndarray:
        """Numbers of tokens `[batch, tokens, points · channels]`, by points."""
        if lattice is None:
            return tokens[:, 0]
        image = self.plan.network.image.lattice
        assert image is not None
        grid = tokens[:, 1:].reshape(len(tokens), *image.tokens, -1)
        grid = grid[:, :: lattice.apart[0], :: lattice.apart[1]]
        grid = grid[:, : lattice.tokens[0], : lattice.tokens[1]]
        parts = grid.reshape(len(grid), *lattice.tokens, *lattice.held, channels)
        return parts.transpose(0, 1, 3, 2, 4, 5).reshape(len(grid), *lattice.count, channels)

    def read(self, value: Value, stream: Any) -> np.ndarray:
        """What a stream holds of a value."""
        wide, channels = np.asarray(stream, np.float64), self.plan.channels[value]
        numbers = (wide[..., channels] - wide[..., self.half + channels]) / 2
        return self.points(value.lattice, numbers, value.channels)

    def at_points(self, lattice: Lattice | None, tokens: np.ndarray) -> np.ndarray:
        """One number of each token, `[batch, tokens, 1]`, at the points of a lattice."""
        return self.points(lattice, tokens.repeat(1 if lattice is None else lattice.phases, -1), 1)

    def _squares(self, stream: Any) -> np.ndarray:
        """Σ x² of the values in each token, `[batch, tokens, 1]`."""
        first, wide = self.plan.constants, np.asarray(stream, np.float64)
        numbers = wide[..., first : self.half] - wide[..., self.half + first : 2 * self.half]
        return (numbers**2).sum(-1, keepdims=True) / 4

    def deviation(self, stream: Any) -> np.ndarray:
        """η of each token, `[batch, tokens, 1]`, also of those that hold no point."""
        constants = self.constants
        square = 2 * (constants.norm**2 + constants.epsilon * self.plan.width / 2)
        return self._squares(stream) / square

    def largest(self) -> float:
        """√Σ x² of the values in any token of the run."""
        streams = [*self.before, *self.between, self.last]
        return float(np.sqrt(max(self._squares(stream).max() for stream in streams)))

    def mean(self, stream: Any) -> float:
        """μ: at most what LayerNorm subtracts from the numbers of any token.

        The sum of D numbers, in whatever order, has D - 1 roundings of partial sums, each at most
        (Σ|x| + |Σx|)/2. The line below rounds too, in float64.
        """
        wide = np.asarray(stream, np.float64)
        exact, sizes = np.abs(wide.mean(-1)), np.abs(wide).mean(-1)
        own = gamma(self.plan.width + 1, unit_roundoff(np.float64)) * sizes
        return float((exact + own + gamma(self.plan.width, self.unit) * (sizes + exact) / 2).max())

    def blocks(self, value: Value) -> int:
        """How many blocks have run when a value is there."""
        numbers = [n for n, block in enumerate(self.plan.blocks) if block.node.value is value]
        return numbers[-1] + 1 if numbers else 0

    def after(self, value: Value) -> np.ndarray:
        """What the stream holds of a value once it is there."""
        number = self.blocks(value)
        return self.read(value, self.last if number == len(self.before) else self.before[number])
