"""Bases of zeros and ones that are applied by slicing, and written down only where they must be."""

import math

import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Int

from convattn.operators.arrays import accumulation_dtype
from convattn.structures.basis import (
    HIGHEST,
    Basis,
    Family,
    Gathered,
    Inputs,
    Matrices,
    Operator,
    Outputs,
    Theta,
)

Indices = Int[np.ndarray, "nonzeros"]


class SlicedBasis(Basis):
    """A basis of zeros and ones without leaves, all of whose fields are static.

    `grid` and `output_grid` are the nodes of inputs and outputs on each axis, row-major; `shifts`
    A19's d of each matrix; output n stands at `start + stride·n`.
    """

    grid: tuple[int, ...]
    output_grid: tuple[int, ...]
    shifts: tuple[tuple[int, ...], ...]
    stride: tuple[int, ...]
    start: tuple[int, ...]

    @property
    def size(self) -> int:
        """K, the number of shifts."""
        return len(self.shifts)

    @property
    def inputs(self) -> int:
        """M, the nodes of the grid of the inputs."""
        return math.prod(self.grid)

    @property
    def outputs(self) -> int:
        """N, the nodes of the grid of the outputs."""
        return math.prod(self.output_grid)

    @property
    def nonzeros(self) -> int:
        """How many pairs of an output and a shift have their key in the grid."""
        return sum(
            math.prod(self._within(axis, shift)[1] for axis in range(len(self.grid)))
            for shift in self.shifts
        )

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

    def _within(self, axis: int, shift: tuple[int, ...]) -> tuple[int, int, int]:
        """On one axis: the first output whose key lies in the grid, how many do, the first key."""
        step, count = self.stride[axis], self.output_grid[axis]
        key = self.start[axis] - shift[axis]  # that of output 0
        before = min(count, max(0, -(key // step)))
        first = key + before * step
        return before, len(range(first, self.grid[axis], step)[: count - before]), first

    def _read(self, cube: Array, shift: tuple[int, ...]) -> Array:
        """`cube[:, start + stride·n - shift]` for every output n, zero outside the grid."""
        slices, widths = [slice(None)], [(0, 0)]
        for axis, (step, count) in enumerate(zip(self.stride, self.output_grid, strict=True)):
            before, within, first = self._within(axis, shift)
            last = first + (within - 1) * step
            slices.append(slice(first, last + 1, step) if within else slice(0, 0))
            widths.append((before, count - before - within))
        return jnp.pad(cube[tuple(slices)], [*widths, (0, 0)])

    def gather(self, x: Inputs, *, precision: lax.Precision = HIGHEST) -> Gathered:
        """What each output reads under every shift: slices of x, exact in any precision."""
        cube = x.astype(accumulation_dtype(x)).reshape(x.shape[0], *self.grid, x.shape[-1])
        read = jnp.stack([self._read(cube, shift) for shift in self.shifts], axis=1)
        return read.reshape(x.shape[0], self.size, self.outputs, x.shape[-1])

    def scatter_sum(self, z: Family, *, precision: lax.Precision = HIGHEST) -> Outputs:
        """Σ_k z_k where each output reads it: slices and sums, no product."""
        cube = z.astype(accumulation_dtype(z)).reshape(*z.shape[:2], *self.grid, z.shape[-1])
        total = sum(self._read(cube[:, k], shift) for k, shift in enumerate(self.shifts))
        return jnp.asarray(total).reshape(z.shape[0], self.outputs, z.shape[-1])

    @property
    def dtype(self) -> np.dtype:
        """Bool: zeros and ones leave the dtype of what they multiply."""
        return np.dtype(bool)

    def matrices(self) -> Matrices:
        """A as zeros and ones of int32; for looking at, nothing here uses it."""
        dense = np.zeros((self.size, self.inputs, self.outputs), np.int32)
        dense[self.entries()] = 1
        return jnp.asarray(dense)

    def operator(self, theta: Theta, *, precision: lax.Precision = HIGHEST) -> Operator:
        """Θ_k at every (m, n) that matrix k joins; what stands at one place adds up."""
        bases, keys, queries = self.entries()
        wide = theta.astype(accumulation_dtype(theta))
        empty = jnp.zeros((self.inputs, self.outputs, *theta.shape[1:]), wide.dtype)
        return empty.at[keys, queries].add(wide[bases])
