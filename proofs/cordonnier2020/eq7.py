"""Eq. 7: the score with absolute positions splits into four terms.

Claimed. With absolute position encodings, an attention score is the sum of four terms, pairing
content and position of the query with those of the key.
True. It is, for all weights and tokens, once the transposes that the printed sum leaves out are put
back.

Printed. A^abs_qk = (X_q + P_q) W_qry W_keyᵀ (X_k + P_k)ᵀ = X_q W_qry W_keyᵀ X_k + X_q W_qry
W_keyᵀ P_k + P_q W_qry W_keyᵀ X_k + P_q W_qry W_keyᵀ P_k.

Verified. A^abs_qk = X_q W X_kᵀ + X_q W P_kᵀ + P_q W X_kᵀ + P_q W P_kᵀ with W = W_qry W_keyᵀ, W_qry
and W_key of shape D × D_k, and X_q, P_q rows of length D.

Repair. The second line of the print lacks the transposes on X_k and P_k, which its first line has;
without them no factor of shape 1 × D can follow W of shape D × D, unless D = 1.

Errata.
- eq. 7 | X W_qry W_keyᵀ X_k, without transposes on X_k and P_k | Misprint: X_kᵀ and
  P_kᵀ

Proof. (x, y) ↦ x W yᵀ is bilinear. ∎
"""

import jax
import jax.numpy as jnp
import numpy as np

from convattn.operators.roundoff import gamma, unit_roundoff
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict, require
from convattn_ledger.evidence import DTYPES, proved, whole_images
from convattn_ledger.evidence.matrix_shapes import is_score, transposed
from convattn_ledger.evidence.scores import absolute_score_terms, position_added_scores


def four_terms_exactly(run: Run) -> str:
    """Integers: each term against its definition, entry by entry, and the sum against eq. 3."""
    cases = 10 if run.quick else 40
    for case in range(cases):
        rng = run.rng(case)
        tokens, positions = rng.integers(-9, 10, (2, 5, 4))
        query, key = rng.integers(-9, 10, (2, 4, 3))
        arrays = [jnp.asarray(array) for array in (tokens, positions, query, key)]
        terms = absolute_score_terms(*arrays)
        for name, term, left, right in zip(
            terms._fields,
            terms,
            (tokens, tokens, positions, positions),
            (tokens, positions, tokens, positions),
            strict=True,
        ):
            expected = [[(q @ query) @ (k @ key) for k in right] for q in left]
            if np.asarray(term).tolist() != np.array(expected).tolist():
                raise EvidenceFailed(f"case {case}: {name} is {term.tolist()}, not {expected}")
        direct = position_added_scores(*arrays)
        if (sum(terms) != direct).any():
            raise EvidenceFailed(f"case {case}: the terms add up to {sum(terms)}, not {direct}")
    return f"{cases} cases of 5 tokens, 4 features, 3 key features equal"


def printed_shapes(run: Run) -> str:
    """Which of the two lines of the print can be formed, for D ≠ D_k."""
    row, weight = (1, 4), (4, 3)
    if is_score([row, weight, transposed(weight), row]):
        raise EvidenceFailed("the second line can be formed without the transpose")
    if not is_score([row, weight, transposed(weight), transposed(row)]):
        raise EvidenceFailed("the first line cannot be formed")
    return "D = 4, D_k = 3: a number with the transposes, no product without"


def four_terms_on_images(run: Run) -> str:
    """Tokens are pixels (r, g, b), positions (row, column, 1); products are integers times 2^-12.

    Where the dtype holds integers up to the largest partial sum, both sides are exact and must be
    equal. Elsewhere let u be the unit roundoff and G = |X + P| |W_qry| |W_key|ᵀ |X + P|ᵀ, which
    also bounds the absolute values of the four terms together, as nothing in X and P is negative.
    A score of eq. 3 takes a sum X + P on each side, two projections of D products each, stored in
    the dtype, and one sum of D_k products, stored too: it is off by at most ((1 + u)²(1 +
    γ_(D+1))²(1 + γ_(Dk+1)) - 1)G. The four terms take the same without X + P, and three
    additions: (1 + u)³ for (1 + u)². Together less than twice the latter. All partial sums are
    multiples of 2^-12 below 2¹¹, so nothing under- or overflows.
    """
    images = whole_images(run)
    count, height, width, features = images.shape
    tokens = images.reshape(count, height * width, features)
    coordinates = np.stack(np.unravel_index(np.arange(height * width), (height, width)), axis=-1)
    positions = np.concatenate([coordinates, np.ones((height * width, 1), int)], axis=-1)
    query, key = run.rng("weights").integers(-1, 2, (2, features, 2))
    left, right = np.abs(query).sum(0), np.abs(key).sum(0)
    largest = int((tokens.max() + positions.max()) ** 2 * left @ right)

    @jax.jit
    def distance(pixels, coordinates, query, key, reach):
        direct = position_added_scores(pixels, coordinates, query, key)
        terms = absolute_score_terms(pixels, coordinates, query, key)
        total = terms[0] + terms[1] + terms[2] + terms[3]
        wide = [each.astype(jnp.float64) for each in (pixels + 0.0, coordinates, query, key)]
        sums = wide[0] + wide[1]
        magnitude = position_added_scores(sums, 0 * sums, abs(wide[2]), abs(wide[3]))
        gap = abs(total.astype(jnp.float64) - direct.astype(jnp.float64))
        return gap.max(), (gap - reach * magnitude).max()

    summary = []
    for dtype in DTYPES:
        roundoff = unit_roundoff(dtype)
        exact = largest * roundoff <= 1
        stages = (1 + gamma(features + 1, roundoff)) ** 2 * (1 + gamma(3, roundoff))
        reach = 0.0 if exact else 2 * ((1 + roundoff) ** 3 * stages - 1) * (1 + 2.0**-20)
        weights = [jnp.asarray(array / 2**6, dtype) for array in (query, key)]
        gaps = [
            distance(jnp.asarray(each, dtype), jnp.asarray(positions, dtype), *weights, reach)
            for each in tokens
        ]
        gap, excess = (max(float(pair[i]) for pair in gaps) for i in (0, 1))
        require(excess <= 0, f"{dtype}: the two sides differ by {gap}, {excess} above the bound")
        summary.append(
            f"{dtype} " + ("equal" if exact else f"within {reach:.2g}·G, apart {gap:.2g}")
        )
    return f"{count} images, {height * width} tokens; " + "; ".join(summary)


CLAIM = Claim(
    id="C20.eq7",
    source="Cordonnier, Loukas, Jaggi 2020, eq. 7",
    verdict=Verdict.HOLDS,
    kinds=(Kind.IDENTITY,),
    evidence=(
        proved(
            "cordonnier2020/eq7.v",
            covers="the four terms; not: the shapes of the print",
        ),
        Evidence("exact integers", Level.TESTED, four_terms_exactly),
        Evidence("shapes of the print", Level.TESTED, printed_shapes),
        Evidence(
            "pixels of images",
            Level.BOUNDED,
            four_terms_on_images,
            assumes="matrix products are sums of products in the pinned precision",
            quick=False,
        ),
    ),
)
