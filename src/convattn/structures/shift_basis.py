"""The basis of grid convolutions: shift matrices that are never written down (A19, Definition 1).

A19's shift matrix has (A_d)_mn = [n - m = d]: output n reads input n - d. In this library's
convention δ = key - query = m - n, so that

    δ = -d,        (A_dᵀ x)_n = x_(n-d) = x_(n+δ),   zero where n + δ is not in the grid.

`ShiftBasis.shifts` are A19's d; `offsets` translates them, here and nowhere else. Applying A_dᵀ is
a slice of x with zeros laid around it.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from convattn.operators.integers import as_integer
from convattn.structures.sliced_basis import Indices, SlicedBasis

LOWEST_SHIFT = -(2**31)
"""Shifts may have any sign; nodes are numbered in 32 bits."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ShiftBasis(SlicedBasis):
    """Truncated shifts of a finite grid, M = N its number of nodes; `shift_basis` checks.

    Both fields are static: the basis has no leaves and is hashable.

    Attributes:
        grid: Nodes on each axis; nodes are numbered row-major.
        shifts: A19's d = query - key, one integer for each axis.

    Source: A19 Definition 1.

    >>> ShiftBasis((3,), ((1,),)).gather(jnp.array([[[5], [6], [7]]]))[0, 0, :, 0].tolist()
    [0, 5, 6]
    """

    grid: tuple[int, ...] = field(metadata={"static": True})
    shifts: tuple[tuple[int, ...], ...] = field(metadata={"static": True})

    @property
    def offsets(self) -> tuple[tuple[int, ...], ...]:
        """δ = key - query = -d of each matrix."""
        return tuple(tuple(-d for d in shift) for shift in self.shifts)

    @property
    def outputs(self) -> int:
        """N = M, the nodes of the grid."""
        return self.inputs

    @property
    def nonzeros(self) -> int:
        """Σ_k Π_i max(n_i - |d_ki|, 0): the queries whose key is in the grid."""
        return sum(
            math.prod(max(n - abs(d), 0) for n, d in zip(self.grid, shift, strict=True))
            for shift in self.shifts
        )

    def entries(self) -> tuple[Indices, Indices, Indices]:
        """The indices k, m and n of every one in the matrices, in this order."""
        nodes = np.arange(self.inputs).reshape(self.grid)
        found = []
        for index, offset in enumerate(self.offsets):
            here, there = _overlap(self.grid, offset)
            queries, keys = nodes[here].reshape(-1), nodes[there].reshape(-1)
            found.append(np.stack([np.full_like(keys, index), keys, queries]))
        bases, keys, queries = np.concatenate(found, axis=1)
        return bases, keys, queries

    def _read(self, cube: Array, shift: tuple[int, ...]) -> Array:
        """`cube[:, n - shift]` over the whole grid, zero outside."""
        offset = tuple(-d for d in shift)
        _, there = _overlap(self.grid, offset)
        widths = [
            (min(max(-δ, 0), n), min(max(δ, 0), n)) for n, δ in zip(self.grid, offset, strict=True)
        ]
        return jnp.pad(cube[(slice(None), *there)], [(0, 0), *widths, (0, 0)])


def _overlap(
    grid: tuple[int, ...], offset: tuple[int, ...]
) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """The box of the queries whose key is in the grid, and the box of those keys."""
    here = tuple(
        slice(min(max(-δ, 0), n), max(min(n - δ, n), 0)) for n, δ in zip(grid, offset, strict=True)
    )
    there = tuple(
        slice(min(max(δ, 0), n), max(min(n + δ, n), 0)) for n, δ in zip(grid, offset, strict=True)
    )
    return here, there


def shift_basis(
    grid: int | Sequence[int], shifts: Sequence[int] | Sequence[Sequence[int]]
) -> ShiftBasis:
    """A basis of shift matrices, checked.

    Args:
        grid: Nodes on each axis; an integer for one axis.
        shifts: A19's d = query - key, distinct; integers for one axis.

    Raises:
        ValueError: For what is no integer, an empty axis or no shifts, shifts with another number
            of axes than the grid, and a shift given twice (the two parameters would only ever be
            summed).

    Source: A19 Definition 1.

    >>> shift_basis(3, [-1, 0, 1]).offsets
    ((1,), (0,), (-1,))
    """
    sides = tuple(as_integer(side, "a side of the grid", 0) for side in _each(grid))
    rows = tuple(
        tuple(as_integer(d, "a shift", LOWEST_SHIFT) for d in _each(shift)) for shift in shifts
    )
    if not sides or min(sides) < 1:
        raise ValueError(f"grid={grid!r}, but should have at least one node on each axis")
    if not rows or any(len(row) != len(sides) for row in rows):
        raise ValueError(
            f"shifts={shifts!r}, but a grid of shape {sides} takes at least one shift, each of "
            f"{len(sides)} integers"
        )
    if len(set(rows)) != len(rows):
        twice = sorted({row for row in rows if rows.count(row) > 1})
        raise ValueError(f"shifts={shifts!r} holds {twice} more than once; add their parameters up")
    return ShiftBasis(sides, rows)


def _each(value: Any) -> tuple[Any, ...]:
    """One number for each axis; a single number is for one axis."""
    several = isinstance(value, Iterable) and getattr(value, "ndim", 1) > 0
    return tuple(value) if several else (value,)
