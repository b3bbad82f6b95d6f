"""Proposition 1: in a basis, every tensor has exactly one parameter.

Claimed. If the fixed tensors of a mixed product form a basis of their whole space, every tensor is
obtained from exactly one parameter.
True. It is, for all shapes, and the parameter comes from the inverse of the basis, written as a
matrix; a linearly dependent family gives one tensor from many parameters.

Printed. "Let a be a tensor of shape 〈K〉S such that the family (a_k) be a basis of the space of
tensors of shape S (hence K = |S̄|). Then for any tensor Φ of shape ST there exists a unique tensor Θ
of shape 〈K〉T such that Φ = a∘Θ."

Verified. As printed; and the parameter is Θ_k = Σ_s a^*_ks Φ_s with the dual basis a^* = (Aᵀ)⁻¹, A
being a flattened to a matrix. The inverse does not depend on how S and T are flattened. A family
that is no basis has no such inverse: with a relation Σ c_k a_k = 0, Θ + c ⊗ t gives the same Φ for
every t.

Nothing to repair.

Proof. Flattened, Φ = a∘Θ reads Φ = AᵀΘ, with A square and of full rank, so Θ = (Aᵀ)⁻¹Φ is the one
solution. Another flattening of S multiplies A by a permutation matrix P from the right and Φ by Pᵀ
from the left, and ((AP)ᵀ)⁻¹PᵀΦ = (Aᵀ)⁻¹(Pᵀ)⁻¹PᵀΦ; one of T permutes the columns of Φ and Θ alike. ∎
"""

import math
from fractions import Fraction

import flint
import jax.numpy as jnp
import numpy as np

from convattn.operators.roundoff import gamma, unit_roundoff
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict, require
from convattn_ledger.evidence import certified_identities, proved
from convattn_ledger.structures.inversion import dual_basis, invert_mixed_product, linear_relation
from convattn_ledger.structures.mixed_product import mixed_product

SHAPES = (((), (2,)), ((3,), ()), ((4,), (2, 3)), ((2, 3), (4,)), ((2, 2, 2), (3, 2)))


def unimodular(rng: np.random.Generator, size: int) -> np.ndarray:
    """A product of two triangular integer matrices with ones on the diagonal."""
    lower, upper = (rng.integers(-2, 3, (size, size)) for _ in range(2))
    unit = np.eye(size, dtype=np.int64)
    return (np.tril(lower, -1) + unit) @ (np.triu(upper, 1) + unit)


