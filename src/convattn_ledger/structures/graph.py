"""Reading a graph from its adjacency matrix, dense or of scipy.sparse.

Entry (m, n) is the weight of the edge from node m to node n. Graphs are computed with in NumPy and
SciPy, in 64 bits, and rounded once, to the dtype of the basis.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import scipy.sparse

from convattn.operators.arrays import as_array
from convattn_ledger.structures.basis import Basis, DenseBasis
from convattn_ledger.structures.sparse_basis import sparse_basis

Matrix = Any  # a NumPy array, or a scipy.sparse.csr_array: both know +, @ and sum


class Graph(NamedTuple):
    """Weights in int64 or float64, `[N, N]`, and the dtype of the adjacency as given."""

    matrix: Matrix
    dtype: np.dtype


def read_graph(adjacency: Any, name: str = "adjacency", *, symmetric: bool = False) -> Graph:
    """A graph with finite weights ≥ 0.

    Args:
        adjacency: `[N, N]`: a matrix of scipy.sparse, or anything that makes a dense array.
        name: What messages call it.
        symmetric: Whether the graph must be undirected.

    >>> read_graph([[0, 1], [1, 0]]).matrix.shape
    (2, 2)
    """
    sparse = scipy.sparse.issparse(adjacency)
    array = scipy.sparse.csr_array(adjacency) if sparse else np.asarray(as_array(adjacency, name))
    if array.ndim != 2 or array.shape[0] != array.shape[1] or array.shape[0] < 1:
        raise ValueError(
            f"{name}.shape={array.shape}, but expected (N, N), N at least 1: the weight of every "
            "edge from m to n; for a bipartite graph number both kinds of nodes together"
        )
    values = np.asarray(array.data if sparse else array)
    if np.iscomplexobj(values) or not ((values >= 0) & np.isfinite(values)).all():
        raise ValueError(
            f"{name} has weights that are complex, not finite or negative, but expected real "
            "numbers ≥ 0; similarities can be shifted or clipped at 0, and matrices of any numbers "
            "passed to dense_basis or sparse_basis"
        )
    matrix = array.astype(np.int64 if jnp.issubdtype(array.dtype, jnp.integer) else np.float64)
    if symmetric and (matrix != matrix.T).sum():
        raise ValueError(
            f"{name} is not symmetric, but this matrix is defined for undirected graphs; "
            f"symmetrise it, e.g. ({name} + {name}.T)/2, or use power_basis, which takes directions"
        )
    return Graph(matrix, array.dtype)


def graph_basis(matrices: Sequence[Matrix], dtype: np.dtype) -> Basis:
    """A basis of matrices that are stored alike: a `SparseBasis` or a `DenseBasis`.

    >>> graph_basis([np.eye(2)], np.dtype("float32")).size
    1
    """
    limits = jnp.iinfo(dtype) if jnp.issubdtype(dtype, jnp.integer) else jnp.finfo(dtype)
    largest = max(matrix.max() for matrix in matrices)
    if largest > limits.max:
        raise ValueError(
            f"an entry is {largest:.3g}, but expected at most {float(limits.max):.3g}, where "
            f"{dtype} ends; cast the weights to a wider type, or scale them down"
        )
    if scipy.sparse.issparse(matrices[0]):
        return sparse_basis(list(matrices), dtype)
    return DenseBasis(jnp.asarray(np.stack(matrices).astype(dtype)))
