"""Axial rotary encodings: each pair turns with one axis, so that scores are a sum over the axes.

    Σ_a Σ_j a_haj cos(2π f_haj δ_a) + b_haj sin(2π f_haj δ_a),

the scores of `RotaryEncoding` with frequencies along the axes alone. Softmax over a rectangle of
keys is then a product over the axes (S.separable of this project's ledger).
"""

from dataclasses import dataclass, field

import jax
import numpy as np
from jax import Array
from jaxtyping import Float, Int, Num

from convattn.encodings.axis_scores import AxisScores, axis_shifts, free_groups
from convattn.encodings.base import RelativePosition, check_axes
from convattn.encodings.rotary import RotaryEncoding
from convattn.operators.shifts import TokenGrid


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class AxialRotaryEncoding(RelativePosition):
    """The parts of a rotary encoding, for each axis its own.

    Attributes:
        turns: For each axis a, f_haj = ω_haj/2π: turns of a pair for each token along it.
        cosine: For each axis, a_haj, the real part of query times conjugate key.
        sine: For each axis, b_haj, the imaginary part.
        largest_shift: As in `RotaryEncoding`.

    Source: Heo et al. 2024 (arXiv:2403.13298), axial frequencies.

    >>> import jax.numpy as jnp
    >>> half, quarter, one = (jnp.array([[x]]) for x in (0.5, 0.25, 1.0))
    >>> encoding = AxialRotaryEncoding((half, quarter), (one, one), (0 * one, 0 * one))
    >>> encoding.shift_scores(np.array([[0, 0], [1, 0], [2, 2], [1, 2]]), 9).round(5).tolist()
    [[2.0, 0.0, 0.0, -2.0]]
    """

    turns: tuple[Num[Array, "heads pairs"], ...]
    cosine: tuple[Num[Array, "heads pairs"], ...]
    sine: tuple[Num[Array, "heads pairs"], ...]
    largest_shift: tuple[int, ...] = field(default=(), metadata={"static": True})

    def along(self, axis: int) -> RotaryEncoding:
        """The part of one axis, an encoding of sequences."""
        arrays = self.cosine[axis], self.sine[axis], self.largest_shift[axis : axis + 1]
        return RotaryEncoding(self.turns[axis][..., None], *arrays)

    def shift_scores(
        self, shifts: Int[np.ndarray, "shifts axes"], number_of_keys: int | Array
    ) -> Float[Array, "heads shifts"]:
        """The sum over the axes."""
        check_axes(shifts, len(self.turns), "AxialRotaryEncoding")
        first, *others = (
            self.along(axis).shift_scores(shifts[:, [axis]], number_of_keys)
            for axis in range(len(self.turns))
        )
        return sum(others, first)

    def axis_scores(self, grid: TokenGrid) -> AxisScores:
        """The terms of the sum: every head has its own rows and its own columns."""
        check_axes(grid.query_positions, len(self.turns), "AxialRotaryEncoding")
        scores = []
        for axis, shifts in enumerate(grid.shift_ranges):
            table = self.along(axis).shift_scores(np.array(shifts)[:, None], grid.number_of_keys)
            scores.append(table[:, axis_shifts(grid, axis) - shifts.start])
        return AxisScores(tuple(scores), free_groups(self.heads, len(scores)))

    def check(self) -> None:
        """Refuse parts whose axes, or whose pairs on an axis, differ in number.

        Raises:
            ValueError: As described above, and as `Encoding.check` does.
        """
        super().check()
        axes = {len(part) for part in (self.turns, self.cosine, self.sine)}
        if len(axes) > 1 or len(self.largest_shift) not in {0, *axes}:
            raise ValueError(
                f"encoding.turns, cosine, sine are of {len(self.turns)}, {len(self.cosine)}, "
                f"{len(self.sine)} axes, largest_shift={self.largest_shift}, but expected as many "
                "of each"
            )
        for axis in range(len(self.turns)):
            self.along(axis).check()

    def shift_majorant(
        self, shifts: Int[np.ndarray, "shifts axes"], number_of_keys: int
    ) -> Float[Array, "heads shifts"]:
        """The sum of the magnitudes of its terms at each shift."""
        first, *others = (
            self.along(axis).shift_majorant(shifts[:, [axis]], number_of_keys)
            for axis in range(len(self.turns))
        )
        return sum(others, first)

    @property
    def roundings(self) -> int:
        """Those of a score beyond 16."""
        return 16 + sum(part.shape[1] + 2 for part in self.turns)
