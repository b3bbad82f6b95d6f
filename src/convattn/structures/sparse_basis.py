"""A basis stored by its nonzero entries."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from jax import Array, lax
from jax.experimental.sparse import BCOO
from jaxtyping import Int, Num

from convattn.operators.arrays import accumulation_dtype, as_array
from convattn.operators.integers import as_integer
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
from convattn.structures.duplicates import sum_duplicates


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class SparseBasis(Basis):
    """A in coordinate form: A[bases_e, keys_e, queries_e] = values_e, distinct positions.

    `sparse_basis` makes one from matrices, `basis_from_entries` from coordinates; both check and
    sum what stands at one position.

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
    def size(self) -> int:
        """K."""
        return self.shape[0]

    @property
    def inputs(self) -> int:
        """M."""
        return self.shape[1]

    @property
    def outputs(self) -> int:
        """N."""
        return self.shape[2]

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

    def gather(self, x: Inputs, *, precision: lax.Precision = HIGHEST) -> Gathered:
        """Each entry adds value·x_m at (k, n)."""
        dtype = accumulation_dtype(self.values, x)
        terms = x.astype(dtype)[:, self.keys] * self.values.astype(dtype)[:, None]
        empty = jnp.zeros((x.shape[0], self.size, self.outputs, x.shape[-1]), dtype)
        return empty.at[:, self.bases, self.queries].add(terms)

    def scatter_sum(self, z: Family, *, precision: lax.Precision = HIGHEST) -> Outputs:
        """Each entry adds value·z_km at n."""
        dtype = accumulation_dtype(self.values, z)
        terms = z.astype(dtype)[:, self.bases, self.keys] * self.values.astype(dtype)[:, None]
        empty = jnp.zeros((z.shape[0], self.outputs, z.shape[-1]), dtype)
        return empty.at[:, self.queries].add(terms)

    def operator(self, theta: Theta, *, precision: lax.Precision = HIGHEST) -> Operator:
        """Each entry adds value·Θ_k at (m, n)."""
        dtype = accumulation_dtype(self.values, theta)
        terms = theta.astype(dtype)[self.bases] * self.values.astype(dtype)[:, None, None]
        empty = jnp.zeros((self.inputs, self.outputs, *theta.shape[1:]), dtype)
        return empty.at[self.keys, self.queries].add(terms)


def sparse_basis(matrices: Any) -> SparseBasis:
    """The nonzero entries of K matrices.

    Args:
        matrices: `[K, M, N]`, dense or a BCOO; or a sequence of K matrices `[M, N]`, each dense, of
            scipy.sparse, or a BCOO. What stands twice at a position is summed; zeros are dropped.
            They must be concrete: how many entries there are is part of the shape.

    Raises:
        ValueError: For another rank, an empty axis, or matrices of different shapes.

    >>> sparse_basis([scipy.sparse.eye(3, k=d, dtype=np.float32) for d in (0, 1)]).nonzeros
    5
    """
    if isinstance(matrices, BCOO) or (hasattr(matrices, "ndim") and matrices.ndim == 3):
        values, indices, shape = entries_of(matrices)
        if len(shape) != 3:
            raise ValueError(
                f"matrices.shape={shape}, but expected (K, M, N); give one as [matrix]"
            )
        return basis_from_entries(values, indices[:, 0], indices[:, 1], indices[:, 2], shape)
    if scipy.sparse.issparse(matrices) or not isinstance(matrices, Sequence) or not matrices:
        raise ValueError(
            f"matrices is {type(matrices).__name__}, but expected an array [K, M, N] or a list of "
            "matrices [M, N]; give a single one as [matrix]"
        )
    parts = [entries_of(matrix) for matrix in matrices]
    shapes = {shape for _, _, shape in parts}
    if len(shapes) != 1 or len(parts[0][2]) != 2:
        raise ValueError(
            f"the matrices have the shapes {sorted(shapes)}, but all should have one shape (M, N)"
        )
    values = np.concatenate([values for values, _, _ in parts])
    bases = np.concatenate([np.full(len(part[0]), k) for k, part in enumerate(parts)])
    indices = np.concatenate([indices for _, indices, _ in parts])
    return basis_from_entries(
        values, bases, indices[:, 0], indices[:, 1], (len(parts), *parts[0][2])
    )


def basis_from_entries(
    values: Any, bases: Any, keys: Any, queries: Any, shape: Sequence[int]
) -> SparseBasis:
    """A basis from its coordinates; values at one position are summed and zeros dropped.

    Args:
        values: `bases` (k), `keys` (m), `queries` (n): of one length.
        shape: (K, M, N).

    Raises:
        ValueError: For lengths that differ, indices that are no integers or outside the shape, an
            empty axis, and sums that the dtype of the values cannot hold.

    >>> basis_from_entries([1, 2], [0, 0], [1, 1], [0, 0], (1, 2, 2)).values.tolist()
    [3]
    """
    size = tuple(as_integer(n, "shape", 0) for n in shape)
    if len(size) != 3 or min(size) < 1:
        raise ValueError(f"shape={shape!r}, but expected (K, M, N), all at least 1")
    numbers = np.asarray(as_array(values, "values"))
    places = [
        _indices(part, name)
        for name, part in (("bases", bases), ("keys", keys), ("queries", queries))
    ]
    if numbers.ndim != 1 or any(len(part) != len(numbers) for part in places):
        raise ValueError(
            f"values.shape={numbers.shape} and {[len(part) for part in places]} indices k, m, n, "
            "but all should have one length"
        )
    for name, part, bound in zip(("bases", "keys", "queries"), places, size, strict=True):
        if len(part) and not 0 <= part.min() <= part.max() < bound:
            raise ValueError(
                f"{name} runs from {part.min()} to {part.max()}, but expected to lie in "
                f"0..{bound - 1} for the shape {size}"
            )
    numbers, flat = sum_duplicates(numbers, np.ravel_multi_index(places, size), "values")
    kept = np.flatnonzero(numbers)
    found = np.unravel_index(flat[kept], size)
    k, m, n = (jnp.asarray(part, jnp.int32) for part in found)
    return SparseBasis(jnp.asarray(numbers[kept]), k, m, n, size)


def _indices(part: Any, name: str) -> np.ndarray:
    """Indices of 64 bits; casting would cut 0.9 down to 0."""
    given = np.asarray(part).reshape(-1)
    if given.size and given.dtype.kind not in "iu":
        raise ValueError(
            f"{name}.dtype={given.dtype}, but indices should be integers, counted from 0; round "
            "them yourself if they come from floats"
        )
    return given.astype(np.int64)


def entries_of(
    matrix: Any, name: str = "matrices"
) -> tuple[np.ndarray, np.ndarray, tuple[int, ...]]:
    """The values and indices of one array, dense or sparse."""
    if scipy.sparse.issparse(matrix):
        coordinates = matrix.tocoo()
        as_array(coordinates.data, name)  # refuses bits that JAX would drop
        return coordinates.data, np.stack([coordinates.row, coordinates.col], 1), matrix.shape
    if isinstance(matrix, BCOO):
        if matrix.n_batch == 0 and matrix.n_dense == 0:
            values, indices = np.asarray(matrix.data), np.asarray(matrix.indices)
            inside = (indices < np.array(matrix.shape)).all(axis=1)  # BCOO pads with others
            return values[inside], indices[inside], matrix.shape
        matrix = matrix.todense()
    dense = np.asarray(as_array(matrix, name))
    indices = np.argwhere(dense)
    return dense[tuple(indices.T)], indices, dense.shape
