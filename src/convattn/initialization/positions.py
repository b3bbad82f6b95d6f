"""Positions in a few channels of the stream, which LayerNorm leaves readable, and their scores.

**Through LayerNorm.** LayerNorm subtracts the mean μ of a token x and divides by its deviation σ.
Let the reserved channels hold E u, where E has orthonormal columns that are orthogonal to the
vector of ones. Then Eᵀ(x - μ1)/σ = u/σ, whatever the other channels hold: the direction of u
survives, its length does not. A score that is bilinear in u is s(q, k)/(σ_q σ_k). The query's 1/σ_q
makes a whole row sharper or less sharp. But 1/σ_k differs from key to key, so that a key with a
lower s > 0 and a smaller σ_k could win. So s is shifted to be positive at the target and negative
elsewhere: no positive 1/σ_k changes a sign.

**Scores.** On an axis of n tokens token i has the angle θ_i = 2πi/M, a corner of the regular M-gon.
(If M = n no other features in the plane have this lead with a smaller norm: S.polygon.) With
rotations R_δ, which W_Q holds, and weights w_a = 1/(1 - cos 2π/M_a)

    s(q, k) = Σ_a w_a cos(θ_k - θ_q - 2πδ_a/M_a) - Σ_a w_a + x,    0 < x < 1:

the key at q + δ has x, and every other key of the grid is at least 1 below it. The last two terms
take two further channels, one that only queries read and one that only keys read.

**Borders.** Let the kernel reach r tokens on an axis.

- *Circular*: M = n, so that q + δ is taken modulo n.
- *Edge*: M = n + 2r; the cosine falls up to half a turn, so the best key is the token of the edge
  that is nearest to q + δ. Where a target is s tokens outside, its score is lower, and the next key
  is at least 1 below it, too, as cos ωs - cos ω(s + 1) = 2 sin(ω/2) sin ω(s + ½). But both are
  negative then, so σ_k may vary by a factor of at most 2.1 to 3 for K = 3 (from 3 tokens on an
  axis to many), on 8 tokens by 1.3 for K = 5 and by 1.1 for K = 7.
- *Class*: M = n + r, and x = 1/3. The class token has zero in both channels, and so the score 0:
  what is outside the grid is the class token. In the first layer its other channels are zero, and
  so after a LayerNorm without bias: zero padding. In later layers it is what the class token holds.

Otherwise tokens before the grid have the score 2(x - Σ w_a), below that of every target on a grid
of two tokens or more. They read all tokens alike: their queries are zero.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

BORDERS = ("class", "edge", "circular")
FEATURES = 7  # two circles, what queries read, what keys read, and what nothing reads
CHANNELS = FEATURES + 1  # one more, as all features are orthogonal to the ones
USED = 5  # of a head's features
_TARGET = {"class": 1 / 3, "edge": 1 / 2, "circular": 1 / 2}  # x

Shift = tuple[int, int]


@dataclass(frozen=True)
class PositionCode:
    """How positions are laid into the reserved channels, and read out of them.

    Attributes:
        grid: Rows and columns of tokens.
        border: One of `BORDERS`.
        reach: r of each axis.
        corners: M of each axis.
        weights: w of each axis; 0 for an axis of one token.
    """

    grid: tuple[int, int]
    border: str
    reach: tuple[int, int]
    corners: tuple[int, int]
    weights: tuple[float, float]

    @classmethod
    def of(cls, grid: tuple[int, int], reach: tuple[int, int], border: str) -> "PositionCode":
        """The code for kernels that reach so many tokens on each axis.

        >>> PositionCode.of((8, 8), (1, 1), "edge").corners
        (10, 10)
        """
        extra = {"class": 1, "edge": 2, "circular": 0}[border]
        corners = tuple(n + extra * r for n, r in zip(grid, reach, strict=True))
        weights = tuple(1 / (1 - math.cos(2 * math.pi / m)) if m > 1 else 0.0 for m in corners)
        return cls(grid, border, reach, (corners[0], corners[1]), (weights[0], weights[1]))

    @property
    def threshold(self) -> float:
        """Σ w_a - x."""
        return sum(self.weights) - _TARGET[self.border]

    def features(self, before: int) -> Float[np.ndarray, "tokens features"]:
        """u of each token, those before the grid first; all of the norm 2."""
        rows, columns = np.divmod(np.arange(self.grid[0] * self.grid[1]), self.grid[1])
        angles = [2 * np.pi * at / m for at, m in zip((rows, columns), self.corners, strict=True)]
        waves = [wave(angle) for angle in angles for wave in (np.cos, np.sin)]
        ones = np.ones_like(angles[0])
        tokens = np.stack([*waves, ones, ones, 0 * ones], axis=1)
        others = np.zeros((before, FEATURES))
        others[:, 5] = 2
        if self.border == "class":
            others[:1, 5:] = 0, 2
        return np.concatenate([others, tokens])

    def query(self, shift: Shift) -> Float[np.ndarray, "features used"]:
        """What a head that looks at this shift makes of the features of a query."""
        matrix = np.zeros((FEATURES, USED))
        for axis, (step, m, weight) in enumerate(
            zip(shift, self.corners, self.weights, strict=True)
        ):
            turn, rows = 2 * np.pi * step / m, slice(2 * axis, 2 * axis + 2)
            rotation = [[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]]
            matrix[rows, rows] = math.sqrt(weight) * np.array(rotation)
        matrix[4, 4] = -math.copysign(math.sqrt(abs(self.threshold)), self.threshold)
        return matrix

    def key(self) -> Float[np.ndarray, "features used"]:
        """What every head makes of the features of a key."""
        matrix = np.zeros((FEATURES, USED))
        roots = [math.sqrt(weight) for weight in self.weights for _ in range(2)]
        matrix[:4, :4] = np.diag(roots)
        matrix[5, 4] = math.sqrt(abs(self.threshold))
        return matrix


def targets(
    grid: tuple[int, int], border: str, shift: Shift, before: int
) -> Int[np.ndarray, " queries"]:
    """The number of the key that each token of the grid looks at, tokens before it counted.

    >>> targets((1, 3), "edge", (0, 1), 1).tolist()
    [2, 3, 3]
    """
    indices = []
    for position in np.ndindex(*grid):
        target = [at + step for at, step in zip(position, shift, strict=True)]
        if border == "circular":
            row, column = (at % side for at, side in zip(target, grid, strict=True))
        else:
            row, column = (min(max(at, 0), n - 1) for at, n in zip(target, grid, strict=True))
        outside = border == "class" and [row, column] != target
        indices.append(0 if outside else before + row * grid[1] + column)
    return np.array(indices)


def basis() -> Float[np.ndarray, "channels features"]:
    """E: orthonormal columns that are orthogonal to the ones, those of Helmert.

    >>> bool(np.abs(basis().T @ basis() - np.eye(FEATURES)).max() < 1e-15)
    True
    >>> bool(np.abs(basis().sum(axis=0)).max() < 1e-15)
    True
    """
    columns = np.zeros((CHANNELS, FEATURES))
    for column in range(FEATURES):
        columns[: column + 1, column] = 1
        columns[column + 1, column] = -(column + 1)
        columns[:, column] /= math.sqrt((column + 1) * (column + 2))
    return columns
