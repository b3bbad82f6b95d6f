"""A basis whose matrices are stored in full."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Num

from convattn.operators.arrays import accumulation_dtype, as_array
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


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class DenseBasis(Basis):
    """A as one array; `dense_basis` checks what it is given.

    Attributes:
        array: A_kmn, `[K, M, N]`.

    >>> basis = DenseBasis(jnp.array([[[0, 1], [0, 0]]]))  # output 1 reads input 0
    >>> basis.gather(jnp.array([[[5], [7]]]))[0, 0, :, 0].tolist()
    [0, 5]
    """

    array: Num[Array, "size inputs outputs"]

    @property
    def size(self) -> int:
        """K."""
        return self.array.shape[0]

    @property
    def inputs(self) -> int:
        """M."""
        return self.array.shape[1]

    @property
    def outputs(self) -> int:
        """N."""
        return self.array.shape[2]

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

    def gather(self, x: Inputs, *, precision: lax.Precision = HIGHEST) -> Gathered:
        """A_kᵀ x."""
        return self._product("kmn,bmp->bknp", x, precision)

    def scatter_sum(self, z: Family, *, precision: lax.Precision = HIGHEST) -> Outputs:
        """Σ_k A_kᵀ z_k, one contraction over k and m."""
        return self._product("kmn,bkmq->bnq", z, precision)

    def operator(self, theta: Theta, *, precision: lax.Precision = HIGHEST) -> Operator:
        """A∘Θ, one contraction over k."""
        return self._product("kmn,kpq->mnpq", theta, precision)

    def _product(self, formula: str, operand: Array, precision: lax.Precision) -> Array:
        dtype = accumulation_dtype(self.array, operand)
        return jnp.einsum(
            formula, self.array.astype(dtype), operand.astype(dtype), precision=precision
        )


def dense_basis(matrices: Any) -> DenseBasis:
    """A basis from matrices, checked.

    Args:
        matrices: `[K, M, N]` numbers, or one matrix `[M, N]` as K = 1.

    Raises:
        ValueError: For another rank and for an empty axis.

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
