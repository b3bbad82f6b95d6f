"""Proposition 3: the composition of two convolutions is a convolution.

Claimed. Two convolutions in a row are again a convolution, whose matrices and parameters are the
products of theirs.
True. They are, whatever the matrices; but two zero-padded grid convolutions are in general the one
with the composite kernel only away from the border, while on a torus they always are.

Printed. "Given two convolutions of size K', K'', basis A', A'', parameter Θ', Θ'', respectively,
their composition, when the dimensions match [...], is a convolution of size K, [basis A], parameter
Θ where K = K'K'', A_ω(k',k'') = A'_k' A''_k'', Θ_ω(k',k'') = Θ'_k' Θ''_k''".

Verified. As printed. To add: the class of grid convolutions (Definition 1) is not closed. On a
finite grid A_d A_e is A_(d+e) less the nodes whose way leads outside: A_1 A_-1 = diag(1, 0) for two
nodes, which lies outside even the span of the shift matrices. A_d A_e = A_(d+e) on the bare grid
iff A_(d+e) = 0 or on each axis no node in between is lost, for instance if d and e do not point in
opposite ways on any axis; on a torus always. So two zero-padded convolutions in a row are the
convolution with the composite kernel only away from the border.

Nothing to repair.

Proof. Put eq. 4 into itself: Σ_k'' A''ᵀ(Σ_k' A'ᵀ x Θ')Θ'' = Σ_k'k'' (A'A'')ᵀ x (Θ'Θ''). (A_d
A_e)_mn = Σ_l [l - m = d][n - l = e] = [n - m = d + e][m + d in the grid]. Shift matrices are
constant along diagonals, and so is their span; diag(1, 0) is not. ∎
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from convattn.bounds.flattened_kernel import exact_rank
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict, require
from convattn_ledger.evidence import certified_identities, proved
from convattn_ledger.structures import (
    ShiftBasis,
    StructuredConvolution,
    compose,
    compose_bases,
    dense_basis,
    shift_basis,
    sparse_basis,
)


def bases(rng: np.random.Generator) -> dict[str, tuple]:
    """A first and a second basis of each pair of types; the second takes what the first gives."""

    def draw(*shape: int) -> np.ndarray:
        return rng.integers(-3, 4, shape) * (rng.random(shape) < 0.5)

    grid = shift_basis((3, 2), [(0, 0), (1, -1), (-2, 0)])
    aligned = shift_basis((3, 2), [(0, 0), (1, 0)])
    return {
        "dense, dense": (dense_basis(draw(2, 4, 6)), dense_basis(draw(3, 6, 5)), "DenseBasis"),
        "dense, shift": (dense_basis(draw(2, 4, 6)), grid, "DenseBasis"),
        "sparse, sparse": (
            sparse_basis(draw(2, 4, 6)),
            sparse_basis(draw(3, 6, 5)),
            "SparseBasis",
        ),
        "sparse, shift": (sparse_basis(draw(2, 4, 6)), grid, "SparseBasis"),
        "shift, shift": (grid, grid, "SparseBasis"),
        "aligned shifts": (aligned, aligned, "ShiftBasis"),
    }


def written_out(basis: Any) -> np.ndarray:
    """The matrices, from the coordinates of their entries."""
    if hasattr(basis, "array"):
        return np.asarray(basis.array)
    dense = np.zeros((basis.size, basis.inputs, basis.outputs), np.int64)
    if hasattr(basis, "values"):
        indices = (np.asarray(array) for array in (basis.bases, basis.keys, basis.queries))
        dense[tuple(indices)] = np.asarray(basis.values)
    else:
        dense[basis.entries()] = 1
    return dense


def eq4(x: np.ndarray, matrices: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """Σ_k A_kᵀ x Θ_k."""
    return sum(a.T @ x @ t for a, t in zip(matrices, theta, strict=True))


def composition(run: Run) -> str:
    """Eq. 4 twice against the composite, and K, A and Θ of the composite, in integers."""
    names = []
    for name, (first, second, kind) in bases(run.rng("bases")).items():
        rng = run.rng(name)
        one = StructuredConvolution(first, rng.integers(-5, 6, (first.size, 3, 2)))
        two = StructuredConvolution(second, rng.integers(-5, 6, (second.size, 2, 4)))
        x = rng.integers(-5, 6, (2, first.inputs, 3))
        both = compose(one, two)
        left, right, product = (written_out(basis) for basis in (first, second, both.basis))
        expected = eq4(eq4(x, left, one.theta), right, two.theta)
        if (np.asarray(jax.jit(StructuredConvolution.__call__)(both, x)) != expected).any():
            raise EvidenceFailed(f"{name}: the composite differs from one after the other")
        if both.basis.size != first.size * second.size or type(both.basis).__name__ != kind:
            raise EvidenceFailed(f"{name}: {type(both.basis).__name__} of size {both.basis.size}")
        for i in range(first.size):
            for j in range(second.size):
                number = i * second.size + j
                if (product[number] != left[i] @ right[j]).any():
                    raise EvidenceFailed(f"{name}: A_{number} is not A'_{i} A''_{j}")
                if (both.theta[number] != one.theta[i] @ two.theta[j]).any():
                    raise EvidenceFailed(f"{name}: Θ_{number} is not Θ'_{i} Θ''_{j}")
        names.append(name)
    return f"{len(names)} pairs of bases: equal in integers, A and Θ multiply pair by pair"


def shift_matrix(nodes: int, d: int, torus: bool = False) -> np.ndarray:
    """Definition 1 on a sequence, and on a ring of nodes."""
    return np.array(
        [
            [int((n - m - d) % nodes == 0 if torus else n - m == d) for n in range(nodes)]
            for m in range(nodes)
        ]
    )


def stays_a_shift(nodes: int, d: int, e: int) -> bool:
    """The condition of the docstring: nothing to lose, or nothing lost."""
    nodes_inside = [m for m in range(nodes) if 0 <= m + d + e < nodes]
    return all(0 <= m + d < nodes for m in nodes_inside)


def composites_of_shifts(run: Run) -> str:
    """All pairs of shifts of up to five nodes: which products are shifts, which leave the span."""
    pairs = leaving = 0
    for nodes in range(1, 6):
        shifts = range(-nodes, nodes + 1)
        span = np.stack([shift_matrix(nodes, d).reshape(-1) for d in shifts])
        for d in shifts:
            for e in shifts:
                pairs += 1
                exact = shift_matrix(nodes, d) @ shift_matrix(nodes, e)
                same = (exact == shift_matrix(nodes, d + e)).all()
                basis = compose_bases(shift_basis(nodes, [d]), shift_basis(nodes, [e]))
                if (written_out(basis)[0] != exact).any():
                    raise EvidenceFailed(f"{nodes} nodes: the composite of {d} and {e} is wrong")
                if not same == stays_a_shift(nodes, d, e) == isinstance(basis, ShiftBasis):
                    raise EvidenceFailed(f"{nodes} nodes: A_{d} A_{e} = A_{d + e} is {same}")
                if d * e >= 0 and not same:
                    raise EvidenceFailed(f"{nodes} nodes: {d}, {e} point the same way and lose one")
                inside = exact_rank(np.concatenate([span, exact.reshape(1, -1)])) == exact_rank(
                    span
                )
                if not same:
                    leaving += 1
                    if exact.any() and inside:
                        raise EvidenceFailed(f"{nodes} nodes: A_{d} A_{e} is in the span after all")
                composite = shift_matrix(nodes, d, True) @ shift_matrix(nodes, e, True)
                if (composite != shift_matrix(nodes, d + e, True)).any():
                    raise EvidenceFailed(f"ring of {nodes}: A_{d} A_{e} is not A_{d + e}")
    two = shift_matrix(2, 1) @ shift_matrix(2, -1)
    require(two.tolist() == [[1, 0], [0, 0]], f"A_1 A_-1 = {two.tolist()} on two nodes")
    return f"{pairs} pairs, {leaving} leave the class; A_1 A_-1 = diag(1, 0); none on the torus"


def two_zero_padded_convolutions(run: Run) -> str:
    """XLA: one after the other is the composite, and the kernels' convolution inside only."""
    rng = run.rng("kernels")
    x = rng.integers(-9, 10, (2, 7, 3))
    kernels = rng.integers(-9, 10, (3, 3, 2)), rng.integers(-9, 10, (3, 2, 4))
    taps = (-1, 0, 1)  # δ = key - query, so that d = -δ
    one, two = (StructuredConvolution(shift_basis(7, [1, 0, -1]), kernel) for kernel in kernels)
    wide = np.zeros((5, 3, 4), np.int64)
    for i, a in enumerate(taps):
        for j, b in enumerate(taps):
            wide[a + b + 2] += kernels[0][i] @ kernels[1][j]

    def convolved(images: np.ndarray, kernel: np.ndarray) -> np.ndarray:
        operands = (jnp.asarray(images, jnp.float64), jnp.asarray(kernel, jnp.float64))
        return np.asarray(
            lax.conv_general_dilated(
                *operands,
                (1,),
                "SAME",
                dimension_numbers=("NWC", "WIO", "NWC"),
                precision=lax.Precision.HIGHEST,
            )
        )

    expected = convolved(convolved(x, kernels[0]), kernels[1])
    if (np.asarray(compose(one, two)(x)) != expected).any():
        raise EvidenceFailed("the composite differs from two of XLA's convolutions")
    differs = (convolved(x, wide) != expected).any(axis=(0, 2))
    if np.flatnonzero(differs).tolist() != [0, 6]:
        raise EvidenceFailed(f"the kernel of width 5 differs at {np.flatnonzero(differs).tolist()}")
    return "two 3-tap convolutions on 7 nodes: as XLA; the 5-tap kernel differs at nodes 0 and 6"


CLAIM = Claim(
    id="A19.prop3",
    source="Andreoli 2019, Proposition 3",
    verdict=Verdict.HOLDS,
    kinds=(Kind.IDENTITY,),
    evidence=(
        proved("andreoli2019/prop3.v", covers="the composition of two convolutions"),
        proved(
            "andreoli2019/prop3_bare.v",
            covers="grid convolutions of one channel are not closed on a bare grid: A_e A_-e for e "
            "one node on an axis of two or more, if no axis is empty; not: when A_d A_e = A_(d+e), "
            "tori, what holds away from the border",
        ),
        certified_identities(
            "A19.prop3",
            "composition, composite on the bare grid",
            "composition",
            "bare_grid_composite",
        ),
        Evidence("one after the other", Level.TESTED, composition, quick=False),
        Evidence("composites of shifts", Level.TESTED, composites_of_shifts),
        Evidence("two zero-padded convolutions", Level.TESTED, two_zero_padded_convolutions),
    ),
)