def draw_family(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """A basis of fractions: a unimodular matrix with its rows scaled by fractions."""
    size = math.prod(shape)
    scales = [Fraction(int(p), int(q)) for p, q in rng.integers(1, 9, (size, 2))]
    rows = unimodular(rng, size).astype(object) * np.array(scales, object)[:, None]
    return rows.reshape(size, *shape)


def inverse(run: Run) -> str:
    """Θ ↦ a∘Θ and Φ ↦ Θ undo each other, both ways, and flint's solver finds the same Θ."""
    for shape, rest in SHAPES:
        rng = run.rng(str(shape), str(rest))
        family = draw_family(rng, shape)
        size = len(family)
        dual = np.asarray(dual_basis(family)).reshape(size, -1)
        pairing = dual @ family.reshape(size, -1).T
        if (pairing != np.eye(size, dtype=int)).any():
            raise EvidenceFailed(f"S = {shape}: Σ_s a*_ks a_ls = {pairing.tolist()}, not [k = l]")
        phi = rng.integers(-9, 10, (*shape, *rest)).astype(object)
        theta = np.asarray(invert_mixed_product(family, phi))
        if (np.asarray(mixed_product(family, theta)) != phi).any():
            raise EvidenceFailed(f"S = {shape}, T = {rest}: a∘Θ is not Φ")
        chosen = rng.integers(-9, 10, (size, *rest)).astype(object)
        again = np.asarray(invert_mixed_product(family, mixed_product(family, chosen)))
        require((again == chosen).all(), f"S = {shape}, T = {rest}: another Θ gives the same Φ")
        columns = phi.reshape(size, -1)
        system = flint.fmpq_mat(
            size, size, [flint.fmpq(f.numerator, f.denominator) for f in flat(family, size).T.flat]
        )
        right = flint.fmpq_mat(size, columns.shape[1], [flint.fmpq(int(n)) for n in columns.flat])
        solved = system.solve(right)
        for row, column in np.ndindex(columns.shape):
            entry = solved[row, column]
            if theta.reshape(columns.shape)[row, column] != Fraction(int(entry.p), int(entry.q)):
                raise EvidenceFailed(f"S = {shape}, T = {rest}: flint solves to {entry}")
    return f"{len(SHAPES)} pairs of shapes up to K = 8, both ways and as flint solves it"


def flat(family: np.ndarray, size: int) -> np.ndarray:
    """The family as a matrix."""
    return family.reshape(size, -1)


def no_basis(run: Run) -> str:
    """Too few, too many and dependent families are refused; the relation shows Θ is not unique."""
    rng = run.rng("dependent")
    family = draw_family(rng, (2, 3))
    refused = 0
    for wrong, reason in (
        (family[:5], "cannot span"),
        (np.concatenate([family, family[:1]]), "dependent"),
        (np.concatenate([family[:5], [family[1] - 2 * family[3]]]), "= 0"),
    ):
        try:
            dual_basis(wrong)
        except ValueError as error:
            if reason not in str(error):
                raise EvidenceFailed(f"refused for another reason: {error}") from error
            refused += 1
    require(refused == 3, f"only {refused} of 3 families that are no basis were refused")
    dependent = np.concatenate([family[:5], [family[1] - 2 * family[3]]])
    relation = linear_relation(dependent.reshape(6, 6))
    require(relation is not None, "no relation was found among dependent members")
    c = np.array(relation, object)
    theta, moved = rng.integers(-9, 10, (6, 2)).astype(object), rng.integers(1, 9, 2).astype(object)
    first = np.asarray(mixed_product(dependent, theta))
    second = np.asarray(mixed_product(dependent, theta + np.multiply.outer(c, moved)))
    if not c.any() or (first != second).any():
        raise EvidenceFailed(f"the relation {relation} does not leave Φ alone")
    return f"3 families refused; {relation} gives two parameters of one Φ"


def in_floating_point(run: Run) -> str:
    """The dual basis in float64 and float32, against the exact one.

    Gaussian elimination with partial pivoting solves (B + E)x = e with |E| ≤ γ_3n |L||U| (Higham,
    Theorem 9.4), and |L| ≤ 1, |U| ≤ 2^(n-1) max|B|, so |E| ≤ c = γ_3n·n·2^(n-1)·max|B| entry by
    entry and |x̂ - x| ≤ c·|B⁻¹|·1·‖x̂‖_1. With ρ = c·Σ|B⁻¹| < 1, ‖x̂‖_1 ≤ ‖x‖_1/(1 - ρ).
    """
    summary = []
    for dtype in ("float64", "float32"):
        matrix = run.rng("floating").integers(-3, 4, (4, 4)) + 7 * np.eye(4, dtype=np.int64)
        exact = np.asarray(dual_basis(matrix)).astype(np.float64)
        inverse = np.abs(exact)  # of Bᵀ, so transposed; only its sums are used
        size = len(matrix)
        c = gamma(3 * size, unit_roundoff(dtype)) * size * 2 ** (size - 1) * np.abs(matrix).max()
        growth = c * inverse.sum()
        require(growth < 1, f"{dtype}: no bound, ρ = {growth}")
        norms = inverse.sum(axis=0) / (1 - growth)  # of the columns of (Aᵀ)⁻¹
        bound = c * inverse.sum(axis=1, keepdims=True) * norms
        bound = bound * (1 + 2.0**-20) + 2.0**-53 * inverse  # `exact` is rounded itself
        result = np.asarray(dual_basis(jnp.asarray(matrix, dtype)), np.float64)
        error = np.abs(result - exact)
        if not (error <= bound).all():
            raise EvidenceFailed(f"{dtype}: off by {error.max():.1e}, bound {bound.min():.1e}")
        summary.append(f"{dtype} {error.max():.1e} ≤ {bound.max():.1e}")
    return "K = 4: " + ", ".join(summary)


CLAIM = Claim(
    id="A19.prop1",
    source="Andreoli 2019, Proposition 1",
    verdict=Verdict.HOLDS,
    kinds=(Kind.IDENTITY,),
    evidence=(
        proved(
            "andreoli2019/prop1.v",
            covers="the unique parameter and its formula; not: families that are no basis",
        ),
        certified_identities("A19.prop1", "inverse", "inverse"),
        Evidence("the inverse, exactly", Level.TESTED, inverse),
        Evidence("families that are no basis", Level.TESTED, no_basis),
        Evidence(
            "in floating point",
            Level.BOUNDED,
            in_floating_point,
            assumes="inverses are taken by elimination with partial pivoting",
        ),
    ),
)
