"""Grid convolutions: bases of shifts, applied by slicing (A19, Definition 1 and Section 2.1).

A19's shift matrix has (A_d)_mn = [n - m = d]: output n reads input n - d. In this library's
convention δ = key - query = m - n, so that

    δ = -d,        (A_dᵀ x)_n = x_(n-d) = x_(n+δ),   zero where n + δ is not in the grid.

`shifts` are A19's d; `ShiftBasis.offsets` translates them. Applying A_dᵀ is a slice of x with zeros
laid around it; the matrices are written down only where they must be.

A19's Section 2.1 mentions grid convolutions that do not preserve the grid. Output n (a node of a
smaller grid) stands at the node `start + stride·n` of the input grid and reads
`start + stride·n - d_k`:

    (A_k)_mn = [start + stride·n - m = d_k],      M ≠ N.

With stride 1 and start 0 these are the shift matrices.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax

from convattn.operators.integers import as_integer
from convattn.operators.shifts import per_axis
from convattn.structures.sliced_basis import SlicedBasis

PADDINGS = ("SAME", "VALID")
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

    >>> import jax.numpy as jnp
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
    def output_grid(self) -> tuple[int, ...]:  # type: ignore[override]
        """The grid itself."""
        return self.grid

    @property
    def stride(self) -> tuple[int, ...]:  # type: ignore[override]
        """1 on each axis."""
        return (1,) * len(self.grid)

    @property
    def start(self) -> tuple[int, ...]:  # type: ignore[override]
        """0 on each axis."""
        return (0,) * len(self.grid)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class StridedBasis(SlicedBasis):
    """Truncated shifts from a grid to every stride-th of its nodes; `strided_basis` checks.

    All fields are static, one entry for each axis: the basis has no leaves and is hashable.

    Attributes:
        grid: Nodes of the inputs.
        output_grid: Of the outputs; both numbered row-major.
        shifts: A19's d = query - key, distinct.
        stride, start: Output n stands at start + stride·n.

    >>> import jax.numpy as jnp
    >>> basis = StridedBasis((5,), (2,), ((0,), (-1,)), (2,), (1,))  # outputs 1, 3 and their right
    >>> basis.gather(jnp.array([[[1], [2], [4], [8], [16]]]))[0, :, :, 0].tolist()
    [[2, 8], [4, 16]]
    """

    grid: tuple[int, ...] = field(metadata={"static": True})
    output_grid: tuple[int, ...] = field(metadata={"static": True})
    shifts: tuple[tuple[int, ...], ...] = field(metadata={"static": True})
    stride: tuple[int, ...] = field(metadata={"static": True})
    start: tuple[int, ...] = field(metadata={"static": True})


def shift_basis(
    grid: int | Sequence[int], shifts: Sequence[int] | Sequence[Sequence[int]]
) -> ShiftBasis:
    """A basis of shift matrices, checked.

    Args:
        grid: Nodes on each axis; an integer for one axis.
        shifts: A19's d = query - key, distinct; integers for one axis.

    Raises:
        ValueError: For sizes and shifts that are not integers, an empty axis or no shifts, shifts
            with another number of axes than the grid, and a shift given twice (the two parameters
            would only ever be summed).

    Source: A19 Definition 1.

    >>> shift_basis(3, [-1, 0, 1]).offsets
    ((1,), (0,), (-1,))
    """
    sides = tuple(as_integer(side, "a side of the grid", 0) for side in _each(grid))
    rows = tuple(
        tuple(as_integer(d, "a shift", LOWEST_SHIFT) for d in _each(shift)) for shift in shifts
    )
    if not sides or min(sides) < 1:
        raise ValueError(f"grid={grid!r}, but expected at least one node on each axis")
    if not rows or any(len(row) != len(sides) for row in rows):
        raise ValueError(
            f"shifts={shifts!r}, but a grid of shape {sides} takes at least one shift, each of "
            f"{len(sides)} integers"
        )
    if len(set(rows)) != len(rows):
        twice = sorted({row for row in rows if rows.count(row) > 1})
        raise ValueError(f"shifts={shifts!r} holds {twice} more than once; add their parameters up")
    return ShiftBasis(sides, rows)


def strided_basis(
    grid: int | Sequence[int],
    shifts: Sequence[int] | Sequence[Sequence[int]],
    stride: int | Sequence[int] = 1,
    *,
    padding: str = "SAME",
) -> StridedBasis:
    """The shifts of a grid, kept at every stride-th node only.

    Args:
        grid, shifts: As for `shift_basis`; d = query - key.
        stride: s ≥ 1, one for all axes or one for each. It need not divide the grid.
        padding: `"SAME"`: the outputs are the nodes 0, s, 2s, … of the grid, ⌈n/s⌉ on an axis, and
            what lies outside the grid counts as zero. `"VALID"`: the outputs start where every
            shift stays in the grid, at max d, and end where one would leave it.

    Raises:
        ValueError: For what `shift_basis` refuses, a stride below 1, an unknown padding, and with
            `"VALID"` shifts that are wider apart than the grid.

    Source: A19 Section 2.1 ("variants of grid convolutions which do not necessarily preserve the
        grid").

    >>> strided_basis(7, [-1, 0, 1], 2, padding="VALID").output_grid
    (3,)
    """
    checked = shift_basis(grid, shifts)
    steps = per_axis(stride, len(checked.grid), "stride")
    if padding not in PADDINGS:
        raise ValueError(f"padding={padding!r}, but expected one of {', '.join(PADDINGS)}")
    if padding == "SAME":
        start = (0,) * len(checked.grid)
        counts = checked.grid
    else:
        start = tuple(max(d) for d in zip(*checked.shifts, strict=True))
        lowest = tuple(min(d) for d in zip(*checked.shifts, strict=True))
        counts = tuple(
            n + low - high for n, low, high in zip(checked.grid, lowest, start, strict=True)
        )
        if min(counts) < 1:
            window = tuple(high - low + 1 for low, high in zip(lowest, start, strict=True))
            raise ValueError(
                f"the shifts span a window of {window} nodes, which does not fit into the grid "
                f"{checked.grid}; take a smaller window or dilation, or padding='SAME'"
            )
    output_grid = tuple(-(-count // step) for count, step in zip(counts, steps, strict=True))
    return StridedBasis(checked.grid, output_grid, checked.shifts, steps, start)


def _each(value: Any) -> tuple[Any, ...]:
    """One number for each axis; a single number is for one axis."""
    several = isinstance(value, Iterable) and getattr(value, "ndim", 1) > 0
    return tuple(value) if several else (value,)
