"""A basis stored by its nonzero entries."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from jax import Array
from jax.typing import DTypeLike
from jaxtyping import Int, Num

from convattn.operators.arrays import accumulation_dtype, as_array
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


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class SparseBasis(Basis):
    """A in coordinate form: A[bases_e, keys_e, queries_e] = values_e, distinct positions.

    Attributes:
        values: `bases` (k), `keys` (m), `queries` (n): `[nonzeros]`.
        shape: (K, M, N).

    >>> basis = sparse_basis([[[0, 1], [0, 0]], [[2, 0], [0, 3]]])
    >>> basis.nonzeros, basis.gather(jnp.array([[[5], [7]]]))[0, :, :, 0].tolist()
    (3, [[0, 5], [10, 21]])
    """

    values: Num[Array, "nonzeros"]
    bases: Int[Array, "nonzeros"]
    keys: Int[Array, "nonzeros"]
    queries: Int[Array, "nonzeros"]
    shape: tuple[int, int, int] = field(metadata={"static": True})

    @property
    def nonzeros(self) -> int:
        """The number of stored entries."""
        return self.values.shape[0]

    @property
    def dtype(self) -> np.dtype:
        """That of the values."""
        return self.values.dtype

    def matrices(self) -> Matrices:
        """A, dense."""
        empty = jnp.zeros(self.shape, self.values.dtype)
        return empty.at[self.bases, self.keys, self.queries].add(self.values)

    def gather(self, x: Inputs) -> Gathered:
        """Each entry adds value·x_m at (k, n)."""
        terms = self._weighted(x[:, self.keys], (-1, 1))
        empty = jnp.zeros((x.shape[0], self.size, self.outputs, x.shape[-1]), terms.dtype)
        return empty.at[:, self.bases, self.queries].add(terms)

    def scatter_sum(self, z: Family) -> Outputs:
        """Each entry adds value·z_km at n."""
        terms = self._weighted(z[:, self.bases, self.keys], (-1, 1))
        empty = jnp.zeros((z.shape[0], self.outputs, z.shape[-1]), terms.dtype)
        return empty.at[:, self.queries].add(terms)

    def operator(self, theta: Theta) -> Operator:
        """Each entry adds value·Θ_k at (m, n)."""
        terms = self._weighted(theta[self.bases], (-1, 1, 1))
        empty = jnp.zeros((self.inputs, self.outputs, *theta.shape[1:]), terms.dtype)
        return empty.at[self.keys, self.queries].add(terms)

    def _weighted(self, read: Array, shape: tuple[int, ...]) -> Array:
        dtype = accumulation_dtype(self.values, read)
        return read.astype(dtype) * self.values.astype(dtype).reshape(shape)


def sparse_basis(matrices: Any, dtype: DTypeLike | None = None) -> SparseBasis:
    """The nonzero entries of K matrices.

    Args:
        matrices: `[K, M, N]`, or a sequence of K matrices `[M, N]`, each dense or of scipy.sparse,
            which sums what stands twice at a position. They must be concrete: how many entries
            there are is part of the shape.
        dtype: Of the values; by default that of the matrices.

    >>> sparse_basis([scipy.sparse.eye(3, k=d, dtype=np.float32) for d in (0, 1)]).nonzeros
    5
    """
    if not isinstance(matrices, Sequence):
        matrices = np.atleast_2d(np.asarray(as_array(matrices, "matrices")))
    parts = [_entries(matrix) for matrix in matrices]
    shapes = {shape for _, _, shape in parts}
    if len(shapes) != 1 or len(parts[0][2]) != 2 or 0 in parts[0][2]:
        raise ValueError(
            f"matrices have the shapes {sorted(shapes)}, but expected K ≥ 1 matrices of one shape "
            "(M, N), M and N at least 1; give a single one as [matrix]"
        )
    rows, columns = parts[0][2]
    bases = np.concatenate([np.full(len(values), k) for k, (values, _, _) in enumerate(parts)])
    keys, queries = np.concatenate([indices for _, indices, _ in parts], axis=1)
    values = jnp.concatenate([as_array(values, "matrices") for values, _, _ in parts])
    values = values if dtype is None else values.astype(dtype)
    return basis_from_entries(values, bases, keys, queries, (len(parts), rows, columns))


def basis_from_entries(
    values: Num[Array, " nonzeros"],
    bases: Int[np.ndarray, " nonzeros"],
    keys: Int[np.ndarray, " nonzeros"],
    queries: Int[np.ndarray, " nonzeros"],
    shape: tuple[int, int, int],
) -> SparseBasis:
    """A basis from distinct positions, as they are.

    >>> entries = jnp.array([3]), np.array([0]), np.array([1]), np.array([0])
    >>> basis_from_entries(*entries, (1, 2, 2)).matrices().tolist()
    [[[0, 0], [3, 0]]]
    """
    k, m, n = (jnp.asarray(array, jnp.int32) for array in (bases, keys, queries))
    return SparseBasis(values, k, m, n, shape)


def _entries(matrix: Any) -> tuple[np.ndarray, np.ndarray, tuple[int, ...]]:
    """The nonzero values of one matrix, their rows and columns, and its shape."""
    if scipy.sparse.issparse(matrix):
        compressed = scipy.sparse.csr_array(matrix, copy=True)
        compressed.sum_duplicates()
        compressed.eliminate_zeros()
        coordinates = compressed.tocoo()
        return coordinates.data, np.stack([coordinates.row, coordinates.col]), matrix.shape
    dense = np.asarray(as_array(matrix, "matrices"))
    indices = np.nonzero(dense)
    return dense[indices], np.stack(indices), dense.shape
