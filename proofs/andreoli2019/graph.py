"""Graph convolutions: GCN, Chebyshev polynomials, powers of the adjacency, walks by sort.

Claimed. Graph networks are convolutions whose matrices come from the graph: the normalised
Laplacian for a GCN, its Chebyshev polynomials, or powers of the adjacency matrix that capture
random walks.
True. They are, but a GCN's matrix is the normalised adjacency matrix with self-loops, order K of
Chebyshev takes K + 1 matrices, and the powers count walks instead of giving their probabilities.

Printed. Section 2.2: "GCNs are exactly obtained by choosing K = 1 and A_1 to be the normalised
Laplacian matrix of G"; "although grids can be represented as graphs, grid convolutions cannot be
expressed as graph convolutions with a size restricted to 1"; "each A_k is a Chebyshev polynomial of
the normalised Laplacian matrix of G, up to order K"; in a simpler version A_k is "the adjacency
matrix of G raised to the power of k, capturing the random walks of length k"; for knowledge graphs
one A_k "for each random walk sort", a sequence of relations.

Verified. Each is a graph convolution of its Definition 2. GCN: K = 1 and Â = D̃^(-1/2) (A + I)
D̃^(-1/2), D̃ the degrees of A + I. Chebyshev: T_0, …, T_K of L̃ = 2L/λ - I with L = I - D^(-1/2) A
D^(-1/2): for any λ ≠ 0 they span the same matrices as I, L, …, L^K and as T_0, …, T_K of L itself,
so the class of convolutions is the same. Powers: (A^k)_mn is the number of walks of length k from m
to n. Sorts: the product of the relations' matrices, in order, counts the walks of that sort. Size
one: the smallest size of a grid convolution is the rank of its parameter Θ, as a K × PQ matrix, if
the shifts differ and occur in the grid; so if two Θ_k are independent it is no convolution of size
1, whatever the matrix; and for PQ = 1 no one matrix serves two independent kernels.

Repair. (1) The GCN's matrix is not the normalised Laplacian: on two nodes with an edge Â is [[1/2,
1/2], [1/2, 1/2]] and L is [[1, -1], [-1, 1]], and no factor takes one to the other. L annihilates
the signal √D 1, Â averages; at an isolated node L is not defined, Â is. (2) T_0, …, T_K are K + 1
matrices, and the method cited scales L, as T_k grows beyond [-1, 1]: on an edge L has the
eigenvalue 2 and T_3(2) = 26. (3) The powers count walks; the probabilities of random walks are the
powers of D⁻¹A. (4) "With a size restricted to 1" is too weak a restriction: no size suffices for an
asymmetric kernel if the matrices are made from the undirected grid by any procedure that treats
isomorphic graphs alike. They commute with its reflections, and the shift by one node does not. It
takes one graph for each shift, as in Definition 1.

Errata.
- Section 2.2 | GCN: the normalised Laplacian | D̃^(-1/2)(A + I)D̃^(-1/2)

Proof. *The main point:* flattened to MN × PQ, a convolution of size K is a matrix of rank at most
K.

*Chebyshev:* T_k has degree k in its argument, which has degree one in L, so both families are
triangular in the powers of L with diagonals that are not zero.

*Walks:* expand the product of the matrices; each term is a walk.

*Size:* matricise Φ = Σ_k A_k ⊗ Θ_k as MN × PQ, Σ_k vec(A_k) vec(Θ_k)ᵀ. Any convolution of size K′
has rank at most K′; the vec(A_k) are independent, as shift matrices have disjoint supports, so the
rank is that of Θ; and a rank decomposition has that size.

*PQ = 1:* the kernels e_1 and e_2 are A_1 and A_2, which are not multiples of one matrix.

*Reflections:* if R is the permutation of an automorphism, R A(G) Rᵀ = A(G), so A_k = A_k(G) = A_k(R
A Rᵀ) = R A_k Rᵀ; but R A_1 Rᵀ = A_-1 for the reflection of a line of two nodes or more. ∎
"""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import scipy.sparse

