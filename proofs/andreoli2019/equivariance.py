"""Translation equivariance and locality: what the shift matrices of a grid are exactly.

Claimed. On a grid the shift matrices capture exactly the convolutions that are
translation-equivariant and local.
True. They do if equivariance means that the action between two nodes depends on their difference
alone; in the usual sense, commuting with shifts, they do on a torus but not on a bare grid.

Printed. Section 2.1: the shift matrices capture "exactly the conditions to ensure that the
resulting convolutions satisfy two a priori constraints: translation equivariance and locality".
"Translation equivariance means that the action of m on n should be the same as the action of m′ on
n′ where m′, n′ are obtained from m, n by the same translation"; locality constrains the shifts to
"a small neighbourhood of the null vector".

Verified. On every finite grid, and with any channels, the action Φ_mn of m on n depends on n - m
alone iff Φ lies in the span of the shift matrices, Φ = Σ_d A_d ⊗ Θ_d, in exactly one way if d runs
over the shifts that occur: Π(2n_i - 1) on the bare grid, Πn_i on a torus. It is zero for all n - m
outside a set iff Θ_d = 0 for d outside. On a torus this is the same as commuting with all
translations, and those compose: A_a A_b = A_(a+b). On a bare grid it is not: for every grid, the
only matrices that commute with the truncated shifts by one node on each axis are the multiples of
the identity.

Repair. The definition quoted is equipollence, Φ_mn = Φ_m′n′. The name stands in general for
commuting with translations, and for that the statement holds on a torus and on Z^d only. On the
bare grid, Definition 1's own, A_1 and A_-1 do not commute with each other: on two nodes
A_1 A_-1 = diag(1, 0) and A_-1 A_1 = diag(0, 1). So composites of grid convolutions leave the class:
diag(1, 0) depends on where the pair is, not on n - m = 0 alone. On a line A_a A_b stays in it, as
A_(a+b) or zero, iff the detour over m + a stays in the grid for all pairs with n - m = a + b or for
none. What remains is equivariance away from the border: A_a A_b x = A_b A_a x for x that
vanishes within |a| + |b| of it. Commuting with A_1 alone is not enough either: on n nodes it leaves
the n-dimensional span of A_0, A_1, …, A_(n-1), the causal ones. And eq. 6 is stronger than
locality: a dilated cuboid has gaps.

Errata.
- Section 2.1 | translation equivariance gives shift matrices | constant along diagonals; on a bare
  grid commuting with shifts is stronger

Proof. *The idea:* the shift matrices are the indicators of the diagonals, and on a bare grid two of
them generate all matrices.

The matrices A_d have disjoint supports {(m, n): n - m = d} that cover all pairs, so Φ is constant
on them iff Φ = Σ_d c_d A_d, with c_d its value there; entry by entry in the channels.

*Torus:* (A_-e Φ A_e)_mn = Φ_(m-e, n-e), so Φ A_e = A_e Φ for all e iff Φ_mn is the same at all
pairs with the same difference.

*Bare grid,* one axis of n nodes: let J = A_1, Jᵀ = A_-1. J^(n-1) has a single one, at (1, n), and

    E_ij = (Jᵀ)^(i-1) J^(n-1) (Jᵀ)^(n-j)

is the matrix unit at (i, j). So products of J and Jᵀ span all matrices of the axis, and those of
all axes the tensor product, all matrices; what commutes with all matrices is a multiple of the
identity.

On two nodes A_1 A_-1 = E_11. If ΦJ = JΦ then Φ is a polynomial in J, as J is a single Jordan block.
∎
"""

from itertools import product

import numpy as np

from convattn.bounds.flattened_kernel import exact_rank
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict, require
from convattn_ledger.evidence import certified, proved
from convattn_ledger.structures import cuboid_shifts
from convattn_ledger.structures.shift_matrices import (
    all_shifts,
    commutant_system,
    shift_matrix,
    unit_shifts,
)

LINES = ((1,), (2,), (3,), (5,))
GRIDS = (*LINES, (2, 3), (2, 1, 2))


def matrices_of(grid: tuple[int, ...], *, torus: bool = False) -> tuple[list, np.ndarray]:
    """The shifts that occur on a grid, and their matrices."""
    shifts = all_shifts(grid, torus=torus)
    return shifts, np.stack([shift_matrix(grid, shift, torus=torus) for shift in shifts])


def commutant_dimension(matrices: np.ndarray) -> int:
    """The dimension of {Φ : ΦA = AΦ for all A given}, exactly."""
    return matrices.shape[1] ** 2 - exact_rank(commutant_system(matrices))


def in_span(matrix: np.ndarray, matrices: np.ndarray) -> bool:
    """Whether a matrix is a combination of these, exactly."""
    rows = matrices.reshape(len(matrices), -1)
    return exact_rank(np.vstack([rows, matrix.reshape(1, -1)])) == exact_rank(rows)


