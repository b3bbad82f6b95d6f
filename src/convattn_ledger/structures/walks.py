"""Bases that count walks: powers of the adjacency, and walks by sort (A19, Section 2.2).

(A^k)_mn = Σ A_(v_0 v_1) ··· A_(v_(k-1) v_k) over all m = v_0, v_1, …, v_k = n: for a 0-1 adjacency
the number of walks of length k from m to n. A19 says "random walks"; a random walk's probabilities
would be the powers of D⁻¹A. In a knowledge graph a sort is a sequence of relations r_1, …, r_l, and

    A_sort = R_(r_1) ··· R_(r_l)

counts the walks that follow these relations in this order. Counts are taken in 64 bits, beyond
which integers wrap around.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import matmul
from typing import Any

import jax.numpy as jnp
import scipy.sparse

from convattn.operators.integers import as_integer
from convattn_ledger.structures.basis import Basis
from convattn_ledger.structures.graph import graph_basis, read_graph


def power_basis(adjacency: Any, order: int) -> Basis:
    """The powers A, A², …, A^order, of size `order`.

    Args:
        adjacency: `[N, N]`, finite, ≥ 0, directed or not; dense or of scipy.sparse. Integers stay
            integers.
        order: ≥ 1.

    Returns:
        A `DenseBasis` for a dense adjacency, else a `SparseBasis`; entry (m, n) of matrix k counts
        the walks of length k from m to n.

    Source: A19 Section 2.2.

    >>> power_basis([[0, 1, 0], [0, 0, 2], [0, 0, 0]], 2).matrices()[1].tolist()
    [[0, 0, 2], [0, 0, 0], [0, 0, 0]]
    """
    matrix, dtype = read_graph(adjacency)
    powers = [matrix]
    while len(powers) < as_integer(order, "order", 1):
        powers.append(powers[-1] @ matrix)
    return graph_basis(powers, dtype)


def walk_basis(relations: Mapping[str, Any], sorts: Sequence[str | Sequence[str]]) -> Basis:
    """One matrix for each sort of walk in a knowledge graph.

    Args:
        relations: Name and adjacency `[N, N]` of each relation, over the same nodes; as for
            `power_basis`. If one is sparse, all are taken as sparse.
        sorts: Each a sequence of names, or the names joined by dots.

    Returns:
        As `power_basis`; entry (m, n) of matrix k counts the walks of sort k from m to n.

    Source: A19 Section 2.2.

    >>> played, role_in = [[0, 1, 0], [0, 0, 0], [0, 0, 0]], [[0, 0, 0], [0, 0, 1], [0, 0, 0]]
    >>> relations = {"played": played, "characterIn": role_in}
    >>> walk_basis(relations, ["played.characterIn"]).matrices()[0].tolist()
    [[0, 0, 1], [0, 0, 0], [0, 0, 0]]
    """
    paths = [tuple(sort.split(".")) if isinstance(sort, str) else tuple(sort) for sort in sorts]
    names = {name for path in paths for name in path}
    if not paths or not all(paths) or not names <= set(relations):
        raise ValueError(
            f"sorts={sorts!r}, but expected at least one, each a sequence of one or more of "
            f"{sorted(relations)}; joined names are split at dots, so pass a sequence where a name "
            "holds one"
        )
    graphs = {name: read_graph(relations[name], f"relations[{name!r}]") for name in sorted(names)}
    matrices = {name: graph.matrix for name, graph in graphs.items()}
    sizes = {name: matrix.shape[0] for name, matrix in matrices.items()}
    if len(set(sizes.values())) != 1:
        raise ValueError(f"the relations have {sizes} nodes, but all should be over the same nodes")
    if any(scipy.sparse.issparse(matrix) for matrix in matrices.values()):
        matrices = {name: scipy.sparse.csr_array(matrix) for name, matrix in matrices.items()}
    products = [reduce(matmul, [matrices[name] for name in path]) for path in paths]
    return graph_basis(products, jnp.result_type(*(graph.dtype for graph in graphs.values())))
