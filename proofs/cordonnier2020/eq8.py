"""Eq. 8: with the relative encoding, position enters the scores only through the shift.

Claimed. With relative position encodings, attention scores depend only on the shift between query
and key.
True. They do where content plays no part, as in the paper's construction; in general they depend on
the content of query and key too, but not on where the two are.

Printed. A^rel_qk := X_q W_qryᵀ W_key X_k + X_q W_qryᵀ Ŵ_key r_δ + uᵀ W_key X_k + vᵀ Ŵ_key r_δ.
"In this manner, the attention scores only depend on the shift δ := k - q."

Verified. Let X_q and r_δ be rows, W_qry, W_key of shape D × D_k as in eq. 2, Ŵ_key of shape D_p ×
D_k, and u, v rows of length D_k. Then

    A_qk = X_q W_qry W_keyᵀ X_kᵀ + X_q W_qry Ŵ_keyᵀ r_δᵀ + u W_keyᵀ X_kᵀ + v Ŵ_keyᵀ r_δᵀ

is a function of X_q, X_k and δ: translating the image translates the scores. It is a function of δ
alone if W_qry = 0 and u W_keyᵀ = 0, in particular without content, as in Lemma 2.

Repair. Two points. (1) With content the scores do not depend on δ alone: X = (1, 2)ᵀ with r = 0,
u = 0 and all other maps 1 has the scores 1 and 4 at its two pairs with δ = 0. (2) The printed
transposes do not fit: with the shapes of eq. 2, W_qryᵀ cannot follow the row X_q, unless D = D_k;
with the transposed shapes, or with columns for the slices, another factor fails.

Errata.
- eq. 8 | X_qᵀ W_qryᵀ … | Misprint: shapes that fit eq. 2's X W_qry
- eq. 8, text | "the attention scores only depend on the shift" | without content only

Proof. q and k enter the four terms through X_q, X_k and r_(k-q) alone. Without content only the
last term is left, and it holds nothing but r_δ. For the shapes run through the four readings:
weights as in eq. 2 or transposed, slices as rows or as columns. In each some neighbours differ. ∎
"""

import jax
import jax.numpy as jnp
import numpy as np

from convattn.encodings import QuadraticEncoding
from convattn.encodings.layer import ContentScores
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict, require
from convattn_ledger.evidence import DTYPES, proved, whole_images
from convattn_ledger.evidence.matrix_shapes import is_score, transposed
from convattn_ledger.evidence.positional_heads import bare_grid
from convattn_ledger.evidence.scores import relative_score_terms


def shifts_of(height: int, width: int) -> np.ndarray:
    """k - q for every pair of pixels, `[q, k, 2]`."""
    positions = np.stack(np.unravel_index(np.arange(height * width), (height, width)), axis=-1)
    return positions[None] - positions[:, None]


def scores_of_a_key(run: Run) -> str:
    """Integers: equal (X_q, X_k, δ) give equal scores; without content equal δ do."""
    shifts = shifts_of(3, 4)
    cases, repeated = (5 if run.quick else 20), 0
    for case in range(cases):
        rng = run.rng(case)
        tokens = rng.integers(0, 2, (12, 2))  # few values, so that pairs do repeat
        table = rng.integers(-9, 10, (5, 7, 3))
        relative = table[shifts[..., 0] + 2, shifts[..., 1] + 3]
        query, key = rng.integers(-3, 4, (2, 2, 4))
        position_key, u, v = rng.integers(-3, 4, (3, 4)), *rng.integers(-3, 4, (2, 4))
        arrays = [jnp.asarray(array) for array in (relative, query, key, position_key, u, v)]
        scores = np.asarray(sum(relative_score_terms(jnp.asarray(tokens), *arrays)))
        without = np.asarray(sum(relative_score_terms(jnp.zeros((12, 2), int), *arrays)))
        by_all: dict[tuple[int, ...], set[int]] = {}
        by_shift: dict[tuple[int, ...], set[int]] = {}
        for q in range(12):
            for k in range(12):
                shift = tuple(int(entry) for entry in shifts[q, k])
                pair = (*tokens[q].tolist(), *tokens[k].tolist())
                by_all.setdefault((*pair, *shift), set()).add(int(scores[q, k]))
                by_shift.setdefault(shift, set()).add(int(without[q, k]))
                expected = (tokens[q] @ query) @ (tokens[k] @ key) + u @ (tokens[k] @ key)
                expected += (tokens[q] @ query + v) @ (relative[q, k] @ position_key)
                if scores[q, k] != expected:
                    raise EvidenceFailed(f"case {case}: score {scores[q, k]}, expected {expected}")
        for name, groups in (("X_q, X_k and δ", by_all), ("δ", by_shift)):
            if any(len(group) > 1 for group in groups.values()):
                raise EvidenceFailed(f"case {case}: equal {name} have several scores")
        repeated += 144 - len(by_all)
    return (
        f"{cases} cases on 3 × 4 pixels, {repeated} repeated (X_q, X_k, δ), all with equal scores"
    )


