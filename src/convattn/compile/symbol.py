"""Arrays of a traced function that depend on the images."""

from dataclasses import dataclass, replace
from itertools import groupby
from math import prod

import numpy as np
from jaxtyping import Int

from convattn.compile.affine import Affine
from convattn.compile.scalar import IDENTITY, Scalar

BATCH, ROW, COLUMN, FEATURE = "batch", "row", "column", "feature"
OUTSIDE = -1  # the place of a zero that was laid around a map
Places = tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True, eq=False)
class Symbol:
    """An array: function(affine), with its axes in some order.

    Attributes:
        affine: Its numbers before `function`.
        roles: What each axis is.
        index: Which channel of `affine` stands where, by the feature axes in their order.
        places: Which row, and which column, of the lattice stands where, or `OUTSIDE`.
        function: Of each number.
    """

    affine: Affine
    roles: tuple[str, ...]
    index: Int[np.ndarray, "*features"]
    places: Places = ((), ())
    function: Scalar = IDENTITY

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the array, for a batch of one."""
        features = iter(self.index.shape)
        sizes = {BATCH: 1, ROW: len(self.places[0]), COLUMN: len(self.places[1])}
        return tuple(next(features) if role == FEATURE else sizes[role] for role in self.roles)

    @property
    def feature_axes(self) -> list[int]:
        """The axes that are features."""
        return [axis for axis, role in enumerate(self.roles) if role == FEATURE]

    @property
    def is_whole(self) -> bool:
        """Whether every point of the lattice stands at its place."""
        lattice = self.affine.lattice
        return lattice is None or self.places == whole_places(lattice.count)

    def ordered(self) -> "Symbol":
        """With the channels of `affine` in the order of the array."""
        count = np.arange(self.index.size)
        if np.array_equal(self.index.ravel(), np.arange(self.affine.channels)):
            return self
        taken = self.affine.taken(self.index.ravel())
        return replace(self, affine=taken, index=count.reshape(self.index.shape))

    def has_base_of(self, other: "Symbol") -> bool:
        """Whether both are functions of the same numbers at the same places."""
        return (
            self.affine is other.affine
            and self.roles == other.roles
            and self.places == other.places
            and np.array_equal(self.index, other.index)
        )

    def reshaped(self, shape: tuple[int, ...]) -> "Symbol | None":
        """In another shape that joins or parts feature axes alone; None if it is another."""
        roles: list[str] = []
        left = list(shape)
        axes = [(role, size) for role, size in zip(self.roles, self.shape, strict=True)]
        for role, axes_of_role in groupby(
            (axis for axis in axes if axis[0] != FEATURE or axis[1] > 1), key=lambda axis: axis[0]
        ):
            size, taken = prod(size for _, size in axes_of_role), 1
            while left and role != BATCH and left[0] == 1 != size:
                left.pop(0)
                roles.append(FEATURE)
            while left and (taken < size or (role != FEATURE and role not in roles)):
                taken *= left.pop(0)
                roles.append(role)
                if role != FEATURE:
                    break
            if taken != size:
                return None
        if any(size != 1 for size in left):
            return None
        roles += [FEATURE] * len(left)
        features = [size for size, role in zip(shape, roles, strict=True) if role == FEATURE]
        return replace(self, roles=tuple(roles), index=self.index.reshape(features))

    def transposed(self, order: tuple[int, ...]) -> "Symbol":
        """With its axes in another order."""
        own = self.feature_axes
        features = [own.index(axis) for axis in order if axis in own]
        roles = tuple(self.roles[axis] for axis in order)
        return replace(self, roles=roles, index=self.index.transpose(features))


@dataclass(frozen=True, eq=False)
class Sign:
    """Where an array is positive."""

    of: Symbol


@dataclass(frozen=True, eq=False)
class Flat:
    """A map of which all points and channels are one axis, `[batch, numbers]`.

    Attributes:
        of: The map; its axes but the first, in their order, are the numbers.
    """

    of: Symbol


def whole_places(count: tuple[int, int]) -> Places:
    """Every row and column at its place."""
    return tuple(range(count[0])), tuple(range(count[1]))
