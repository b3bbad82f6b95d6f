"""Arrays of a traced function that depend on the images.

The function is traced on two images. An array is told by which number of which image stands where:
the channel of a point of an affine map, or a zero that was laid around. So whatever moves numbers
alone (reshapes, slices, transposes, pads, concatenations, repetitions) is that operation on
integers, and what reads neighbours finds rows, columns and channels again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from convattn.compile.affine import Affine, concatenated
from convattn.compile.lattice import Pair
from convattn.compile.scalar import IDENTITY, Scalar

IMAGES = 2
OUTSIDE = -1  # a zero
Index = Int[np.ndarray, "*shape"]


class Numbers(NamedTuple):
    """Of each entry of an array, which number it is; meaningless where it is not inside."""

    image: Index
    row: Index
    column: Index
    channel: Index
    inside: np.ndarray


class Axes(NamedTuple):
    """Along which axis the images, rows and columns lie; None where there is one alone.

    Attributes:
        image, row, column: The axis.
        loose: Axes along which zeros were laid beside one number.
    """

    image: int | None
    row: int | None
    column: int | None
    loose: tuple[int, ...]


class Map(NamedTuple):
    """An array whose axes are images, rows, columns, and channels.

    Attributes:
        rows, columns, channels: Which one stands where on each, or `OUTSIDE`.
    """

    rows: Index
    columns: Index
    channels: Index


@dataclass(frozen=True, eq=False)
class Symbol:
    """An array: function(affine), entry by entry, and zero where it is outside.

    Attributes:
        affine: Its numbers before `function`.
        index: (image · points + point) · channels + channel of each entry, or `OUTSIDE`.
        function: Of each number.
        line: Where in the source a function was last applied.
    """

    affine: Affine
    index: Index
    function: Scalar = IDENTITY
    line: str = ""

    @property
    def count(self) -> Pair:
        """Rows and columns of the affine map; a vector has one point."""
        return (1, 1) if self.affine.lattice is None else self.affine.lattice.count

    @property
    def base(self) -> Index:
        """image · points + point of each entry."""
        return self.index // self.affine.channels

    @property
    def has_outside(self) -> bool:
        """Whether zeros were laid around."""
        return bool((self.index < 0).any())

    def numbers(self) -> Numbers:
        """Which number each entry is."""
        rows, columns = self.count
        inside = self.index >= 0
        base, channel = np.divmod(np.where(inside, self.index, 0), self.affine.channels)
        image, point = np.divmod(base, rows * columns)
        return Numbers(image, *np.divmod(point, columns), channel, inside)

    def has_base_of(self, other: "Symbol") -> bool:
        """Whether both are functions of the same numbers at the same places."""
        return self.affine is other.affine and np.array_equal(self.index, other.index)

    def axes(self) -> Axes | None:
        """Where images, rows and columns lie; None if one axis holds several of them."""
        parts, axes, loose = self.numbers(), dict[str, int](), list[int]()
        for axis in range(self.index.ndim):
            first, second = (
                Numbers(*(np.delete(part, place, axis) for part in parts)) for place in (0, -1)
            )
            both = first.inside & second.inside
            changing = [
                name
                for name in ("image", "row", "column", "channel")
                if ((getattr(first, name) != getattr(second, name)) & both).any()
            ]
            if len(changing) > 1 or (changing and changing[0] in axes):
                return None
            if changing and changing[0] != "channel":
                axes[changing[0]] = axis
            if not changing and (first.inside != second.inside).any():
                loose.append(axis)
        return Axes(axes.get("image"), axes.get("row"), axes.get("column"), tuple(loose))

    def as_map(self, axes: tuple[int, int, int]) -> Map | None:
        """Rows, columns and channels, where these axes are images, rows and columns."""
        index = self.along(axes)
        parts = Symbol(self.affine, index).numbers()
        rows, columns, channels = (
            np.where(parts.inside, part, OUTSIDE).max(tuple({0, 1, 2, 3} - {axis}), initial=OUTSIDE)
            for axis, part in ((1, parts.row), (2, parts.column), (3, parts.channel))
        )
        expected = placed(self.count, self.affine.channels, Map(rows, columns, channels))
        if not np.array_equal(expected[: len(index)], index):
            return None
        return Map(rows, columns, channels)

    def along(self, axes: tuple[int, int, int]) -> Index:
        """The index as `[images, rows, columns, others]`."""
        rest = [axis for axis in range(self.index.ndim) if axis not in axes]
        moved = self.index.transpose(*axes, *rest)
        return moved.reshape(*moved.shape[:3], -1)

    def with_map(
        self, axes: tuple[int, int, int], affine: Affine, channels: Index | None = None
    ) -> "Symbol":
        """All points of another affine map, at the place of these axes.

        Args:
            axes: Images, rows and columns.
            affine: Its lattice has the points.
            channels: Of the other axes, in their order; None for one axis of all.
        """
        assert affine.lattice is not None
        rows, columns = affine.lattice.count
        rest = [axis for axis in range(self.index.ndim) if axis not in axes]
        sizes = [self.index.shape[axis] for axis in rest]
        if channels is None:
            channels, sizes = np.arange(affine.channels), [affine.channels]
        whole = Map(np.arange(rows), np.arange(columns), channels)
        index = placed(affine.lattice.count, affine.channels, whole)
        shape = (IMAGES, rows, columns, *sizes)
        back = np.argsort([*axes, *rest])
        return replace(
            self, affine=affine, index=index.reshape(shape).transpose(back), function=IDENTITY
        )


def renumbered(index: Index, channels: int, width: int, place: Index) -> Index:
    """The index where channel c of an affine map becomes channel `place[c]` of one of `width`.

    >>> renumbered(np.array([0, 3, OUTSIDE]), 2, 5, np.array([4, 1])).tolist()
    [4, 6, -1]
    """
    return np.where(index >= 0, index // channels * width + place[index % channels], OUTSIDE)


def side_by_side(parts: Sequence[tuple[Affine, Index]]) -> tuple[Affine, list[Index]]:
    """The channels of affine maps of the same points in one, and the indices in it."""
    width = sum(affine.channels for affine, _ in parts)
    starts = np.cumsum([0, *(affine.channels for affine, _ in parts)])
    indices = [
        renumbered(index, affine.channels, width, start + np.arange(affine.channels))
        for (affine, index), start in zip(parts, starts, strict=False)
    ]
    return concatenated([affine for affine, _ in parts]), indices


def placed(count: Pair, channels: int, of: Map) -> Index:
    """The index `[images, rows, columns, channels]` of a map of an affine map of this size."""
    rows, columns, own = of.rows[:, None, None], of.columns[:, None], of.channels
    images = np.arange(IMAGES)[:, None, None, None]
    index = ((images * count[0] + rows) * count[1] + columns) * channels + own
    return np.where((rows < 0) | (columns < 0) | (own < 0), OUTSIDE, index)


@dataclass(frozen=True, eq=False)
class Sign:
    """Where an array is positive, or where it is not.

    Attributes:
        of: The array.
        negated: Whether it is where the array is not.
    """

    of: Symbol
    negated: bool = False
