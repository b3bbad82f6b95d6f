"""Affine maps of stored values: the linear half of a convolutional network.

A value is what tokens store: a feature map on a lattice, or a vector of the class token. What
convolutions, sums, scales, biases and linear maps make of values is

    A[i] = Σ_v Σ_o v[stride·i + o] M_vo,

a sum over values v and offsets o. A bias is such a term of a value that is 1 at every point and, as
every value, 0 outside the image, so that zero padding needs no case of its own: biases before it
and after it differ by themselves. Other borders read the nearest point (edge), or go around
(circular). A vector reads maps at single points or their mean over all points.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from jaxtyping import Float, Int

from convattn.compile.lattice import Lattice, Pair

Border = Literal["zeros", "edge", "circular"]
MEAN: Literal["mean"] = "mean"
Where = Pair | Literal["mean"]
Matrix = Float[np.ndarray, "in_channels out_channels"]
CENTRE = (0, 0)


@dataclass(frozen=True, eq=False)
class Value:
    """What tokens store.

    Attributes:
        name: For reports.
        channels: Of a point.
        lattice: Of a feature map; None for a vector of the class token.
        is_one: Whether it is the constant 1.
    """

    name: str
    channels: int
    lattice: Lattice | None
    is_one: bool = False

    @property
    def features(self) -> int:
        """Of a token: the channels of all its points."""
        return self.channels * (1 if self.lattice is None else self.lattice.phases)


Terms = Mapping[tuple[Value, Border], Mapping[Where, np.ndarray]]


@dataclass(frozen=True, eq=False)
class Affine:
    """Σ_v Σ_o v[stride·i + o] M_vo.

    Attributes:
        lattice: Of its points i; None for a vector.
        channels: Columns of every matrix.
        terms: By value and border the matrices of what is read: offsets in points of the value; of
            a map that a vector reads, points, or `MEAN`.
    """

    lattice: Lattice | None
    channels: int
    terms: Terms

    @staticmethod
    def of(value: Value) -> "Affine":
        """The value itself."""
        terms: Terms = {(value, "zeros"): {CENTRE: np.eye(value.channels)}}
        return Affine(value.lattice, value.channels, terms)

    @property
    def is_pointwise(self) -> bool:
        """Whether every point reads its own place alone, and a vector vectors."""
        return all(
            value.lattice == self.lattice and set(taps) <= {CENTRE}
            for (value, _), taps in self.terms.items()
        )

    def _each(self, channels: int, change: Callable[[np.ndarray], np.ndarray]) -> "Affine":
        terms = {
            key: {where: change(matrix) for where, matrix in taps.items()}
            for key, taps in self.terms.items()
        }
        return replace(self, channels=channels, terms=terms)

    def mapped(self, matrix: Matrix) -> "Affine":
        """Each point's channels times a matrix from the right."""
        return self._each(matrix.shape[1], lambda held: held @ matrix)

    def scaled(self, factors: Float[np.ndarray, "channels"]) -> "Affine":
        """Each channel times its factor."""
        return self._each(self.channels, lambda held: held * factors)

    def taken(self, index: Int[np.ndarray, "channels"]) -> "Affine":
        """The channels of these numbers."""
        return self._each(len(index), lambda held: held[:, index])

    def plus(self, other: "Affine") -> "Affine":
        """The sum of two of the same lattice and channels."""
        terms = {key: dict(taps) for key, taps in self.terms.items()}
        for key, taps in other.terms.items():
            for where, matrix in taps.items():
                _add(terms.setdefault(key, {}), where, matrix)
        return replace(self, terms=terms)

    def convolved(
        self,
        kernel: Float[np.ndarray, "rows columns in_channels out_channels"],
        *,
        stride: Pair = (1, 1),
        dilation: Pair = (1, 1),
        before: Pair = (0, 0),
        count: Pair,
        border: Border = "zeros",
    ) -> "Affine":
        """A convolution of a pointwise map: point i reads stride·i + dilation·j - before."""
        assert self.lattice is not None
        assert self.is_pointwise
        terms: dict[tuple[Value, Border], dict[Where, np.ndarray]] = {}
        for (value, _), taps in self.terms.items():
            for tap in np.ndindex(kernel.shape[:2]):
                if kernel[tap].any():
                    row, column = (d * j - b for d, j, b in zip(dilation, tap, before, strict=True))
                    _add(
                        terms.setdefault((value, border), {}),
                        (row, column),
                        taps[CENTRE] @ kernel[tap],
                    )
        return Affine(self.lattice.strided(stride, count), kernel.shape[3], terms)

    def averaged(self) -> "Affine":
        """The mean of a pointwise map over all its points, as a vector."""
        assert self.is_pointwise
        terms: Terms = {key: {MEAN: taps[CENTRE]} for key, taps in self.terms.items()}
        return Affine(None, self.channels, terms)

    def at_point(self, point: Pair, matrix: Matrix) -> "Affine":
        """The channels of one point of a pointwise map, times a matrix, as a vector."""
        assert self.is_pointwise
        terms: Terms = {key: {point: taps[CENTRE] @ matrix} for key, taps in self.terms.items()}
        return Affine(None, matrix.shape[1], terms)


def _add(taps: dict[Where, np.ndarray], where: Where, matrix: np.ndarray) -> None:
    taps[where] = taps[where] + matrix if where in taps else matrix


def concatenated(parts: list[Affine]) -> Affine:
    """The channels of several beside each other."""
    width = sum(part.channels for part in parts)
    starts = np.cumsum([0, *(part.channels for part in parts)])
    placed = [
        part.mapped(np.eye(part.channels, width, k=int(start)))
        for part, start in zip(parts, starts, strict=False)
    ]
    total = placed[0]
    for part in placed[1:]:
        total = total.plus(part)
    return total
