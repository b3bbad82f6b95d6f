"""Reading a graph: an adjacency matrix, dense, of scipy.sparse or a BCOO.

Entry (m, n) is the weight of the edge from node m to node n. Dense graphs stay JAX arrays and may
be traced, though then their values cannot be looked at; sparse ones become scipy's compressed rows,
as how many entries a product has is part of its shape.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from jax import Array, lax
from jax.experimental.sparse import BCOO
from jaxtyping import Num

from convattn.operators.arrays import accumulation_dtype, as_array, promoted
from convattn.structures.basis import Basis
from convattn.structures.dense_basis import DenseBasis
from convattn.structures.duplicates import sum_duplicates
from convattn.structures.sparse_basis import entries_of, sparse_basis

Matrix = Any  # a JAX array, or a scipy.sparse.csr_array


@dataclass(frozen=True)
class Graph:
    """Weights in the dtype in which they are summed, and the dtype of the results.

    Attributes:
        matrix: `[N, N]`.
        dtype: That of the adjacency as given.
    """

    matrix: Matrix
    dtype: np.dtype

    @property
    def nodes(self) -> int:
        """N."""
        return int(self.matrix.shape[0])


def read_graph(adjacency: Any, name: str = "adjacency", *, symmetric: bool = False) -> Graph:
    """A graph with finite weights ≥ 0.

    Args:
        adjacency: `[N, N]`: anything that makes a dense array, a scipy.sparse matrix or array, or a
            BCOO.
        name: What messages call it.
        symmetric: Whether the graph must be undirected.

    Raises:
        ValueError: For other than a square matrix of real numbers, for entries that are not finite
            or negative, for an asymmetric matrix where `symmetric`, for a traced BCOO, and for
            several entries at one place whose sum the dtype cannot hold.

    >>> read_graph([[0, 1], [1, 0]]).nodes
    2
    """
    if isinstance(adjacency, BCOO) or scipy.sparse.issparse(adjacency):
        _refuse_traced(adjacency, name)
        numbers, indices, shape = entries_of(adjacency, name)
        _check_shape(shape, numbers.dtype, name)
        wide = numbers.astype(accumulation_dtype(numbers.dtype))  # scipy knows no half types
        values, places = sum_duplicates(wide, np.ravel_multi_index(indices.T, shape), name)
        where = np.unravel_index(places, shape)
        matrix: Matrix = scipy.sparse.csr_array((values, where), shape)
        _check_values(matrix.data, name, lambda index: _place(matrix, index))
        if symmetric:
            _check_symmetric(abs(matrix - matrix.T).tocsr(), name)
        return Graph(matrix, numbers.dtype)
    array = as_array(adjacency, name)
    _check_shape(array.shape, array.dtype, name)
    dense = array.astype(accumulation_dtype(array))
    if not isinstance(array, jax.core.Tracer):
        values = np.asarray(dense)
        _check_values(values.reshape(-1), name, lambda index: divmod(index, len(values)))
        if symmetric:
            _check_symmetric(scipy.sparse.csr_array(values != values.T), name)
    return Graph(dense, array.dtype)


def as_floating(graph: Graph) -> Graph:
    """The same weights as floats; integers become float32 at least."""
    dtype = promoted(graph.dtype, jnp.float32)
    dtype = graph.dtype if jnp.issubdtype(graph.dtype, jnp.floating) else dtype
    return Graph(graph.matrix.astype(accumulation_dtype(dtype)), dtype)


def as_sparse(matrix: Matrix) -> scipy.sparse.csr_array:
    """The matrix in compressed rows."""
    return matrix if scipy.sparse.issparse(matrix) else scipy.sparse.csr_array(np.asarray(matrix))


def identity_like(matrix: Matrix) -> Matrix:
    """I, stored as the matrix is."""
    if scipy.sparse.issparse(matrix):
        return scipy.sparse.eye_array(matrix.shape[0], dtype=matrix.dtype, format="csr")
    return jnp.eye(matrix.shape[0], dtype=matrix.dtype)


def degrees(matrix: Matrix) -> Num[np.ndarray, "nodes"] | Num[Array, "nodes"]:
    """d_m = Σ_n A_mn, loops included once."""
    return matrix.sum(axis=1)


def multiply(left: Matrix, right: Matrix) -> Matrix:
    """The matrix product, dense ones at the highest precision."""
    if scipy.sparse.issparse(left):
        return left @ right
    return jnp.matmul(left, right, precision=lax.Precision.HIGHEST)


def graph_basis(matrices: Sequence[Matrix], dtype: np.dtype) -> Basis:
    """The basis of K matrices that are stored alike: a `SparseBasis` or a `DenseBasis`."""
    if scipy.sparse.issparse(matrices[0]):
        basis = sparse_basis(list(matrices))
        return replace(basis, values=basis.values.astype(dtype))
    return DenseBasis(jnp.stack([jnp.asarray(matrix) for matrix in matrices]).astype(dtype))


def _refuse_traced(adjacency: Any, name: str) -> None:
    parts = (adjacency.data, adjacency.indices) if isinstance(adjacency, BCOO) else ()
    if any(isinstance(part, jax.core.Tracer) for part in parts):
        raise ValueError(
            f"{name} is a traced BCOO, but how many entries the result has must be known; build "
            "the basis outside jit, or pass a dense matrix"
        )


def _check_shape(shape: tuple[int, ...], dtype: np.dtype, name: str) -> None:
    if len(shape) != 2 or shape[0] != shape[1] or shape[0] < 1:
        raise ValueError(
            f"{name}.shape={tuple(shape)}, but expected (N, N), N at least 1: the weight of every "
            "edge from m to n; for a bipartite graph number both kinds of nodes together"
        )
    if jnp.issubdtype(dtype, jnp.complexfloating):
        raise ValueError(f"{name}.dtype={dtype}, but weights should be real numbers")


def _check_values(values: np.ndarray, name: str, place: Any) -> None:
    wrong = {
        "not finite": ~np.isfinite(values),
        "negative": values < 0,
    }
    remedies = {
        "not finite": "look for an overflow or a distance that was divided by",
        "negative": "similarities can be shifted or clipped at 0; for signed weights build the "
        "matrices yourself and pass them to dense_basis",
    }
    for what, where in wrong.items():
        if where.any():
            first = int(np.flatnonzero(where)[0])
            raise ValueError(
                f"{name} has {int(where.sum())} entries that are {what}, the first is "
                f"{values[first]} at {place(first)}, but weights should be finite and at least 0; "
                f"{remedies[what]}"
            )


def _check_symmetric(difference: scipy.sparse.csr_array, name: str) -> None:
    difference.eliminate_zeros()
    if difference.nnz:
        raise ValueError(
            f"{name} is not symmetric: {difference.nnz // 2} pairs of entries differ, the first at "
            f"{_place(difference, 0)}, but this matrix is defined for undirected graphs; "
            f"symmetrise it, e.g. ({name} + {name}.T)/2, or use power_basis, which takes directions"
        )


def _place(matrix: scipy.sparse.csr_array, index: int) -> tuple[int, int]:
    """Row and column of a stored entry."""
    coordinates = matrix.tocoo()
    return int(coordinates.row[index]), int(coordinates.col[index])