def content_breaks_it(run: Run) -> str:
    """X = (1, 2)ᵀ, all maps 1, r = 0: two pairs with δ = 0 and different scores."""
    one = jnp.ones((1, 1), int)
    summary = []
    for u in (0, 1):
        terms = relative_score_terms(
            jnp.array([[1], [2]]), jnp.zeros((2, 2, 1), int), one, one, one, u * one[0], one[0]
        )
        scores = np.asarray(sum(terms)).tolist()
        if scores != [[1 + u, 2 + 2 * u], [2 + u, 4 + 2 * u]]:
            raise EvidenceFailed(f"u = {u}: the scores are {scores}")
        require(scores[0][0] != scores[1][1], f"u = {u}: the scores at δ = 0 are equal")
        summary.append(f"u = {u}: {scores[0][0]} and {scores[1][1]} at δ = 0")
    return "; ".join(summary)


def printed_shapes(run: Run) -> str:
    """Every reading of the print against D = 4, D_k = 3, D_p = 2; then the corrected form."""
    weight, position_key, column = (4, 3), (2, 3), (3, 1)
    readings = 0
    for turned in (False, True):
        for rows in (True, False):
            w, p = (
                (transposed(weight), transposed(position_key)) if turned else (weight, position_key)
            )
            x, r = ((1, 4), (1, 2)) if rows else ((4, 1), (2, 1))
            first = [x, transposed(w), w, x]
            second = [x, transposed(w), p, r]
            third, fourth = [transposed(column), w, x], [transposed(column), p, r]
            if is_score(first, second, third, fourth):
                raise EvidenceFailed(f"the print fits with weights {w}, {p} and slices {x}, {r}")
            readings += 1
    x, r, u = (1, 4), (1, 2), transposed(column)
    corrected = (
        [x, weight, transposed(weight), transposed(x)],
        [x, weight, transposed(position_key), transposed(r)],
        [u, transposed(weight), transposed(x)],
        [u, transposed(position_key), transposed(r)],
    )
    require(is_score(*corrected), "the corrected form does not fit either")
    return f"none of {readings} readings of the print can be formed, the corrected form can"


def translated_images(run: Run) -> str:
    """Scores of an image and of the image rolled by (3, 5): equal at the pairs that do not wrap.

    Content with maps of entries in {-1, 0, 1} and the quadratic encoding with α = 1: integers
    below 2²⁴, so that the scores, which are computed in at least float32, are exact in every
    dtype.
    """
    images = whole_images(run)
    count, height, width, channels = images.shape
    grid = bare_grid(images)
    rolled = np.roll(images, (3, 5), axis=(1, 2))
    indices = np.arange(height * width).reshape(height, width)
    stay, go = indices[: height - 3, : width - 5].ravel(), indices[3:, 5:].ravel()
    rng = run.rng("weights")
    query, key, u = rng.integers(-1, 2, (1, 3, 3)), rng.integers(-1, 2, (1, 3, 3)), np.ones((1, 3))

    @jax.jit
    def unequal(content, positional, here, there):
        table = positional.positional_scores(grid)
        scores, moved = (content.scores(pixels, pixels) + table for pixels in (here, there))
        same = scores[0, 0][np.ix_(stay, stay)] == moved[0, 0][np.ix_(go, go)]
        zero = indices[0, 0], indices[1, 1]
        return (~same).sum(), scores[0, 0][zero[0], zero[0]] != scores[0, 0][zero[1], zero[1]]

    for dtype in DTYPES:
        content = ContentScores(
            *(jnp.asarray(array, dtype) for array in (query, key, u)), scaled=False
        )
        positional = QuadraticEncoding(jnp.ones(1, dtype), jnp.zeros((1, 2), dtype))
        vary = False
        for here, there in zip(images, rolled, strict=True):
            pair = [
                jnp.asarray(each.reshape(1, height * width, channels), dtype)
                for each in (here, there)
            ]
            wrong, differ = unequal(content, positional, *pair)
            vary |= bool(differ)
            require(not wrong, f"{dtype}: {wrong} scores change as the image is moved")
        require(vary, f"{dtype}: no two pixels have different scores at δ = 0")
    return f"{count} images, {len(stay)}² pairs each, equal in {', '.join(DTYPES)}"


CLAIM = Claim(
    id="C20.eq8",
    source="Cordonnier, Loukas, Jaggi 2020, eq. 8",
    verdict=Verdict.AMENDED,
    kinds=(Kind.IDENTITY,),
    evidence=(
        proved(
            "cordonnier2020/eq8.v",
            covers="that moving the image moves the scores, with positions in Z² or on a torus, "
            "that they are a function of δ alone if W_qry = 0 and u W_keyᵀ = 0, and another "
            "example for (1); not: (2) of the repair, the shapes of the print",
        ),
        Evidence("exact scores by shift", Level.TESTED, scores_of_a_key),
        Evidence("content breaks it", Level.TESTED, content_breaks_it),
        Evidence("shapes of the print", Level.TESTED, printed_shapes),
        Evidence(
            "translated images",
            Level.BOUNDED,
            translated_images,
            assumes="integer sums below 2^24 are exact",
            quick=False,
        ),
    ),
)
