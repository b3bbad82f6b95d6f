"""What a convolution's basis is: K matrices A_k between M inputs and N outputs (A19, Section 1.2).

A_k is `[M, N]`: entry (m, n) says how strongly input (key) m acts on output (query) n, so that a
convolution is y = Σ_k A_kᵀ x Θ_k (A19 eq. 4). A basis is known by what it does to the entries:

- `gather`, x ↦ (A_kᵀ x)_k, one bundle in, K bundles out;
- `scatter_sum`, (z_k)_k ↦ Σ_k A_kᵀ z_k, K bundles in, one out;
- `operator`, Θ ↦ A∘Θ = Σ_k A_k ⊗ Θ_k, the whole linear map (A19 eq. 3).

These are the three places where A enters Figure 1. `DenseBasis` stores the matrices, `SparseBasis`
their nonzero entries, `ShiftBasis` nothing but the shifts.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Num

from convattn.operators.arrays import accumulation_dtype, as_array
from convattn.operators.attention import HIGHEST

Matrices = Num[Array, "size inputs outputs"]
Inputs = Num[Array, "batch inputs channels"]
Gathered = Num[Array, "batch size outputs channels"]
Family = Num[Array, "batch size inputs channels"]
Outputs = Num[Array, "batch outputs channels"]
Theta = Num[Array, "size in_channels out_channels"]
Operator = Num[Array, "inputs outputs in_channels out_channels"]


class Basis(ABC):
    """K matrices A_k of shape `[M, N]`; K is the size of the convolution.

    An implementation is a frozen dataclass registered as a pytree, with an attribute `shape`:
    (K, M, N), Python integers that are known under `jit`. Sums run in the accumulation dtype of A
    and the operand.
    """

    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """K, the number of matrices."""
        return self.shape[0]

    @property
    def inputs(self) -> int:
        """M, the number of input entries (keys)."""
        return self.shape[1]

    @property
    def outputs(self) -> int:
        """N, the number of output entries (queries)."""
        return self.shape[2]

    @property
    @abstractmethod
    def nonzeros(self) -> int:
        """How many entries of the K matrices are stored, or not known to be zero."""

    @property
    @abstractmethod
    def dtype(self) -> np.dtype:
        """What the entries contribute to the result's dtype; bool where they contribute nothing."""

    @abstractmethod
    def matrices(self) -> Matrices:
        """A, dense."""

    @abstractmethod
    def gather(self, x: Inputs) -> Gathered:
        """A_kᵀ x for every k."""

    @abstractmethod
    def scatter_sum(self, z: Family) -> Outputs:
        """Σ_k A_kᵀ z_k."""

    @abstractmethod
    def operator(self, theta: Theta) -> Operator:
        """Φ = A∘Θ of A19 eq. 3."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class DenseBasis(Basis):
    """A as one array, `[K, M, N]`; `dense_basis` checks its shape.

    >>> basis = DenseBasis(jnp.array([[[0, 1], [0, 0]]]))  # output 1 reads input 0
    >>> basis.gather(jnp.array([[[5], [7]]]))[0, 0, :, 0].tolist()
    [0, 5]
    """

    array: Num[Array, "size inputs outputs"]

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """(K, M, N)."""
        return self.array.shape

    @property
    def nonzeros(self) -> int:
        """KMN: every entry is stored."""
        return self.size * self.inputs * self.outputs

    @property
    def dtype(self) -> np.dtype:
        """That of the array."""
        return self.array.dtype

    def matrices(self) -> Matrices:
        """The array itself."""
        return self.array

    def gather(self, x: Inputs) -> Gathered:
        """A_kᵀ x."""
        return self._contract("kmn,bmp->bknp", x)

    def scatter_sum(self, z: Family) -> Outputs:
        """Σ_k A_kᵀ z_k, one contraction over k and m."""
        return self._contract("kmn,bkmq->bnq", z)

    def operator(self, theta: Theta) -> Operator:
        """A∘Θ, one contraction over k."""
        return self._contract("kmn,kpq->mnpq", theta)

    def _contract(self, formula: str, operand: Array) -> Array:
        dtype = accumulation_dtype(self.array, operand)
        factors = self.array.astype(dtype), operand.astype(dtype)
        return jnp.einsum(formula, *factors, precision=HIGHEST)


def dense_basis(matrices: Any) -> DenseBasis:
    """A basis from matrices `[K, M, N]`, or from one matrix `[M, N]` as K = 1.

    >>> dense_basis([[1.0, 0.0], [0.0, 1.0]]).size
    1
    """
    array = as_array(matrices, "matrices")
    if array.ndim == 2:
        array = array[None]
    if array.ndim != 3 or 0 in array.shape:
        raise ValueError(
            f"matrices.shape={array.shape}, but expected (K, M, N), all at least 1: K matrices "
            "from M inputs to N outputs"
        )
    return DenseBasis(array)
