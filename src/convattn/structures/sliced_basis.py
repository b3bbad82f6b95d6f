"""Bases of zeros and ones that are applied by slicing, and written down only where they must be."""

import math
from abc import abstractmethod

import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Int, Num

from convattn.operators.arrays import accumulation_dtype
from convattn.structures.basis import Basis

Indices = Int[np.ndarray, "nonzeros"]


class SlicedBasis(Basis):
    """A basis without leaves: its ones follow from static fields, by `entries`.

    A subclass has the fields `grid`, the nodes of the inputs on each axis, and `shifts`, A19's d of
    each matrix, and says by `_read` what its outputs read under one of them.
    """

    grid: tuple[int, ...]
    shifts: tuple[tuple[int, ...], ...]

    @property
    def size(self) -> int:
        """K, the number of shifts."""
        return len(self.shifts)

    @property
    def inputs(self) -> int:
        """M, the nodes of the grid of the inputs."""
        return math.prod(self.grid)

    @abstractmethod
    def entries(self) -> tuple[Indices, Indices, Indices]:
        """The indices k, m and n of every one in the matrices, in this order."""

    @abstractmethod
    def _read(self, cube: Array, shift: tuple[int, ...]) -> Array:
        """What each output reads, `[batch, *output grid, channels]`, zero outside the grid.

        `cube` is `[batch, *grid, channels]`.
        """

    def gather(
        self,
        x: Num[Array, "batch inputs channels"],
        *,
        precision: lax.Precision = lax.Precision.HIGHEST,
    ) -> Num[Array, "batch size outputs channels"]:
        """What each output reads under every shift: slices of x, exact in any precision."""
        cube = x.astype(accumulation_dtype(x)).reshape(x.shape[0], *self.grid, x.shape[-1])
        read = jnp.stack([self._read(cube, shift) for shift in self.shifts], axis=1)
        return read.reshape(x.shape[0], self.size, self.outputs, x.shape[-1])

    def scatter_sum(
        self,
        z: Num[Array, "batch size inputs channels"],
        *,
        precision: lax.Precision = lax.Precision.HIGHEST,
    ) -> Num[Array, "batch outputs channels"]:
        """Σ_k z_k where each output reads it: slices and sums, no product."""
        cube = z.astype(accumulation_dtype(z)).reshape(*z.shape[:2], *self.grid, z.shape[-1])
        total = sum(self._read(cube[:, k], shift) for k, shift in enumerate(self.shifts))
        return jnp.asarray(total).reshape(z.shape[0], self.outputs, z.shape[-1])

    @property
    def dtype(self) -> np.dtype:
        """Bool: zeros and ones leave the dtype of what they multiply."""
        return np.dtype(bool)

    def matrices(self) -> Num[Array, "size inputs outputs"]:
        """A as zeros and ones of int32; for looking at, nothing here uses it."""
        dense = np.zeros((self.size, self.inputs, self.outputs), np.int32)
        dense[self.entries()] = 1
        return jnp.asarray(dense)

    def operator(
        self,
        theta: Num[Array, "size in_channels out_channels"],
        *,
        precision: lax.Precision = lax.Precision.HIGHEST,
    ) -> Num[Array, "inputs outputs in_channels out_channels"]:
        """Θ_k at every (m, n) that matrix k joins; what stands at one place adds up."""
        bases, keys, queries = self.entries()
        wide = theta.astype(accumulation_dtype(theta))
        empty = jnp.zeros((self.inputs, self.outputs, *theta.shape[1:]), wide.dtype)
        return empty.at[keys, queries].add(wide[bases])
