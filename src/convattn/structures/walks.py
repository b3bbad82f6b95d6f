"""Bases that count walks: powers of the adjacency, and walks by sort (A19, Section 2.2).

(A^k)_mn = Σ A_(v_0 v_1) ··· A_(v_(k-1) v_k) over all m = v_0, v_1, …, v_k = n: for a 0-1 adjacency
the number of walks of length k from m to n. A19 says "random walks"; a random walk's probabilities
would be the powers of D⁻¹A. In a knowledge graph a sort is a sequence of relations r_1, …, r_l, and

    A_sort = R_(r_1) ··· R_(r_l)

counts the walks that follow these relations in this order.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

from convattn.operators.arrays import accumulation_dtype
from convattn.structures.basis import Basis
from convattn.structures.graph import Matrix, as_sparse, graph_basis, multiply, read_graph


def power_basis(adjacency: Any, order: int) -> Basis:
    """The powers A, A², …, A^order, of size `order`.

    Args:
        adjacency: `[N, N]`, finite, ≥ 0, directed or not; dense, scipy.sparse or BCOO. Integers
            stay integers.
        order: ≥ 1.

    Returns:
        A `DenseBasis` for a dense adjacency, else a `SparseBasis`; entry (m, n) of matrix k counts
        the walks of length k from m to n.

    Raises:
        ValueError: For anything else, and for counts that overflow the dtype.

    Source: A19 Section 2.2.

    >>> power_basis([[0, 1, 0], [0, 0, 2], [0, 0, 0]], 2).matrices()[1].tolist()
    [[0, 0, 2], [0, 0, 0], [0, 0, 0]]
    """
    if isinstance(order, bool) or not isinstance(order, int | np.integer) or order < 1:
        raise ValueError(f"order={order!r}, but expected an integer ≥ 1, the longest walk")
    graph = read_graph(adjacency)
    _refuse_overflow([graph.matrix] * order, graph.dtype, f"walks of length {order}")
    found = [graph.matrix]
    while len(found) < order:
        found.append(multiply(found[-1], graph.matrix))
    return graph_basis(found, graph.dtype)


def walk_basis(relations: Mapping[str, Any], sorts: Sequence[str | Sequence[str]]) -> Basis:
    """One matrix for each sort of walk in a knowledge graph.

    Args:
        relations: Name and adjacency `[N, N]` of each relation, over the same nodes; as for
            `power_basis`. If one is sparse, all are taken as sparse.
        sorts: Each a sequence of names, or the names joined by dots.

    Returns:
        As `power_basis`; entry (m, n) of matrix k counts the walks of sort k from m to n.

    Raises:
        ValueError: For no sorts, an empty sort, an unknown relation, relations over different
            numbers of nodes, and as `power_basis`.

    Source: A19 Section 2.2.

    >>> played, role_in = [[0, 1, 0], [0, 0, 0], [0, 0, 0]], [[0, 0, 0], [0, 0, 1], [0, 0, 0]]
    >>> relations = {"played": played, "characterIn": role_in}
    >>> walk_basis(relations, ["played.characterIn"]).matrices()[0].tolist()
    [[0, 0, 1], [0, 0, 0], [0, 0, 0]]
    """
    paths = [tuple(sort.split(".")) if isinstance(sort, str) else tuple(sort) for sort in sorts]
    if not paths or not all(paths):
        raise ValueError(f"sorts={sorts!r}, but expected at least one sort, none of them empty")
    unknown = sorted({name for path in paths for name in path} - set(relations))
    if unknown:
        raise ValueError(
            f"the sorts name {unknown}, but the relations are {sorted(relations)}; joined names "
            "are split at dots, so pass a sequence where a name holds one"
        )
    graphs = {
        name: read_graph(relations[name], f"relations[{name!r}]")
        for name in dict.fromkeys(name for path in paths for name in path)
    }
    sizes = {name: graph.nodes for name, graph in graphs.items()}
    if len(set(sizes.values())) != 1:
        raise ValueError(f"the relations have {sizes} nodes, but all should be over the same nodes")
    dtype = jnp.result_type(*(graph.dtype for graph in graphs.values()))
    matrices = {name: graph.matrix for name, graph in graphs.items()}
    if any(scipy.sparse.issparse(matrix) for matrix in matrices.values()):
        matrices = {name: as_sparse(matrix) for name, matrix in matrices.items()}
    matrices = {name: m.astype(accumulation_dtype(dtype)) for name, m in matrices.items()}
    found = []
    for path in paths:
        _refuse_overflow([matrices[name] for name in path], dtype, f"walks {'.'.join(path)}")
        matrix = matrices[path[0]]
        for name in path[1:]:
            matrix = multiply(matrix, matrices[name])
        found.append(matrix)
    return graph_basis(found, dtype)


def _refuse_overflow(factors: Sequence[Matrix], dtype: np.dtype, what: str) -> None:
    """Refuse products whose largest row sum is beyond the dtype; float64 says how large it is.

    A partial product can be larger than the whole, so every one is looked at.
    """
    if any(isinstance(factor, jax.core.Tracer) for factor in factors):
        return
    whole = jnp.issubdtype(dtype, jnp.integer)
    limit = float(jnp.iinfo(dtype).max if whole else jnp.finfo(dtype).max)
    wide = [
        matrix.astype(np.float64)
        if scipy.sparse.issparse(matrix)
        else np.asarray(matrix).astype(np.float64)
        for matrix in factors
    ]
    for length in range(1, len(wide) + 1):
        sums = np.ones(wide[0].shape[0])
        for matrix in reversed(wide[:length]):
            sums = matrix @ sums
        if sums.max() > limit:
            raise ValueError(
                f"a node has {sums.max():.3g} {what} (or parts of them), but {dtype} ends at "
                f"{limit:.3g}; cast the weights to a wider type, or scale them down"
            )