from convattn.bounds.flattened_kernel import exact_rank
from convattn.operators.roundoff import gamma
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict, require
from convattn_ledger.evidence import certified_identities, proved
from convattn_ledger.rational_matrices import rational_rank
from convattn_ledger.structures import (
    chebyshev_basis,
    cuboid_shifts,
    gcn_basis,
    laplacian_basis,
    power_basis,
    shift_basis,
    walk_basis,
)
from convattn_ledger.structures.shift_matrices import commutant_system, shift_matrix

EDGE = np.array([[0, 1], [1, 0]])
MAXIMUM_ORDER = 5


def dyadic_graph(run: Run, nodes: int, lift: int = 0) -> np.ndarray:
    """Integer weights, degrees (plus `lift`) powers of four, not all equal: exact in binary."""
    rng = run.rng(nodes, lift)
    upper = np.triu(rng.integers(0, 9, (nodes, nodes)), 1)
    upper[np.arange(nodes - 1), np.arange(1, nodes)] += 1
    adjacency = upper + upper.T
    degrees = adjacency.sum(axis=1) + lift
    powers = 4 ** np.ceil(np.log2(degrees) / 2).astype(int)
    powers[0] *= 4
    return adjacency + np.diag(powers - degrees)


def normalised(adjacency: np.ndarray) -> np.ndarray:
    """D^(-1/2) A D^(-1/2) in fractions, for degrees that are squares."""
    roots = [math.isqrt(int(degree)) for degree in adjacency.sum(axis=1)]
    scaled = [
        [Fraction(int(w), r * c) for w, c in zip(row, roots, strict=True)]
        for row, r in zip(adjacency, roots, strict=True)
    ]
    return np.array(scaled, object)


def identity(nodes: int) -> np.ndarray:
    """I in fractions."""
    return np.array([[Fraction(int(i == j)) for j in range(nodes)] for i in range(nodes)], object)