def unit_matrices(grid: tuple[int, ...], *, torus: bool = False) -> np.ndarray:
    """The shifts by one node on each axis, both ways."""
    return np.stack([shift_matrix(grid, d, torus=torus) for d in unit_shifts(len(grid))])


def differences_and_span(run: Run) -> str:
    """A function of n - m is a combination; one entry changed, where it has company, is none."""
    for grid, torus in product(GRIDS, (False, True)):
        shifts, matrices = matrices_of(grid, torus=torus)
        nodes = list(product(*map(range, grid)))
        theta = run.rng(*grid).integers(-9, 10, (len(shifts), 2, 3))
        value = dict(zip(shifts, theta, strict=True))

        def difference(m, n, grid=grid, torus=torus):
            steps = (b - a for a, b in zip(m, n, strict=True))
            return tuple(s % side if torus else s for s, side in zip(steps, grid, strict=True))

        phi = np.array([[value[difference(m, n)] for n in nodes] for m in nodes])
        if (phi != np.einsum("kmn,kpq->mnpq", matrices, theta)).any():
            raise EvidenceFailed(f"grid {grid}, torus {torus}: Σ A_d ⊗ Θ_d is another tensor")
        for shift, matrix in zip(shifts, matrices, strict=True):
            entries = np.argwhere(matrix)
            changed = phi[:, :, 0, 0].copy()
            changed[tuple(entries[0])] += 1
            if in_span(changed, matrices) != (len(entries) == 1):
                raise EvidenceFailed(
                    f"grid {grid}, torus {torus}: another value at one of {len(entries)} pairs "
                    f"with n - m = {shift} and it is in the span: {len(entries) > 1}"
                )
    return f"{len(GRIDS)} grids and tori: constant on n - m iff in the span"


def equipollent_sums(run: Run) -> str:
    """Summing the unit matrices a_h of equipollent pairs yields a shift matrix, as printed."""
    for grid in GRIDS:
        shifts, matrices = matrices_of(grid)
        nodes = list(product(*map(range, grid)))
        sums = {shift: np.zeros((len(nodes),) * 2, np.int64) for shift in shifts}
        for (i, m), (j, n) in product(enumerate(nodes), enumerate(nodes)):
            sums[tuple(b - a for a, b in zip(m, n, strict=True))][i, j] += 1
        if any((sums[d] != a).any() for d, a in zip(shifts, matrices, strict=True)):
            raise EvidenceFailed(f"grid {grid}: the sums are other matrices")
    return f"{len(GRIDS)} grids: the classes of equipollent pairs are the shift matrices"


def bare_commutants(run: Run) -> str:
    """The dimension of the commutant on bare grids, by exact elimination; it holds the identity."""
    dimensions = {grid: commutant_dimension(unit_matrices(grid)) for grid in GRIDS}
    require(set(dimensions.values()) == {1}, f"dimensions {dimensions}")
    one_way = {grid: commutant_dimension(unit_matrices(grid)[:1]) for grid in LINES}
    if any(dimension != grid[0] for grid, dimension in one_way.items()):
        raise EvidenceFailed(f"dimensions {one_way} for the shift by +1 alone")
    return f"dimension 1 on {', '.join(map(str, GRIDS))}; with A_1 alone n on a line of n nodes"


def torus_commutants(run: Run) -> str:
    """On tori the commutant has as many dimensions as shifts, which commute: it is their span."""
    for grid in GRIDS:
        shifts, matrices = matrices_of(grid, torus=True)
        dimension = commutant_dimension(unit_matrices(grid, torus=True))
        if dimension != len(shifts):
            raise EvidenceFailed(f"torus {grid}: dimension {dimension}, {len(shifts)} shifts")
        for (a, left), (b, right) in product(zip(shifts, matrices, strict=True), repeat=2):
            total = tuple((i + j) % n for i, j, n in zip(a, b, grid, strict=True))
            if (left @ right != matrices[shifts.index(total)]).any():
                raise EvidenceFailed(f"torus {grid}: A_{a} A_{b} is not A_{total}")
    return f"{len(GRIDS)} tori: the commutant is the span of the shifts, and A_a A_b = A_(a+b)"


def units_are_products(run: Run) -> str:
    """The proof's E_ij = (Jᵀ)^(i-1) J^(n-1) (Jᵀ)^(n-j), for every i, j and n ≤ 7."""
    power = np.linalg.matrix_power
    for nodes in range(1, 8):
        forth, back = shift_matrix((nodes,), (1,)), shift_matrix((nodes,), (-1,))
        for i, j in product(range(nodes), range(nodes)):
            unit = power(back, i) @ power(forth, nodes - 1) @ power(back, nodes - 1 - j)
            if unit[i, j] != 1 or unit.sum() != 1:
                raise EvidenceFailed(f"{nodes} nodes: the product for ({i}, {j}) is {unit}")
    return "n = 1, …, 7: every matrix unit is a product of A_1 and A_-1"


