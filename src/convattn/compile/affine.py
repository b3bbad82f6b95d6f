"""Affine maps of stored values: the linear half of a convolutional network.

A value is what tokens store: a feature map on a lattice, or a vector of the class token. What
convolutions, sums, scales, biases and linear maps make of values is

    A[i] = Σ_v Σ_o v[stride·i + o] M_vo,

a sum over values v and offsets o. A bias is such a term of a value that is 1 at every point and, as
every value, 0 outside the image, so that zero padding needs no case of its own: biases before it
and after it differ by themselves. Other borders read the nearest point (edge), or go around
(circular). A vector reads maps at single points or their mean over all points.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
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

    @property
    def products(self) -> int:
        """How many an entry sums; a mean counts its points."""
        count = 0
        for (value, _), taps in self.terms.items():
            for where, matrix in taps.items():
                points = prod(value.lattice.count) if value.lattice and where == MEAN else 0
                count += len(matrix) + points
        return count

    @property
    def tap_sums(self) -> np.ndarray:
        """Σ|M| of each channel, over all that is read."""
        taps = [matrix for own in self.terms.values() for matrix in own.values()]
        return sum((np.abs(matrix).sum(0) for matrix in taps), np.zeros(self.channels))

    def of_matrices(self, change: Callable[[np.ndarray], np.ndarray]) -> "Affine":
        """With each matrix changed, such as to its absolute values."""
        return self._each(self.channels, change)

    def _each(self, channels: int, change: Callable[[np.ndarray], np.ndarray]) -> "Affine":
        terms = {
            key: {where: change(matrix) for where, matrix in taps.items()}
            for key, taps in self.terms.items()
        }
        return replace(self, channels=channels, terms=terms)

    def mapped(self, matrix: Matrix) -> "Affine":
        """Each point's channels times a matrix from the right."""
        return self._each(matrix.shape[1], lambda held: held @ matrix)

    def scaled(self, factors: float | Float[np.ndarray, " channels"]) -> "Affine":
        """Each channel times its factor, or all times one."""
        return self._each(self.channels, lambda held: held * factors)

    def taken(self, index: Int[np.ndarray, " channels"]) -> "Affine":
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
        rows: Sequence[int | None],
        columns: Sequence[int | None],
        *,
        stride: Pair = (1, 1),
        count: Pair,
        border: Border = "zeros",
    ) -> "Affine":
        """A convolution of a pointwise map: of point i, tap (j, k) reads stride·i + (row_j, col_k).

        Args:
            kernel: Of the channels of this map.
            rows, columns: The offset of each tap, or None where it reads zeros alone.
            stride: Points of this map from one of the result to the next.
            count: Points of the result.
            border: What is read beyond this map.
        """
        assert self.lattice is not None
        assert self.is_pointwise
        terms: dict[tuple[Value, Border], dict[Where, np.ndarray]] = {}
        for (value, _), taps in self.terms.items():
            for (j, row), (k, column) in product(enumerate(rows), enumerate(columns)):
                if row is not None and column is not None and kernel[j, k].any():
                    own = terms.setdefault((value, border), {})
                    _add(own, (row, column), taps[CENTRE] @ kernel[j, k])
        return Affine(self.lattice.strided(stride, count), kernel.shape[3], terms)

    def of_points(self, held: Float[np.ndarray, "rows columns channels outputs"]) -> "Affine":
        """A linear map of all points and channels of a pointwise map, as a vector."""
        assert self.is_pointwise
        terms: Terms = {
            key: {
                (where[0], where[1]): taps[CENTRE] @ held[where]
                for where in np.ndindex(held.shape[:2])
                if held[where].any()
            }
            for key, taps in self.terms.items()
        }
        return Affine(None, held.shape[3], terms)

    def simplified(self) -> "Affine":
        """With one mean where a vector reads all points of a map by the same matrix."""
        terms = dict(self.terms)
        for (value, border), taps in self.terms.items():
            if self.lattice is None and value.lattice is not None and MEAN not in taps:
                matrices = list(taps.values())
                points = value.lattice.count[0] * value.lattice.count[1]
                if len(taps) == points and all(np.array_equal(matrices[0], m) for m in matrices):
                    terms[value, border] = {MEAN: points * matrices[0]}
        return replace(self, terms=terms)


def _add(taps: dict[Where, np.ndarray], where: Where, matrix: np.ndarray) -> None:
    taps[where] = taps[where] + matrix if where in taps else matrix


def concatenated(parts: Sequence[Affine]) -> Affine:
    """The channels of several beside each other."""
    width, start = sum(part.channels for part in parts), 0
    terms: dict[tuple[Value, Border], dict[Where, np.ndarray]] = {}
    for part in parts:
        for key, taps in part.terms.items():
            for where, matrix in taps.items():
                own = terms.setdefault(key, {})
                held = own.setdefault(where, np.zeros((len(matrix), width)))
                held[:, start : start + part.channels] = matrix
        start += part.channels
    return Affine(parts[0].lattice, width, terms)
