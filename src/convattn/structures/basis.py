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

import numpy as np
from jax import Array, lax
from jaxtyping import Num

from convattn.operators.attention import HIGHEST as HIGHEST

Matrices = Num[Array, "size inputs outputs"]
Inputs = Num[Array, "batch inputs channels"]
Gathered = Num[Array, "batch size outputs channels"]
Family = Num[Array, "batch size inputs channels"]
Outputs = Num[Array, "batch outputs channels"]
Theta = Num[Array, "size in_channels out_channels"]
Operator = Num[Array, "inputs outputs in_channels out_channels"]


class Basis(ABC):
    """K matrices A_k of shape `[M, N]`; K is the size of the convolution.

    An implementation is a frozen dataclass registered as a pytree. `size`, `inputs`, `outputs` and
    `nonzeros` are Python integers, known under `jit`.
    """

    @property
    @abstractmethod
    def size(self) -> int:
        """K, the number of matrices."""

    @property
    @abstractmethod
    def inputs(self) -> int:
        """M, the number of input entries (keys)."""

    @property
    @abstractmethod
    def outputs(self) -> int:
        """N, the number of output entries (queries)."""

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
    def gather(self, x: Inputs, *, precision: lax.Precision = HIGHEST) -> Gathered:
        """A_kᵀ x for every k, in the accumulation dtype of A and x."""

    @abstractmethod
    def scatter_sum(self, z: Family, *, precision: lax.Precision = HIGHEST) -> Outputs:
        """Σ_k A_kᵀ z_k, in the accumulation dtype of A and z."""

    @abstractmethod
    def operator(self, theta: Theta, *, precision: lax.Precision = HIGHEST) -> Operator:
        """Φ = A∘Θ of A19 eq. 3, in the accumulation dtype of A and Θ."""
