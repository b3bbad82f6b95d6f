"""Grid convolutions: bases of shifts, applied by slicing (A19, Definition 1 and Section 2.1).

A19's shift matrix has (A_d)_mn = [n - m = d]: output n reads input n - d. In this library's
convention δ = key - query = m - n, so that

    δ = -d,        (A_dᵀ x)_n = x_(n-d) = x_(n+δ),   zero where n + δ is not in the grid.

`shifts` are A19's d; `ShiftBasis.offsets` translates them. Applying A_dᵀ is a slice of x with zeros
laid around it; the matrices are written down only where they must be.

A19's Section 2.1 mentions grid convolutions that do not preserve the grid: the outputs stand at
other places than the inputs, and M ≠ N (`strided_basis`).
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Int

from convattn.operators.arrays import accumulation_dtype
from convattn.operators.integers import as_integer, per_axis
from convattn.operators.shifts import Shift
from convattn_ledger.structures.basis import (
    Basis,
    Family,
    Gathered,
    Inputs,
    Matrices,
    Operator,
    Outputs,
    Theta,
)
from convattn_ledger.structures.sparse_basis import SparseBasis, basis_from_entries

LOWEST_SHIFT = -(2**31)
"""Shifts may have any sign; nodes are numbered in 32 bits."""

Indices = Int[np.ndarray, "nonzeros"]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ShiftBasis(Basis):
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
    shifts: tuple[Shift, ...] = field(metadata={"static": True})

    @property
    def offsets(self) -> tuple[Shift, ...]:
        """δ = key - query = -d of each matrix."""
        return tuple(tuple(-d for d in shift) for shift in self.shifts)

    @property
    def shape(self) -> tuple[int, int, int]:  # type: ignore[override]
        """(K, M, N): the number of shifts, and twice that of nodes."""
        nodes = math.prod(self.grid)
        return len(self.shifts), nodes, nodes

    @property
    def nonzeros(self) -> int:
        """How many pairs of an output and a shift have their key in the grid."""
        return sum(
            math.prod(max(0, n - abs(d)) for n, d in zip(self.grid, shift, strict=True))
            for shift in self.shifts
        )

    @property
    def dtype(self) -> np.dtype:
        """Bool: zeros and ones leave the dtype of what they multiply."""
        return np.dtype(bool)

    def entries(self) -> tuple[Indices, Indices, Indices]:
        """The indices k, m and n of every one in the matrices."""
        return _entries(self.grid, self.shifts, product(*map(range, self.grid)))

    def sparse(self) -> SparseBasis:
        """The same matrices as a `SparseBasis` of ones in int8, which widens no other dtype."""
        ones = jnp.ones(self.nonzeros, jnp.int8)
        return basis_from_entries(ones, *self.entries(), self.shape)

    def matrices(self) -> Matrices:
        """A as zeros and ones."""
        return self.sparse().matrices()

    def gather(self, x: Inputs) -> Gathered:
        """What each output reads under every shift: slices of x, exact in any precision."""
        cube = x.astype(accumulation_dtype(x)).reshape(x.shape[0], *self.grid, x.shape[-1])
        read = jnp.stack([self._read(cube, shift) for shift in self.shifts], axis=1)
        return read.reshape(x.shape[0], self.size, self.outputs, x.shape[-1])

    def scatter_sum(self, z: Family) -> Outputs:
        """Σ_k z_k where each output reads it: slices and sums, no product."""
        cube = z.astype(accumulation_dtype(z)).reshape(*z.shape[:2], *self.grid, z.shape[-1])
        total = sum(self._read(cube[:, k], shift) for k, shift in enumerate(self.shifts))
        return jnp.asarray(total).reshape(z.shape[0], self.outputs, z.shape[-1])

    def operator(self, theta: Theta) -> Operator:
        """Θ_k at every (m, n) that matrix k joins; what stands at one place adds up."""
        return self.sparse().operator(theta)

    def _read(self, cube: Array, shift: Shift) -> Array:
        """`cube[:, n - shift]` for every node n, zero outside the grid."""
        slices, widths = [slice(None)], [(0, 0)]
        for side, d in zip(self.grid, shift, strict=True):
            length, first = max(0, side - abs(d)), max(0, -d)
            slices.append(slice(first, first + length))
            before = min(side, max(0, d))
            widths.append((before, side - before - length))
        return jnp.pad(cube[tuple(slices)], [*widths, (0, 0)])


def shift_basis(
    grid: int | Sequence[int], shifts: Sequence[int] | Sequence[Sequence[int]]
) -> ShiftBasis:
    """A basis of shift matrices, checked.

    Args:
        grid: Nodes on each axis; an integer for one axis.
        shifts: A19's d = query - key, distinct; integers for one axis.

    Source: A19 Definition 1.

    >>> shift_basis(3, [-1, 0, 1]).offsets
    ((1,), (0,), (-1,))
    """
    sides = tuple(as_integer(side, "a side of the grid", 1) for side in each_axis(grid))
    rows = tuple(
        tuple(as_integer(d, "a shift", LOWEST_SHIFT) for d in each_axis(shift)) for shift in shifts
    )
    if not sides or not rows or any(len(row) != len(sides) for row in rows):
        raise ValueError(
            f"grid={grid!r} and shifts={shifts!r}, but expected at least one axis and one shift, "
            "and as many integers in each shift as the grid has axes"
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
) -> SparseBasis:
    """The shifts of a grid, with outputs at every stride-th node only.

    Args:
        grid, shifts: As for `shift_basis`; d = query - key.
        stride: s ≥ 1, one for all axes or one for each. It need not divide the grid.
        padding: `"SAME"`: the outputs are the nodes 0, s, 2s, … of the grid, ⌈n/s⌉ on an axis, and
            what lies outside the grid counts as zero. `"VALID"`: the outputs start where every
            shift stays in the grid, at max d, and end where one would leave it.

    Source: A19 Section 2.1 ("variants of grid convolutions which do not necessarily preserve the
        grid").

    >>> basis = strided_basis(5, [0, -1], 2, padding="VALID")  # outputs 0 and 2 and their right
    >>> basis.gather(jnp.array([[[1], [2], [4], [8], [16]]]))[0, :, :, 0].tolist()
    [[1, 4], [2, 8]]
    """
    whole = shift_basis(grid, shifts)
    steps = per_axis(stride, len(whole.grid), "stride")
    if padding not in ("SAME", "VALID"):
        raise ValueError(f"padding={padding!r}, but expected 'SAME' or 'VALID'")
    ends = [(min(axis), max(axis)) for axis in zip(*whole.shifts, strict=True)]
    indices = [
        range(0, n, step) if padding == "SAME" else range(high, n + low, step)
        for n, step, (low, high) in zip(whole.grid, steps, ends, strict=True)
    ]
    if not all(indices):
        raise ValueError(
            f"the shifts span a window of {tuple(high - low + 1 for low, high in ends)} nodes, "
            f"which does not fit into the grid {whole.grid}; take a smaller window or dilation, or "
            "padding='SAME_TORCH'"
        )
    bases, keys, queries = _entries(whole.grid, whole.shifts, product(*indices))
    shape = (whole.size, whole.inputs, math.prod(map(len, indices)))
    return basis_from_entries(jnp.ones(len(keys), jnp.int8), bases, keys, queries, shape)


def _entries(
    grid: tuple[int, ...], shifts: tuple[Shift, ...], outputs: Iterable[Shift]
) -> tuple[Indices, Indices, Indices]:
    """The indices k, m and n at which output n, which stands at a place, reads place - d_k."""
    keys = np.array(list(outputs)) - np.array(shifts)[:, None]
    bases, queries = np.nonzero(((keys >= 0) & (keys < grid)).all(-1))
    return bases, np.ravel_multi_index(tuple(keys[bases, queries].T), grid), queries


def each_axis(value: Any) -> tuple[Any, ...]:
    """One entry for each axis; a single number is for one axis.

    >>> each_axis(3), each_axis([3, 4])
    ((3,), (3, 4))
    """
    several = isinstance(value, Iterable) and getattr(value, "ndim", 1) > 0
    return tuple(value) if several else (value,)
