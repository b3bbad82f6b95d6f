"""Eq. 8: bi-affine attention in its two forms.

Claimed. Bi-affine attention scores can be written in two equivalent forms, and the shape of their
parameters does not depend on the number of tokens.
True. So it is, for all sizes; moreover the rank of the scores is at most the smaller token width
plus one, and a softmax makes some of the parameters redundant.

Printed. A(x′, y′; Ξ) = x′Λy′ᵀ + (x′μ) ⊗ 1_N + 1_M ⊗ (y′ν) + ξ 1_M ⊗ 1_N, "equivalently" A_mn =
Σ_pq Λ_pq x′_mp y′_nq + Σ_p μ_p x′_mp + Σ_q ν_q y′_nq + ξ. "Parameter Ξ has a fully controlled
shape, independent of M, N."

Verified. The two forms are equal, for all sizes. Ξ has P′Q′ + P′ + Q′ + 1 numbers. More is true:
A_mn = (x′_m, 1) [[Λ, μ], [νᵀ, ξ]] (y′_n, 1)ᵀ, so the rank of A is at most min(P′, Q′) + 1 whatever
M and N, which is reached; and Ξ is determined by A once the rows (x′_m, 1) and (y′_n, 1) span.
Under the column-wise softmax ν and ξ are redundant, under the row-wise one μ and ξ.

Nothing to repair.

Proof. The entry (m, n) of (x′μ) ⊗ 1_N is (x′μ)_m·1, and of the others likewise. The augmented form
is the product of blocks; the rank of a product is at most that of a factor. With full column rank
L = (x′, 1) and R = (y′, 1), Λ̃ = (LᵀL)⁻¹LᵀAR(RᵀR)⁻¹. (y′ν)_n + ξ is a factor e^(·) common to a
column of e^A, which the softmax divides out; (x′μ)_m + ξ one common to a row. ∎
"""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
from flint import fmpq_mat, fmpz_mat

from convattn.operators.arrays import accumulation_dtype
from convattn.operators.roundoff import gamma, unit_roundoff
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict, require
from convattn_ledger.evidence import DTYPES, certified_identities, proved, whole_images
from convattn_ledger.evidence.exact_influence import exact_column_softmax
from convattn_ledger.structures import bi_affine, bi_affine_scores

FIELDS = ("bilinear", "key_weight", "query_weight", "offset")


def draw(run: Run, case: object, keys: int, queries: int) -> tuple[np.ndarray, ...]:
    """x′ of three features, y′ of two, and ξ, μ, ν, Λ, in integers."""
    rng = run.rng(case)
    shapes = ((keys, 3), (queries, 2), (3, 2), (3,), (2,), ())
    return tuple(rng.integers(-5, 6, shape) for shape in shapes)


def by_entries(
    x: np.ndarray, y: np.ndarray, bilinear: np.ndarray, key: np.ndarray, query: np.ndarray, offset
) -> np.ndarray:
    """The second form, entry by entry, in whatever numbers are given."""
    return np.array(
        [
            [
                sum(bilinear[p, q] * a[p] * b[q] for p in range(len(a)) for q in range(len(b)))
                + sum(key[p] * a[p] for p in range(len(a)))
                + sum(query[q] * b[q] for q in range(len(b)))
                + offset
                for b in y
            ]
            for a in x
        ]
    )


def two_forms(run: Run) -> str:
    """Both forms and the library, on integers."""
    cases = 5 if run.quick else 20
    for case in range(cases):
        x, y, *terms = draw(run, case, 5, 4)
        expected = by_entries(x, y, *terms)
        bilinear, key, query, offset = terms
        ones = np.ones(4, int), np.ones(5, int)
        form = x @ bilinear @ y.T + np.multiply.outer(x @ key, ones[0])
        form += np.multiply.outer(ones[1], y @ query) + offset * np.multiply.outer(*ones[::-1])
        require((form == expected).all(), f"case {case}: the forms differ: {form}, {expected}")
        parameters = bi_affine(*(term[None] for term in terms))
        out = bi_affine_scores(jnp.asarray(x[None]), jnp.asarray(y[None]), parameters)
        if np.asarray(out)[0, 0].tolist() != expected.tolist():
            raise EvidenceFailed(f"case {case}: computed {out[0, 0]}, not {expected}")
    return f"{cases} cases of 5 keys, 4 queries, 3 and 2 features equal"


