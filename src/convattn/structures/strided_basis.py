"""Grid convolutions that do not preserve the grid: outputs on a sub-sample of the inputs' grid.

A19's Section 2.1 mentions them in a sentence. Output n (a node of a smaller grid) stands at the
node `start + stride·n` of the input grid and reads `start + stride·n - d_k`:

    (A_k)_mn = [start + stride·n - m = d_k],      M ≠ N.

With stride 1 and start 0 these are the shift matrices of A19's Definition 1.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from convattn.operators.shifts import per_axis
from convattn.structures.shift_basis import shift_basis
from convattn.structures.sliced_basis import Indices, SlicedBasis

PADDINGS = ("SAME", "VALID")


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

    >>> basis = StridedBasis((5,), (2,), ((0,), (-1,)), (2,), (1,))  # outputs 1, 3 and their right
    >>> basis.gather(jnp.array([[[1], [2], [4], [8], [16]]]))[0, :, :, 0].tolist()
    [[2, 8], [4, 16]]
    """

    grid: tuple[int, ...] = field(metadata={"static": True})
    output_grid: tuple[int, ...] = field(metadata={"static": True})
    shifts: tuple[tuple[int, ...], ...] = field(metadata={"static": True})
    stride: tuple[int, ...] = field(metadata={"static": True})
    start: tuple[int, ...] = field(metadata={"static": True})

    @property
    def outputs(self) -> int:
        """N, the nodes of the output grid."""
        return math.prod(self.output_grid)

    @property
    def nonzeros(self) -> int:
        """How many pairs of an output and a shift have their key in the grid."""
        return len(self.entries()[0])

    def entries(self) -> tuple[Indices, Indices, Indices]:
        """The indices k, m and n of every one in the matrices, in this order."""
        outputs = np.stack([axis.reshape(-1) for axis in np.indices(self.output_grid)])
        first, stride, sides = (
            np.array(part)[:, None] for part in (self.start, self.stride, self.grid)
        )
        found = []
        for index, shift in enumerate(self.shifts):
            keys = first + stride * outputs - np.array(shift)[:, None]
            inside = ((keys >= 0) & (keys < sides)).all(axis=0)
            queries = np.flatnonzero(inside)
            read = np.ravel_multi_index(tuple(keys[:, inside]), self.grid)
            found.append(np.stack([np.full_like(queries, index), read, queries]))
        bases, inputs, queries = np.concatenate(found, axis=1)
        return bases, inputs, queries

    def _read(self, cube: Array, shift: tuple[int, ...]) -> Array:
        """`cube[:, start + stride·n - shift]` for every output n, zero outside the grid."""
        for axis, step in enumerate(self.stride, start=1):
            count, side = self.output_grid[axis - 1], cube.shape[axis]
            key = self.start[axis - 1] - shift[axis - 1]  # that of output 0
            before = min(count, max(0, -(key // step)))  # outputs whose key lies below the grid
            first = key + before * step
            within = len(range(first, side, step)[: count - before])
            last = first + (within - 1) * step
            inside = (
                lax.slice_in_dim(cube, first, last + 1, step, axis)
                if within
                else lax.slice_in_dim(cube, 0, 0, 1, axis)
            )
            widths = [(0, 0)] * cube.ndim
            widths[axis] = (before, count - before - within)
            cube = jnp.pad(inside, widths)
        return cube


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
        raise ValueError(f"padding={padding!r}, but should be one of {', '.join(PADDINGS)}")
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
