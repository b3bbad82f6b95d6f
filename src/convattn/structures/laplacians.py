"""Bases from the spectrum of an undirected graph: Laplacian, GCN, Chebyshev (A19, Section 2.2).

With the degrees D of the adjacency A ≥ 0,

    S = D^(-1/2) A D^(-1/2),      L = I - S  (the normalised Laplacian, eigenvalues in [0, 2]).

A19 says that graph convolution networks take K = 1 and A_1 = L. They do not: their matrix is

    Â = D̃^(-1/2) (A + I) D̃^(-1/2),      D̃ the degrees of A + I,

with the opposite sign off the diagonal and a loop at every node. It is defined at isolated nodes,
where L divides by zero.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

from convattn.structures.basis import Basis
from convattn.structures.graph import (
    Graph,
    Matrix,
    as_floating,
    degrees,
    graph_basis,
    identity_like,
    multiply,
    read_graph,
)


def gcn_basis(adjacency: Any) -> Basis:
    """The basis of graph convolution networks, D̃^(-1/2) (A + I) D̃^(-1/2), of size 1.

    Args:
        adjacency: `[N, N]`, symmetric, finite, ≥ 0; dense, scipy.sparse or BCOO. Loops that it has
            are kept: the added one comes on top. Isolated nodes are allowed.

    Returns:
        A `DenseBasis` for a dense adjacency, else a `SparseBasis`; floats of its dtype, or float32
        for integers.

    Raises:
        ValueError: For anything else than such a matrix, and for degrees that overflow: A + I is
            not A + I up to a factor, so scaling is left to the caller.

    Source: Kipf and Welling 2017, eq. 2; what A19 Section 2.2 calls the normalised Laplacian.

    >>> gcn_basis([[0, 1], [1, 0]]).matrices()[0].tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """
    graph = as_floating(read_graph(adjacency, symmetric=True))
    looped = graph.matrix + identity_like(graph.matrix)
    with np.errstate(over="ignore"):  # refused below
        each = degrees(looped)
    if not isinstance(each, jax.core.Tracer) and not np.isfinite(each).all():
        first = int(np.flatnonzero(~np.isfinite(each))[0])
        raise ValueError(
            f"the weights of the edges of node {first} add up beyond {each.dtype}, but its degree "
            "should be finite; scale the adjacency down, which changes how much the added loops of "
            "weight 1 count, or cast it to float64"
        )
    return graph_basis([_normalized(looped)], graph.dtype)


def laplacian_basis(adjacency: Any) -> Basis:
    """The normalised Laplacian I - D^(-1/2) A D^(-1/2), of size 1.

    Args:
        adjacency: As for `gcn_basis`, without isolated nodes. A loop counts once in its node's
            degree (scipy's `laplacian` drops loops).

    Returns:
        As `gcn_basis`.

    Raises:
        ValueError: As `gcn_basis`, and for isolated nodes.

    Source: A19 Section 2.2; Chung 1997.

    >>> laplacian_basis([[0, 1], [1, 0]]).matrices()[0].tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    graph = _connected(adjacency)
    return graph_basis([identity_like(graph.matrix) - _normalized(graph.matrix)], graph.dtype)


def chebyshev_basis(adjacency: Any, order: int, *, largest_eigenvalue: float = 2.0) -> Basis:
    """Chebyshev polynomials T_0, …, T_order of the scaled normalised Laplacian.

    With L̃ = 2L/λ - I, T_0 = I, T_1 = L̃ and T_k = 2L̃T_(k-1) - T_(k-2). The scaling brings the
    eigenvalues into [-1, 1], where |T_k| ≤ 1; it does not change the class of convolutions, as the
    polynomials of degree ≤ `order` in L̃ and in L are the same.

    Args:
        adjacency: As for `laplacian_basis`.
        order: ≥ 0; the size is one more.
        largest_eigenvalue: λ > 0; 2 bounds the eigenvalues of L on every graph.

    Returns:
        As `gcn_basis`.

    Raises:
        ValueError: As `laplacian_basis`, and for another order or eigenvalue.

    Source: Defferrard, Bresson, Vandergheynst 2016; A19 Section 2.2.

    >>> chebyshev_basis([[0, 1], [1, 0]], 2).matrices()[:, 0].tolist()
    [[1.0, 0.0], [0.0, -1.0], [1.0, 0.0]]
    """
    if isinstance(order, bool) or not isinstance(order, int | np.integer) or order < 0:
        raise ValueError(f"order={order!r}, but expected an integer ≥ 0, the degree of the last")
    if not 0 < largest_eigenvalue < float("inf"):
        raise ValueError(
            f"largest_eigenvalue={largest_eigenvalue!r}, but expected a positive number; the "
            "default 2 bounds the eigenvalues of every normalised Laplacian"
        )
    graph = _connected(adjacency)
    unit, factor = identity_like(graph.matrix), 2 / largest_eigenvalue
    scaled = (factor - 1) * unit - factor * _normalized(graph.matrix)
    found = [unit, scaled]
    while len(found) <= order:
        found.append(2 * multiply(scaled, found[-1]) - found[-2])
    return graph_basis(found[: order + 1], graph.dtype)


def _connected(adjacency: Any) -> Graph:
    """An undirected graph in which every node has an edge."""
    graph = as_floating(read_graph(adjacency, symmetric=True))
    graph = Graph(_without_overflow(graph.matrix), graph.dtype)
    each = degrees(graph.matrix)
    if not isinstance(each, jax.core.Tracer) and (np.asarray(each) == 0).any():
        isolated = np.flatnonzero(np.asarray(each) == 0)
        raise ValueError(
            f"adjacency has {len(isolated)} isolated nodes, the first is node {isolated[0]}, but "
            "the normalised Laplacian divides by the root of the degree; remove them, give them a "
            "loop, or use gcn_basis, which adds one to every node"
        )
    return graph


def _without_overflow(matrix: Matrix) -> Matrix:
    """The matrix, or where a degree could overflow a power of two times it, which D⁻¹A cancels."""
    limits = jnp.finfo(matrix.dtype)
    factor = 2.0 ** -(matrix.shape[0].bit_length() + 1)
    large = matrix.max() > float(limits.max) * factor
    if scipy.sparse.issparse(matrix):
        return matrix * matrix.dtype.type(factor) if large else matrix
    return matrix * jnp.where(large, factor, 1).astype(matrix.dtype)


def _normalized(matrix: Matrix) -> Matrix:
    """D^(-1/2) M D^(-1/2), exactly symmetric if M is.

    With l ≤ h the two degrees, √(lh) = h√(l/h): no product of degrees that could overflow, and no
    rounding but the quotient's where the degrees are equal. Where l/h is too small for a normal
    number √l√h stands for it.
    """
    each = degrees(matrix)
    if scipy.sparse.issparse(matrix):
        entries = matrix.tocoo()
        pair = each[entries.row], each[entries.col]
        low, high = np.minimum(*pair), np.maximum(*pair)
        values = entries.data / _root_of_product(low, high, np)
        return scipy.sparse.csr_array((values, (entries.row, entries.col)), matrix.shape)
    dense = jnp.asarray(each)
    low, high = (f(dense[:, None], dense[None, :]) for f in (jnp.minimum, jnp.maximum))
    return matrix / _root_of_product(low, high, jnp)


def _root_of_product(low: Any, high: Any, module: Any) -> Any:
    """√(lh), in NumPy or JAX."""
    ratio = low / high
    normal = ratio >= jnp.finfo(low.dtype).tiny
    return module.where(normal, high * module.sqrt(ratio), module.sqrt(low) * module.sqrt(high))