def rank_and_identification(run: Run) -> str:
    """The rank is at most min(P′, Q′) + 1 = 3, and reached; Ξ comes back from the scores."""
    reached, cases = 0, 5 if run.quick else 20
    for case in range(cases):
        x, y, *terms = draw(run, case, 8, 7)
        scores = by_entries(x, y, *terms)
        rank = fmpz_mat(scores.tolist()).rank()
        require(rank <= 3, f"case {case}: rank {rank} of an 8 × 7 matrix of scores")
        reached += rank == 3
        left, right = (np.column_stack([points, np.ones(len(points), int)]) for points in (x, y))
        grams = [fmpq_mat(fmpz_mat((matrix.T @ matrix).tolist())) for matrix in (left, right)]
        if 0 in (gram.det() for gram in grams):
            continue
        middle = fmpq_mat(fmpz_mat((left.T @ scores @ right).tolist()))
        form = grams[0].inv() * middle * grams[1].inv()
        bilinear, key, query, offset = terms
        expected = np.block([[bilinear, key[:, None]], [query[None], np.array([[offset]])]])
        if [[int(entry) for entry in row] for row in form.tolist()] != expected.tolist():
            raise EvidenceFailed(f"case {case}: the scores give {form}, not {expected}")
    require(reached, "no case reached the rank 3")
    return f"{cases} cases of 8 × 7 scores: rank ≤ 3, reached {reached} times; Ξ recovered"


def redundant_terms(run: Run) -> str:
    """ν and ξ under the softmax over the keys, μ and ξ under that over the queries."""
    cases = 5 if run.quick else 20
    for case in range(cases):
        x, y, bilinear, key, query, offset = draw(run, case, 5, 4)
        whole = by_entries(x, y, bilinear, key, query, offset)
        no_query = by_entries(x, y, bilinear, key, 0 * query, 0)
        no_key = by_entries(x, y, bilinear, 0 * key, query, 0)
        columns, rows = exact_column_softmax(whole), exact_column_softmax(whole.T)
        if (exact_column_softmax(no_query) != columns).any():
            raise EvidenceFailed(f"case {case}: ν or ξ matter to the columns")
        if (exact_column_softmax(no_key.T) != rows).any():
            raise EvidenceFailed(f"case {case}: μ or ξ matter to the rows")
        if not key.any() or not query.any() or np.ptp(x @ key) == 0 or np.ptp(y @ query) == 0:
            continue
        if (exact_column_softmax(no_key) == columns).all():
            raise EvidenceFailed(f"case {case}: μ does not matter to the columns")
        if (exact_column_softmax(no_query.T) == rows).all():
            raise EvidenceFailed(f"case {case}: ν does not matter to the rows")
    return f"{cases} cases: columns do not see ν and ξ, rows do not see μ and ξ"


def scores_of_pixels(run: Run) -> str:
    """Real parameters, 16 pixels, in four dtypes, against fractions.

    Products with Λ are sums of P′ = 3, those with y′ of Q′ = 3 products; the other terms are sums
    of three, and three additions follow, each rounded to u: |computed - exact| ≤ γ_9·(|x′||Λ||y′|ᵀ
    + |x′||μ| + |y′||ν| + |ξ|). Parameters and pixels count as exact, as they are stored.
    """
    images = whole_images(run)[:2, 12:16, 12:16].reshape(2, 16, 3)
    rng = run.rng("terms")
    real = [rng.normal(size=shape) for shape in ((3, 3), (3,), (3,), ())]
    exactly = np.vectorize(Fraction, otypes=[object])
    summary = []
    for dtype in DTYPES:
        terms = [jnp.asarray(term, dtype) for term in real]
        parameters = bi_affine(*(term[None] for term in terms))
        x, y = (jnp.asarray(image[None], dtype) for image in images)
        out = np.asarray(jax.jit(bi_affine_scores)(x, y, parameters), np.float64)[0, 0]
        stored = [exactly(np.asarray(term, np.float64)) for term in terms]
        stored[3] = stored[3].item()
        pixels = [exactly(image.astype(float)) for image in images]
        expected = by_entries(*pixels, *stored)
        magnitude = by_entries(*pixels, *(abs(term) for term in stored)).astype(float)
        reach = gamma(9, unit_roundoff(accumulation_dtype(dtype))) * (1 + 2.0**-20)
        distance = np.abs(exactly(out) - expected).astype(float)
        if not (distance <= reach * magnitude).all():
            raise EvidenceFailed(f"{dtype}: off by {distance.max()}, above the bound")
        summary.append(f"{dtype} {distance.max():.2g}")
    return "16 × 16 scores off by " + ", ".join(summary)


CLAIM = Claim(
    id="A19.biaffine",
    source="Andreoli 2019, Definition 5, eq. 8",
    verdict=Verdict.HOLDS,
    kinds=(Kind.IDENTITY,),
    evidence=(
        proved(
            "andreoli2019/biaffine.v",
            covers="all, for any function in place of e^(·) that takes sums to products and is "
            "never zero; not: that the rank min(P′, Q′) + 1 is reached, and the count of Ξ's "
            "numbers",
        ),
        certified_identities("A19.biaffine", "the two forms", "forms"),
        Evidence("eq. 8 exactly", Level.TESTED, two_forms),
        Evidence("rank and identification", Level.TESTED, rank_and_identification),
        Evidence("redundant terms", Level.TESTED, redundant_terms),
        Evidence(
            "scores of pixels",
            Level.BOUNDED,
            scores_of_pixels,
            assumes="products as pinned",
            quick=False,
        ),
    ),
)