def chebyshev_coefficients(order: int) -> list[Fraction]:
    """T_k(x) = k/2 Σ_j (-1)^j (k-j-1)!/(j!(k-2j)!) (2x)^(k-2j), low degree first."""
    if order == 0:
        return [Fraction(1)]
    coefficients = [Fraction(0)] * (order + 1)
    for j in range(order // 2 + 1):
        count = Fraction(math.factorial(order - j - 1), math.factorial(j))
        count /= math.factorial(order - 2 * j)
        coefficients[order - 2 * j] = Fraction(order, 2) * (-1) ** j * count * 2 ** (order - 2 * j)
    return coefficients


def polynomial(coefficients: list[Fraction], matrix: np.ndarray) -> np.ndarray:
    """Σ c_i M^i, by Horner."""
    total = 0 * matrix
    for coefficient in reversed(coefficients):
        total = total @ matrix + coefficient * identity(len(matrix))
    return total


def spanned(matrices: list[np.ndarray]) -> int:
    """The dimension of the span of these matrices, exactly."""
    return rational_rank(
        [[Fraction(x) for x in matrix.reshape(-1).tolist()] for matrix in matrices]
    )


def gcn_is_not_the_laplacian(run: Run) -> str:
    """The library's two bases against fractions, exactly, and that they span different lines."""
    for nodes in (2, 4):
        looped = dyadic_graph(run, nodes, lift=1)
        expected = normalised(looped + np.eye(nodes, dtype=int))
        actual = np.asarray(gcn_basis(looped.astype(float)).matrices())[0]
        if (actual != expected.astype(float)).any():
            raise EvidenceFailed(f"{nodes} nodes: the GCN's matrix is {actual.tolist()}")
        adjacency = dyadic_graph(run, nodes)
        expected = identity(nodes) - normalised(adjacency)
        actual = np.asarray(laplacian_basis(adjacency.astype(float)).matrices())[0]
        if (actual != expected.astype(float)).any():
            raise EvidenceFailed(f"{nodes} nodes: the Laplacian is {actual.tolist()}")
        root = np.array([math.isqrt(int(degree)) for degree in adjacency.sum(axis=1)])
        require(not (expected @ root).any(), f"{nodes} nodes: L √D 1 is {expected @ root}")
    gcn = np.asarray(gcn_basis(EDGE.astype(float)).matrices())[0]
    laplacian = np.asarray(laplacian_basis(EDGE.astype(float)).matrices())[0]
    if gcn.tolist() != [[0.5, 0.5], [0.5, 0.5]] or laplacian.tolist() != [[1, -1], [-1, 1]]:
        raise EvidenceFailed(f"on an edge: {gcn.tolist()} and {laplacian.tolist()}")
    if spanned([gcn, laplacian]) != 2:
        raise EvidenceFailed("on an edge the GCN's matrix is a multiple of the Laplacian")
    return "exact on two graphs; on an edge [[½, ½], [½, ½]] and [[1, -1], [-1, 1]]"


def scipy_agrees(run: Run) -> str:
    """scipy's normalised Laplacian, within ten roundings of each entry, dense and sparse."""
    nodes = 9
    upper = np.triu(run.rng(nodes).integers(0, 7, (nodes, nodes)), 1)
    upper[np.arange(nodes - 1), np.arange(1, nodes)] += 1
    adjacency = (upper + upper.T).astype(float)
    expected = scipy.sparse.csgraph.laplacian(adjacency, normed=True)
    allowed = gamma(10, 2.0**-53) * np.abs(expected)  # at most five roundings on either side
    for graph in (adjacency, scipy.sparse.csr_array(adjacency)):
        distance = np.abs(np.asarray(laplacian_basis(graph).matrices())[0] - expected)
        if (distance > allowed).any():
            raise EvidenceFailed(f"off by {distance.max():.2e}, allowed {allowed.max():.2e}")
    try:
        laplacian_basis(np.diag([1.0, 0.0]))
    except ValueError:
        return f"{nodes} nodes within {allowed.max():.1e}, dense and sparse; isolated nodes refused"
    raise EvidenceFailed("an isolated node has a normalised Laplacian")


def chebyshev_polynomials(run: Run) -> str:
    """T_k by their explicit coefficients, exactly; on an edge T_3(L) has the eigenvalue 26."""
    for nodes in (3, 4):
        adjacency = dyadic_graph(run, nodes)
        scaled = -normalised(adjacency)  # 2L/2 - I
        polynomials = np.asarray(chebyshev_basis(adjacency.astype(float), MAXIMUM_ORDER).matrices())
        if len(polynomials) != MAXIMUM_ORDER + 1:
            raise EvidenceFailed(f"{len(polynomials)} matrices up to order {MAXIMUM_ORDER}")
        for order, matrix in enumerate(polynomials):
            expected = polynomial(chebyshev_coefficients(order), scaled).astype(float)
            require((matrix == expected).all(), f"{nodes} nodes: T_{order} is {matrix.tolist()}")
    laplacian = identity(2) - normalised(EDGE)
    value = polynomial(chebyshev_coefficients(3), laplacian) @ np.array([1, -1])
    require(value.tolist() == [26, -26], f"T_3(L)(1, -1) on an edge is {value.tolist()}")
    return f"T_0, …, T_{MAXIMUM_ORDER} exact on two graphs; unscaled, T_3 is 26 on an edge"


def one_class_of_polynomials(run: Run) -> str:
    """T_k(2L/λ - I) for λ = 2, 3/2, T_k(L) and L^k span the same matrices, for every order."""
    adjacency = dyadic_graph(run, 4)
    laplacian = identity(4) - normalised(adjacency)
    orders = range(4)
    families = [
        [polynomial([Fraction(0)] * k + [Fraction(1)], laplacian) for k in orders],
        [polynomial(chebyshev_coefficients(k), laplacian) for k in orders],
    ]
    for largest in (Fraction(2), Fraction(3, 2)):
        scaled = 2 / largest * laplacian - identity(4)
        families.append([polynomial(chebyshev_coefficients(k), scaled) for k in orders])
    for order in orders:
        sizes = [spanned(family[: order + 1]) for family in families]
        together = spanned([matrix for family in families for matrix in family[: order + 1]])
        if {*sizes, together} != {order + 1}:
            raise EvidenceFailed(f"order {order}: dimensions {sizes}, together {together}")
    return "orders 0 to 3: four families, one span of dimension order + 1"


def walks(steps: list[np.ndarray]) -> np.ndarray:
    """Walk by walk: the sum over all ways from m to n of the product of the weights."""
    nodes = range(len(steps[0]))
    counts = np.zeros((len(nodes), len(nodes)), np.int64)
    for path in product(nodes, repeat=len(steps) + 1):
        weight = 1
        for graph, a, b in zip(steps, path, path[1:], strict=False):
            weight *= int(graph[a, b])
        counts[path[0], path[-1]] += weight
    return counts


def powers_count_walks(run: Run) -> str:
    """A^k against every walk written down; D⁻¹A is what has the probabilities."""
    adjacency = run.rng("graph").integers(0, 3, (4, 4))
    adjacency[np.arange(4), (np.arange(4) + 1) % 4] += 1
    powers = np.asarray(power_basis(adjacency, 4).matrices())
    for length, matrix in enumerate(powers, start=1):
        if (matrix != walks([adjacency] * length)).any():
            raise EvidenceFailed(f"length {length}: {matrix.tolist()}")
    sums = powers[1].sum(axis=1)
    require(not (sums == 1).all(), "the powers are probabilities after all")
    steps = [[Fraction(int(w), int(row.sum())) for w in row] for row in adjacency]
    chances = np.array(steps, object) @ np.array(steps, object)
    require((chances.sum(axis=1) == 1).all(), f"the rows of (D⁻¹A)² sum to {chances.sum(axis=1)}")
    return f"lengths 1 to 4 exact; rows of A² sum to {sums.tolist()}, those of (D⁻¹A)² to 1"


def sorts_are_products(run: Run) -> str:
    """Relations of a knowledge graph multiplied in the order of the sort, dense and sparse."""
    names = ("played", "characterIn", "genre")
    relations = {name: run.rng(name).integers(0, 2, (5, 5)) for name in names}
    sorts = ["played.characterIn.genre", "genre", "characterIn.played"]
    expected = [walks([relations[name] for name in sort.split(".")]) for sort in sorts]
    sparse = {name: scipy.sparse.csr_array(matrix) for name, matrix in relations.items()}
    for graphs in (relations, sparse):
        matrices = np.asarray(walk_basis(graphs, sorts).matrices())
        require(
            (matrices == np.stack(expected)).all(), f"the sorts {sorts} give {matrices.tolist()}"
        )
    film = np.zeros((3, 4, 4), np.int64)
    film[[0, 1, 2], [0, 1, 2], [1, 2, 3]] = 1  # Nimoy, Spock, Star Trek, science fiction
    matrix = walk_basis(dict(zip(names, film, strict=True)), sorts[:1]).matrices()[0]
    require(matrix[0, 3] == matrix.sum() == 1, f"the film's walk is {matrix.tolist()}")
    return f"{len(sorts)} sorts over five nodes, and the paper's film"


def size_of_grid_convolutions(run: Run) -> str:
    """rank of Φ as MN × PQ equals rank Θ, so two independent Θ_k need two matrices at least."""
    ranks = []
    for grid, sizes in (((3,), (2,)), ((5,), (3,)), ((3, 4), (3, 2))):
        shifts = cuboid_shifts(sizes, -1, [k // 2 + 1 for k in sizes])
        matrices = np.asarray(shift_basis(grid, shifts).matrices())
        for rank in range(1, min(len(shifts), 4) + 1):
            rng = run.rng(rank, *grid)
            theta = rng.integers(-9, 10, (len(shifts), rank)) @ rng.integers(-9, 10, (rank, 4))
            phi = np.einsum("kmn,kq->mnq", matrices, theta)
            size = exact_rank(phi.reshape(-1, 4))
            require(size == exact_rank(theta), f"grid {grid}, shifts {shifts}: size {size}")
            ranks.append(size)
        if spanned([matrices[0], matrices[1]]) != 2:
            raise EvidenceFailed(f"grid {grid}: one matrix serves the kernels e_1 and e_2")
    require(max(ranks) >= 2, "every parameter has rank one")
    return f"three grids: smallest sizes {ranks}, the ranks of Θ; e_1, e_2 are no multiples"


def reflections_forbid_shifts(run: Run) -> str:
    """What is made from the line alone commutes with its reflection; the shift by one does not.

    The Laplacian's polynomials do, as products of what does; exactly they are seen for degree one.
    """
    for nodes in (2, 3, 5):
        line = (shift_matrix((nodes,), (1,)) + shift_matrix((nodes,), (-1,))).astype(float)
        reflection = np.eye(nodes, dtype=np.int64)[::-1]
        bases = [gcn_basis(line), laplacian_basis(line), power_basis(line, nodes)]
        matrices = [
            matrix
            for basis in [*bases, chebyshev_basis(line, 1)]
            for matrix in np.asarray(basis.matrices())
        ]
        if any((matrix[::-1, ::-1] != matrix).any() for matrix in matrices):
            raise EvidenceFailed(f"{nodes} nodes: a matrix does not commute with the reflection")
        shift = shift_matrix((nodes,), (1,))
        if (shift[::-1, ::-1] != shift_matrix((nodes,), (-1,))).any():
            raise EvidenceFailed(f"{nodes} nodes: the reflected shift is another")
        if not (commutant_system(reflection[None]) @ shift.reshape(-1)).any():
            raise EvidenceFailed(f"{nodes} nodes: the shift commutes with the reflection")
    return "lines of 2, 3, 5 nodes: four kinds of matrices commute with it, A_1 does not"


CLAIM = Claim(
    id="A19.graph",
    source="Andreoli 2019, Section 2.2, Definition 2",
    verdict=Verdict.AMENDED,
    kinds=(Kind.IDENTITY,),
    evidence=(
        proved(
            "andreoli2019/graph_chebyshev.v",
            covers="T_0, …, T_K of aL + bI, a ≠ 0, span the same matrices as I, L, …, L^K for "
            "every square matrix L, over a field where 2 ≠ 0; not: (2) of the repair",
        ),
        proved(
            "andreoli2019/graph_gcn.v",
            covers="on an edge no factor takes the GCN's matrix to the normalised Laplacian, or "
            "back; L annihilates √D 1 where all degrees are positive, Â reproduces √D̃ 1 for "
            "weights A ≥ 0; not: isolated nodes",
        ),
        proved(
            "andreoli2019/graph_size.v",
            covers="the smallest size of a grid convolution of different shifts that occur is the "
            "rank of Θ; no convolution of one channel with matrices invariant under the reflection "
            "of all axes at once, of whatever size, is the shift by one node on an axis of two or "
            "more, if no axis is empty; not: other asymmetric kernels, which procedures give such "
            "matrices, one matrix for two kernels",
        ),
        proved(
            "andreoli2019/graph_walks.v",
            covers="products of 0-1 matrices of relations, and powers of a 0-1 matrix A, count "
            "walks, modulo p in a field of characteristic p; not: the probabilities of random "
            "walks",
        ),
        certified_identities("A19.graph", "polynomials and the GCN's matrix", "chebyshev", "gcn"),
        Evidence("GCN is not the Laplacian", Level.TESTED, gcn_is_not_the_laplacian),
        Evidence(
            "scipy's Laplacian",
            Level.TESTED,
            scipy_agrees,
            assumes="square roots and quotients are rounded correctly, here and in scipy",
        ),
        Evidence("Chebyshev polynomials", Level.TESTED, chebyshev_polynomials),
        Evidence("one class of polynomials", Level.TESTED, one_class_of_polynomials),
        Evidence("powers count walks", Level.TESTED, powers_count_walks),
        Evidence("sorts are products", Level.TESTED, sorts_are_products),
        Evidence("size of a grid convolution", Level.TESTED, size_of_grid_convolutions),
        Evidence("reflections forbid shifts", Level.TESTED, reflections_forbid_shifts, quick=False),
    ),
)
