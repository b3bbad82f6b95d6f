"""The mixed product and its rank.

Claimed. The rank of a mixed product, a sum of tensor products, is at most the sum of the products
of the ranks.
True. It is, for all shapes, by a decomposition that is written down; matrices in general position
reach the bound, but where terms cancel the rank is smaller.

Printed. For a of shape 〈K〉S and b of shape 〈K〉T, a∘b = Σ_k a_k ⊗ b_k (eq. 1), and rank(a∘b) ≤
Σ_k rank(a_k) rank(b_k).

Verified. As printed, for every K and all shapes, empty ones too. The decomposition with that many
terms is written down, not only shown to exist. The bound is attained by matrices in general
position; it is not attained where terms cancel, so it is no equality: a_1 = a_2 and b_1 = -b_2
give a∘b = 0.

Nothing to repair.

Proof. *The idea:* ⊗ is bilinear.

Let a_k = Σ_r u_kr and b_k = Σ_s v_ks with rank(a_k) and rank(b_k) outer products of vectors. So
a∘b = Σ_k Σ_r Σ_s u_kr ⊗ v_ks, and u_kr ⊗ v_ks is an outer product of |S| + |T| vectors.

*Attained:* let S and T have length two and group the first axes of S and T and the second ones. a_k
⊗ b_k becomes the Kronecker product of the two matrices, of rank rank(a_k) rank(b_k); if the row
spaces of different k are independent, and the column spaces, the ranks add up. The rank of a tensor
is at least that of any of its matricisations. ∎
"""

from itertools import pairwise, product

import numpy as np

from convattn.bounds.flattened_kernel import exact_rank
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict, require
from convattn_ledger.evidence import certified_identities, proved
from convattn_ledger.structures.mixed_product import mixed_product

SHAPES = ((), (3,), (2, 3), (2, 1, 4))


def outer_product(vectors: list[np.ndarray]) -> np.ndarray:
    """The outer product of vectors, which is 1 for none."""
    result = np.array(1, object)
    for vector in vectors:
        result = np.multiply.outer(result, vector)
    return result


def rank_one_terms(a: list[list[np.ndarray]], b: list[list[np.ndarray]]) -> list[np.ndarray]:
    """The terms u_kr ⊗ v_ks of the proof: for each axis of S and T a matrix, a row for each term.

    `a` holds for each k the terms of a_k in this form, and `b` those of b_k.
    """
    joined = []
    for left, right in zip(a, b, strict=True):
        rows, columns = len(left[0]), len(right[0])
        joined.append(
            [np.repeat(factor, columns, axis=0) for factor in left]
            + [np.tile(factor, (rows, 1)) for factor in right]
        )
    return [np.concatenate(axis) for axis in zip(*joined, strict=True)]


def sum_of_terms(factors: list[np.ndarray]) -> np.ndarray:
    """The tensor whose terms are the outer products of row r of every factor."""
    return sum(outer_product(list(rows)) for rows in zip(*factors, strict=True))


def terms_of_the_proof(run: Run) -> str:
    """Σ_k R_k Q_k outer products that sum to a∘b, in integers, for sixteen pairs of shapes."""
    most = 0
    for first, second in product(SHAPES, SHAPES):
        rng = run.rng(str(first), str(second))
        size = int(rng.integers(1, 5))
        counts = [(int(rng.integers(1, 4)), int(rng.integers(1, 4))) for _ in range(size)]

        def draw(shape: tuple[int, ...], rows: int, rng: np.random.Generator = rng) -> list:
            return [rng.integers(-9, 10, (rows, n)).astype(object) for n in shape]

        a = [draw(first, left) for left, _ in counts]
        b = [draw(second, right) for _, right in counts]
        tensors = [
            np.stack(
                [
                    np.asarray(
                        sum(outer_product([axis[r] for axis in terms]) for r in range(rows)), object
                    )
                    for terms, rows in zip(family, number, strict=True)
                ]
            )
            for family, number in zip((a, b), zip(*counts, strict=True), strict=True)
        ]
        expected = sum(np.multiply.outer(left, right) for left, right in zip(*tensors, strict=True))
        if (np.asarray(mixed_product(*tensors)) != expected).any():
            raise EvidenceFailed(f"S = {first}, T = {second}: eq. 1 is not what is computed")
        if not first or not second:
            continue  # a scalar's decomposition has no axes to hold its terms
        factors = rank_one_terms(a, b)
        if {len(factor) for factor in factors} != {sum(left * right for left, right in counts)}:
            raise EvidenceFailed(f"{[len(factor) for factor in factors]} terms for ranks {counts}")
        if (np.asarray(sum_of_terms(factors)) != expected).any():
            raise EvidenceFailed(f"S = {first}, T = {second}: the terms do not sum to a∘b")
        most = max(most, len(factors[0]))
    return f"{len(SHAPES) ** 2} pairs of shapes equal, 9 decomposed, with up to {most} terms"


