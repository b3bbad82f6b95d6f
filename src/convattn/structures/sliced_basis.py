"""Bases of zeros and ones that are applied by slicing, and written down only where they must be."""

from abc import abstractmethod

import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Int, Num

from convattn.arrays import accumulation_dtype
from convattn.structures.basis import Basis

Indices = Int[np.ndarray, "nonzeros"]


class SlicedBasis(Basis):
    """A basis without leaves: its ones follow from static fields, by `entries`."""

    @abstractmethod
    def entries(self) -> tuple[Indices, Indices, Indices]:
        """The indices k, m and n of every one in the matrices, in this order."""

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
