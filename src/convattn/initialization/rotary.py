"""Rotary positions: how a network turns its queries and keys, and what its angles tell apart.

Pair j of the coordinates of every query and key, as a complex number, is multiplied by e^(iω_j·p)
for a token of the grid at p (`encodings/rotary.py`). Tokens before the grid are not turned.

Heads that look at Δ have scores of the key q + δ that are multiples of S(δ - Δ), with

    S(x) = Σ_j a_j cos(ω_j·x),    a_j ≥ 0,  Σ_j a_j = 1.

**The edge.** Let t be the token of the grid that is nearest to q + Δ, and s = t - q - Δ: zero
inside. With a kernel that reaches r tokens on an axis of n, for another key t + y on this axis s =
0 and |y| < n, or 0 < |s| ≤ r and |y| < n in the direction of s, as t stands at the edge. So if

    S(s) - S(s + y) ≥ m > 0    for all these (s, y) of the plane but y = 0,

then at every query the key t is ahead of all others of the grid by m: the border is the nearest
token of the edge. The amplitudes with the largest m are those of a linear program. Frequencies
without such a lead are refused: so few, or all so fast, that every cosine comes back on the grid.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from jaxtyping import Complex, Float, Int, Num
from scipy.optimize import linprog

from convattn.encodings.rotary import axial_turns
from convattn.operators.integers import as_integer

Layout = Literal["interleaved", "halves"]
_MIN_LEAD = 2.0**-10  # less is near the rounding of scores in float32
_MIN_AMPLITUDE = 1e-6  # less is what a linear program leaves over


@dataclass(frozen=True, eq=False)
class Rotary:
    """How a network turns its queries and keys.

    Attributes:
        turns: f_j = ω_j/2π: turns of a pair for each token along rows and columns.
        layout: Pair j is the coordinates 2j and 2j + 1 ("interleaved"), or j and j + d/2
            ("halves").
        origin: Where the first token of the grid stands, in tokens; it matters only beside tokens
            that are not turned.

    Raises:
        ValueError: For other shapes, numbers that are not finite, and another layout.
    """

    turns: Float[np.ndarray, "pairs axes"]
    layout: Layout = "interleaved"
    origin: tuple[float, float] | Float[np.ndarray, " axes"] = (0.0, 0.0)

    def __post_init__(self) -> None:
        try:
            for name in ("turns", "origin"):
                value = np.asarray(getattr(self, name))
                object.__setattr__(self, name, value.astype(np.float64, casting="same_kind"))
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"{name}={getattr(self, name)!r}, but expected real numbers: {error}"
            ) from error
        shape = np.shape(self.turns)
        if len(shape) != 2 or shape[0] < 1 or shape[1] != 2 or np.shape(self.origin) != (2,):
            raise ValueError(
                f"turns.shape={shape} and origin={self.origin!r}, but expected [pairs, 2] and two "
                "numbers: rows and columns"
            )
        if not (np.isfinite(self.turns).all() and np.isfinite(self.origin).all()):
            raise ValueError("turns or origin are not finite, but expected finite numbers")
        if self.layout not in get_args(Layout):
            raise ValueError(
                f"layout={self.layout!r}, but expected 'interleaved' (pairs 2j, 2j + 1) or "
                "'halves' (pairs j, j + d/2)"
            )

    @classmethod
    def axial(
        cls,
        head_dim: int,
        base: float = 100.0,
        *,
        columns_first: bool = False,
        spacing: tuple[float, float] = (1.0, 1.0),
        layout: Layout = "interleaved",
        origin: tuple[float, float] = (0.0, 0.0),
    ) -> "Rotary":
        """Half of the pairs turn with rows and half with columns, spacing·base^(-4j/d) a token.

        In timm, `base` is `rope_temperature`, `columns_first` is `rope_grid_indexing="xy"`, layout
        "halves" is `rope_rotate_half`; with `rope_type="cat"` `rope_grid_offset` is `origin` on
        both axes and a reference grid makes the spacing its sides over those of the grid. DINOv3 on
        n_1 × n_2 tokens has "halves", the spacing 4π/n and the origin (1 - n)/2.

        Args:
            columns_first: Whether the first half of the pairs turns with columns.
            spacing: Radians per token of the fastest pair, along rows and columns.

        Raises:
            ValueError: For a head dimension that is no multiple of four, and as `axial_turns`.

        Source: Heo et al. 2024 (arXiv:2403.13298), axial frequencies.

        >>> (2 * np.pi * Rotary.axial(8, columns_first=True).turns).round(3).tolist()
        [[0.0, 1.0], [0.0, 0.1], [1.0, 0.0], [0.1, 0.0]]
        """
        head_dim = as_integer(head_dim, "head_dim")
        if not all(isinstance(each, int | float) for each in (base, *np.ravel(spacing).tolist())):
            raise ValueError(
                f"base={base!r} and spacing={spacing!r}, but expected a number, and one for each "
                "axis"
            )
        if np.shape(spacing) != (2,):
            raise ValueError(f"spacing={spacing!r}, but expected two numbers: rows and columns")
        if head_dim < 4 or head_dim % 4:
            raise ValueError(
                f"head_dim={head_dim}, but expected a multiple of four, two coordinates a pair on "
                "each of two axes; give Rotary(turns) for other frequencies"
            )
        turns = axial_turns(head_dim // 4, 2, base=base) * np.array(spacing)
        if columns_first:
            turns = np.roll(turns, head_dim // 4, axis=0)
        return cls(turns, layout, origin)

    @property
    def coordinates(self) -> Int[np.ndarray, "parts pairs"]:
        """Where the real and the imaginary part of each pair stand in a head."""
        numbers = np.arange(2 * len(self.turns))
        return numbers.reshape(2, -1) if self.layout == "halves" else numbers.reshape(-1, 2).T

    def angles(
        self, positions: Num[np.ndarray, "*tokens axes"]
    ) -> Float[np.ndarray, "*tokens pairs"]:
        """ω_j·p, whole turns dropped."""
        turned = np.asarray(positions, np.float64) @ self.turns.T
        return 2 * np.pi * (turned - np.round(turned))

    def tokens(self, grid: tuple[int, int]) -> Complex[np.ndarray, "tokens pairs"]:
        """e^(iω_j·p) of each token of the grid."""
        positions = np.argwhere(np.ones(grid)) + np.array(self.origin)
        return np.exp(1j * self.angles(positions))


def largest_lead(
    rotary: Rotary, grid: tuple[int, int], reach: tuple[int, int]
) -> tuple[Float[np.ndarray, " pairs"], float, float]:
    """The amplitudes a with the largest lead m, m, and the least S(s) of a target.

    >>> amplitudes, lead, least = largest_lead(Rotary.axial(8, base=10.0), (8, 8), (1, 1))
    >>> amplitudes.round(2).tolist(), round(lead, 3), round(least, 3)
    ([0.29, 0.21, 0.29, 0.21], 0.144, 0.712)
    """
    axes = []
    for side, steps in zip(grid, reach, strict=True):
        axis = [(0, at) for at in range(1 - side, side)]
        for out in range(1, steps + 1):
            axis += [(sign * out, sign * (out + at)) for sign in (1, -1) for at in range(side)]
        axes.append(np.array(axis))
    rows, columns = np.indices([len(axis) for axis in axes]).reshape(2, -1)
    target, other = (
        np.stack([axes[0][rows, coordinate], axes[1][columns, coordinate]], axis=1)
        for coordinate in (0, 1)
    )
    waves = np.cos(rotary.angles(target))
    ahead = (waves - np.cos(rotary.angles(other)))[(target != other).any(axis=1)]
    ahead, pairs = np.unique(ahead, axis=0), len(rotary.turns)
    solution = linprog(  # maximise m over (a, m)
        [0] * pairs + [-1],
        A_ub=np.column_stack([-ahead, np.ones(len(ahead))]),
        b_ub=np.zeros(len(ahead)),
        A_eq=[[1] * pairs + [0]],
        b_eq=[1],
        bounds=[(0, 1)] * pairs + [(-2, 2)],
    ).x[:-1]
    amplitudes = np.where(solution > _MIN_AMPLITUDE, solution, 0)
    amplitudes /= amplitudes.sum()
    lead = float((ahead @ amplitudes).min(initial=2.0))
    if lead < _MIN_LEAD:
        raise ValueError(
            f"rotary: no scores of these {pairs} pairs on a grid of {grid[0]} × {grid[1]} tokens "
            f"are largest at the token nearest to a target up to {max(reach)} tokens outside: the "
            f"best lead is {lead:.2g} of the score, but expected {_MIN_LEAD:.2g}; take more or "
            "other frequencies (another base, a larger head dimension), a smaller kernel, or "
            "larger patches"
        )
    return amplitudes, lead, float((waves @ amplitudes).min())