def composites(run: Run) -> str:
    """A_a A_b on bare lines: a shift matrix or zero iff no pair n - m = a + b is cut off."""
    example = shift_matrix((2,), (1,)) @ shift_matrix((2,), (-1,))
    if (example != np.diag([1, 0])).any() or in_span(example, matrices_of((2,))[1]):
        raise EvidenceFailed(f"A_1 A_-1 on two nodes is {example.tolist()}")
    leaving = pairs = 0
    for (nodes,) in LINES:
        shifts, matrices = matrices_of((nodes,))
        for (a,), (b,) in product(shifts, repeat=2):
            composite = shift_matrix((nodes,), (a,)) @ shift_matrix((nodes,), (b,))
            starts = [m for m in range(nodes) if 0 <= m + a + b < nodes]
            through = [m for m in starts if 0 <= m + a < nodes]
            stays = in_span(composite, matrices)
            if stays != (not through or through == starts):
                raise EvidenceFailed(f"{nodes} nodes: A_{a} A_{b} in the class: {stays}")
            if stays and (composite != (shift_matrix((nodes,), (a + b,)) if through else 0)).any():
                raise EvidenceFailed(f"{nodes} nodes: A_{a} A_{b} is another shift matrix")
            leaving, pairs = leaving + (not stays), pairs + 1
    return f"A_1 A_-1 = diag(1, 0); {leaving} of {pairs} composites on lines leave the class"


def away_from_the_border(run: Run) -> str:
    """Shifts commute on signals that vanish within |a| + |b| of the border, and not at it."""
    nodes, reach, differ = 13, 2, 0
    shifts = range(-reach, reach + 1)
    for a, b in product(shifts, shifts):
        left, right = (shift_matrix((nodes,), (d,)).T for d in (a, b))
        margin = abs(a) + abs(b)
        interior = np.zeros((nodes, 3), np.int64)
        middle = slice(margin, nodes - margin)
        interior[middle] = run.rng(a, b).integers(1, 10, interior[middle].shape)
        if (left @ right @ interior != right @ left @ interior).any():
            raise EvidenceFailed(f"A_{a} and A_{b} differ on {interior.tolist()}")
        differ += bool((left @ right != right @ left).any())
    require(differ, "all shifts commute at the border, too")
    return f"{len(shifts) ** 2} pairs commute on inner signals; {differ} do not at the border"


def locality(run: Run) -> str:
    """Φ_mn = 0 for |n - m| > r iff no shift is longer; and a dilated cuboid has gaps within r."""
    for grid in ((5,), (3, 4)):
        shifts, matrices = matrices_of(grid)
        theta = run.rng(*grid).integers(1, 9, len(shifts))
        lengths = np.array([max(map(abs, shift)) for shift in shifts])
        nodes = np.array(list(product(*map(range, grid))))
        distance = np.abs(nodes[None] - nodes[:, None]).max(-1)
        for radius in range(max(grid)):
            local = np.einsum("k,kmn->mn", theta * (lengths <= radius), matrices)
            if ((local != 0) != (distance <= radius)).any():
                raise EvidenceFailed(f"grid {grid}, radius {radius}: another support")
    dilated = {shift[0] for shift in cuboid_shifts(3, 2, -4)}
    require(dilated == {-2, 0, 2}, f"the cuboid K = 3, δ = 2, ε = -4 is {dilated}")
    return "a bound on the shifts is a bound on the support; eq. 6 with δ = 2 leaves out ±1"


CLAIM = Claim(
    id="A19.equivariance",
    source="Andreoli 2019, Section 2.1, after eq. 6",
    verdict=Verdict.AMENDED,
    kinds=(Kind.IDENTITY,),
    evidence=(
        proved(
            "andreoli2019/equivariance.v",
            covers="on a bare grid Φ depends on n - m alone iff it is a combination of the shift "
            "matrices of the shifts that occur, and then of one only, whose parameter is zero "
            "outside a set of shifts iff Φ is; not: how many shifts occur, composites",
        ),
        proved(
            "andreoli2019/equivariance_bare.v",
            covers="on a bare grid only multiples of the identity, one for each channel, commute "
            "with the truncated shifts by one node, both ways on every axis",
        ),
        proved(
            "andreoli2019/equivariance_torus.v",
            covers="on a torus commuting with translations is depending on n - m alone; A_a "
            "A_b = A_(a+b)",
        ),
        certified("A19.equivariance", name="what commutes with the shifts"),
        Evidence("n - m alone, and the span", Level.TESTED, differences_and_span),
        Evidence("equipollent pairs", Level.TESTED, equipollent_sums),
        Evidence("commutants of bare grids", Level.TESTED, bare_commutants),
        Evidence("commutants of tori", Level.TESTED, torus_commutants),
        Evidence("matrix units are products", Level.TESTED, units_are_products),
        Evidence("composites leave the class", Level.TESTED, composites),
        Evidence("away from the border", Level.TESTED, away_from_the_border),
        Evidence("locality", Level.TESTED, locality),
    ),
)