def matrix_of_rank(rng: np.random.Generator, rows: slice, columns: slice, side: int) -> np.ndarray:
    """A matrix of independent rows on a diagonal block, turned by unimodular matrices there."""
    size = rows.stop - rows.start
    block = np.tril(rng.integers(-3, 4, (size, size)), -1) + np.eye(size, dtype=np.int64)
    matrix = np.zeros((side, side), np.int64)
    matrix[rows, columns] = block @ (
        np.triu(rng.integers(-3, 4, (size, size)), 1) + np.eye(size, dtype=np.int64)
    )
    return matrix


def ranks(run: Run) -> str:
    """The exact rank of the matricised product: the sum in general position, less if not."""

    def matricised(a: np.ndarray, b: np.ndarray) -> int:
        tensor = np.asarray(mixed_product(a.astype(object), b.astype(object)))
        return exact_rank(
            tensor.transpose(0, 2, 1, 3).reshape(len(a[0]) * len(b[0]), -1).astype(np.int64)
        )

    cases = ((1, 3), (2, 1), (3, 2), (1, 1))  # rank(a_k), rank(b_k)
    rng = run.rng("ranks")
    starts = np.cumsum([0, *(left for left, _ in cases)])
    a = np.stack(
        [
            matrix_of_rank(rng, block, block, int(starts[-1]))
            for block in (slice(*pair) for pair in pairwise(starts))
        ]
    )
    b = np.stack([matrix_of_rank(rng, slice(0, r), slice(0, r), 3) for _, r in cases])
    for k, expected in enumerate(cases):
        if (exact_rank(a[k]), exact_rank(b[k])) != expected:
            raise EvidenceFailed(f"pair {k} has the ranks {exact_rank(a[k])}, {exact_rank(b[k])}")
    bound = sum(left * right for left, right in cases)
    attained = matricised(a, b)
    require(attained == bound, f"rank {attained} in general position, but the bound is {bound}")
    cancelled = matricised(np.stack([a[2], a[2]]), np.stack([b[0], -b[0]]))
    shared = matricised(np.stack([a[2], a[2]]), np.stack([b[0], b[2]]))
    if cancelled != 0 or not 0 < shared < 3 * 3 + 3 * 2:
        raise EvidenceFailed(f"ranks {cancelled} and {shared} where terms meet")
    for case in range(20):
        left, right = (rng.integers(-1, 2, (3, 3, 3)) for _ in range(2))
        most = sum(exact_rank(x) * exact_rank(y) for x, y in zip(left, right, strict=True))
        if matricised(left, right) > most:
            raise EvidenceFailed(f"case {case}: rank {matricised(left, right)} exceeds {most}")
    return f"rank {attained} = {bound} in general position, {shared} < 15 and 0 where terms meet"


CLAIM = Claim(
    id="A19.mixed",
    source="Andreoli 2019, Section 1.1, eq. 1",
    verdict=Verdict.HOLDS,
    kinds=(Kind.IDENTITY,),
    evidence=(
        proved(
            "andreoli2019/mixed.v",
            covers="the bound on the rank of tensors, as there is a decomposition with so many "
            "terms; not: which one, and that the bound is attained, or not always",
        ),
        proved(
            "andreoli2019/mixed_matrix.v",
            covers="the same bound on the rank of one matrix, a∘b for matrices a_k and b_k with "
            "rows (m, p) and columns (n, q); not: its rank as a tensor of four axes",
        ),
        certified_identities("A19.mixed", "rank", "rank"),
        Evidence("the terms of the proof", Level.TESTED, terms_of_the_proof),
        Evidence("ranks", Level.TESTED, ranks),
    ),
)
