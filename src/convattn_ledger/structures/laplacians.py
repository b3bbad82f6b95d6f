"""Bases from the spectrum of an undirected graph: Laplacian, GCN, Chebyshev (A19, Section 2.2).

With the degrees D of the adjacency A ≥ 0,

    S = D^(-1/2) A D^(-1/2),      L = I - S  (the normalised Laplacian, eigenvalues in [0, 2]).

A19 says that graph convolution networks take K = 1 and A_1 = L. They do not: their matrix is

    Â = D̃^(-1/2) (A + I) D̃^(-1/2),      D̃ the degrees of A + I,

with the opposite sign off the diagonal and a loop at every node. It is defined at isolated nodes,
where L divides by zero. A loop counts once in its node's degree (scipy's `laplacian` drops loops).

A basis has the dtype of the adjacency, or JAX's default float for integers; it is a `DenseBasis`
for a dense adjacency, else a `SparseBasis`.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
import scipy.sparse

from convattn.operators.integers import as_integer
from convattn_ledger.structures.basis import Basis
from convattn_ledger.structures.graph import Graph, Matrix, graph_basis, read_graph


def gcn_basis(adjacency: Any) -> Basis:
    """The basis of graph convolution networks, D̃^(-1/2) (A + I) D̃^(-1/2), of size 1.

    Args:
        adjacency: `[N, N]`, symmetric, finite, ≥ 0; dense or of scipy.sparse. Loops that it has
            are kept: the added one comes on top. Isolated nodes are allowed.

    Source: Kipf and Welling 2017, eq. 2; what A19 Section 2.2 calls the normalised Laplacian.

    >>> gcn_basis([[0, 1], [1, 0]]).matrices()[0].tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """
    graph = _undirected(adjacency)
    return graph_basis([_normalized(graph.matrix + _identity(graph.matrix))], graph.dtype)


def laplacian_basis(adjacency: Any) -> Basis:
    """The normalised Laplacian I - D^(-1/2) A D^(-1/2), of size 1.

    Args:
        adjacency: As for `gcn_basis`, without isolated nodes.

    Source: A19 Section 2.2; Chung 1997.

    >>> laplacian_basis([[0, 1], [1, 0]]).matrices()[0].tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    graph = _undirected(adjacency)
    return graph_basis([_identity(graph.matrix) - _normalized(graph.matrix)], graph.dtype)


def chebyshev_basis(adjacency: Any, order: int, *, largest_eigenvalue: float = 2.0) -> Basis:
    """Chebyshev polynomials T_0, …, T_order of the scaled normalised Laplacian.

    With L̃ = 2L/λ - I, T_0 = I, T_1 = L̃ and T_k = 2L̃T_(k-1) - T_(k-2). The scaling brings the
    eigenvalues into [-1, 1], where |T_k| ≤ 1; it does not change the class of convolutions, as the
    polynomials of degree ≤ `order` in L̃ and in L are the same.

    Args:
        adjacency: As for `laplacian_basis`.
        order: ≥ 0; the size is one more.
        largest_eigenvalue: λ > 0; 2 bounds the eigenvalues of L on every graph.

    Source: Defferrard, Bresson, Vandergheynst 2016; A19 Section 2.2.

    >>> chebyshev_basis([[0, 1], [1, 0]], 2).matrices()[:, 0].tolist()
    [[1.0, 0.0], [0.0, -1.0], [1.0, 0.0]]
    """
    order = as_integer(order, "order", 0)
    if not 0 < largest_eigenvalue < float("inf"):
        raise ValueError(
            f"largest_eigenvalue={largest_eigenvalue!r}, but expected a positive number; the "
            "default 2 bounds the eigenvalues of every normalised Laplacian"
        )
    graph = _undirected(adjacency)
    unit, factor = _identity(graph.matrix), 2 / largest_eigenvalue
    scaled = (factor - 1) * unit - factor * _normalized(graph.matrix)
    polynomials = [unit, scaled]
    while len(polynomials) <= order:
        polynomials.append(2 * (scaled @ polynomials[-1]) - polynomials[-2])
    return graph_basis(polynomials[: order + 1], graph.dtype)


def _undirected(adjacency: Any) -> Graph:
    """An undirected graph, with the dtype of a basis that holds fractions."""
    matrix, dtype = read_graph(adjacency, symmetric=True)
    floating = dtype if jnp.issubdtype(dtype, jnp.floating) else jnp.result_type(float)
    return Graph(matrix, floating)


def _identity(matrix: Matrix) -> Matrix:
    """I, stored as the matrix is."""
    nodes = matrix.shape[0]
    return (
        scipy.sparse.eye_array(nodes, format="csr")
        if scipy.sparse.issparse(matrix)
        else np.eye(nodes)
    )


def _normalized(matrix: Matrix) -> Matrix:
    """D^(-1/2) M D^(-1/2), each entry divided by √(d_m d_n), so exactly symmetric if M is."""
    degrees = matrix.sum(axis=1).astype(np.float64)
    if (degrees == 0).any():
        raise ValueError(
            f"adjacency has isolated nodes, such as {int(np.argmin(degrees))}, but the normalised "
            "Laplacian divides by the root of the degree; remove them, give them a loop, or use "
            "gcn_basis, which adds one to every node"
        )
    if scipy.sparse.issparse(matrix):
        entries = matrix.tocoo()
        values = entries.data / np.sqrt(degrees[entries.row] * degrees[entries.col])
        return scipy.sparse.csr_array((values, (entries.row, entries.col)), matrix.shape)
    return matrix / np.sqrt(np.multiply.outer(degrees, degrees))
