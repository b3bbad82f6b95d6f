"""Lemma 2: the quadratic encoding attends to one shift, in the limit.

Claimed. With the quadratic encoding, a head can put all its attention on the pixel at any given
shift from the query.
True. It can only in the limit of ever sharper attention; where that pixel lies outside the image,
the pixel nearest to it gets the attention instead.

Printed. There is a relative encoding scheme with D_p ≥ 3 and parameters with D_p ≤ D_k "such
that, for every Δ ∈ Δ_K there exists some vector v (conditioned on Δ) yielding softmax(A_q)_k = 1
if k - q = Δ and zero, otherwise."

Verified. With D_p = 3 and the scores -α|δ - Δ|², up to a constant of the row, softmax(A_q)_k
tends to 1 at k = q + Δ and to 0 elsewhere as α → ∞, at every query q for which q + Δ is a pixel.
At the other queries it tends to 1 at the pixel nearest to q + Δ. The total variation to that
one-hot row is positive, if there is more than one pixel, and below 1 - θ(α)⁻² with θ(α) = Σ_n
e^(-αn²).

Repair. Three points. (1) It is a limit: no v gives 1 and 0, as softmax is positive; the proof's
own last lines take lim. (2) No q is named, but at queries whose target is outside the image no
key has k - q = Δ, while the row still sums to one: there "zero, otherwise" cannot hold. (3) In
the sums of the proof k - q' should read k' - q.

Errata.
- Lemma 2 | softmax = 1 | in the limit
- proof of Lemma 2 | k - q' | Misprint: k' - q

Proof. *The idea:* the score falls with the squared distance from the target, so the best key leads
by α or more.

v·r_δ = -α(|δ|² - 2⟨Δ, δ⟩) = -α|δ - Δ|² + α|Δ|², and softmax drops the constant.

If q + Δ is a pixel, every other key has an integer |δ - Δ|² ≥ 1, so its weight is at most e^-α.

If not, let p be the projection of q + Δ onto the rectangle of pixels; it is a pixel. On each axis
let p be at distance d ≥ 0 from q + Δ. A key n steps from p is at distance d + |n|, and (d + |n|)² -
d² ≥ n², so on that axis its score lies at least αn² below p's. The row is the product of those of
the axes, so p's weight exceeds θ(α)⁻², as no axis has a key at every n. ∎
"""

import jax.numpy as jnp
import numpy as np

from convattn.encodings import QuadraticEncoding
from convattn.operators.arrays import accumulation_dtype
from convattn.operators.roundoff import one_hot_sharpness
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict, require
from convattn_ledger.bounds.saturation import quadratic_total_variation_bound, upper
from convattn_ledger.evidence import DTYPES, EXP, proved, total_variation_enclosed, whole_images
from convattn_ledger.evidence.layer_runs import equal, within
from convattn_ledger.evidence.positional_heads import (
    attended,
    bare_grid,
    head_weights,
    images_as_tokens,
    scores_by_shift,
)
from convattn_ledger.evidence.softmax_rounding import mixture_within, weights_within

CENTERS = ((0, 0), (1, -1), (-2, 3))


def nearest_key(grid, center: tuple[int, ...]) -> np.ndarray:
    """For every query, the key nearest to q + Δ, as a row-major number."""
    target = grid.query_positions + np.array(center)
    inside = np.clip(target, 0, np.array(grid.keys) - 1)
    return np.ravel_multi_index(tuple(inside.T), grid.keys)


def distance_on_images(run: Run, dtypes: tuple[str, ...], alphas: tuple[float, ...]) -> str:
    """Weights and pixels on the whole grid of the images.

    α times an integer below 2²⁴ is exact for these α, so the scores are, and the weights are
    within the bound of `evidence/softmax_rounding.py`. The computed total variation to the nearest
    key's row is then at most the enclosure's plus half the sum of these bounds, and the pixel
    attended to is within max|X| times twice the former of the nearest pixel, plus the rounding of
    the mixture.
    """
    images = whole_images(run)
    grid, tokens = bare_grid(images), images_as_tokens(images)
    nearest = np.array([nearest_key(grid, center) for center in CENTERS])
    queries = np.arange(grid.number_of_keys)
    summary = []
    for alpha in alphas:
        allowed = upper(quadratic_total_variation_bound(alpha))
        worst, reached = 0.0, 0.0
        exact = [
            scores_by_shift(grid, lambda s, c=center, a=alpha: -a * ((s - c) ** 2).sum(-1))
            for center in CENTERS
        ]
        bounds = {  # by the dtype in which softmax runs
            working: [weights_within(scores, working) for scores in exact]
            for working in {accumulation_dtype(dtype) for dtype in dtypes}
        }
        for dtype in dtypes:
            heads = QuadraticEncoding(
                jnp.full(len(CENTERS), alpha, dtype), jnp.asarray(CENTERS, dtype)
            )
            weights = np.asarray(head_weights(heads, grid), np.float64)
            for head, center in enumerate(CENTERS):
                rounding = bounds[accumulation_dtype(dtype)][head]
                gap = np.abs(weights[head])
                gap[queries, nearest[head]] = np.abs(1 - weights[head, queries, nearest[head]])
                gap = gap.sum(axis=1) / 2
                limit = allowed + rounding.bound.sum(axis=1) / 2
                if not (gap <= limit).all():
                    where = int((gap - limit).argmax())
                    raise EvidenceFailed(
                        f"{dtype}, α = {alpha:g}, Δ = {center}, query {where}: total variation "
                        f"{gap[where]:.3g}, above {limit[where]:.3g}"
                    )
                pixels = attended(heads, head, jnp.asarray(images, dtype))
                pixels = jnp.asarray(images_as_tokens(np.asarray(pixels, np.float64)))
                bound = mixture_within(rounding, tokens, dtype).bound + 2 * allowed * tokens.max()
                within(f"{dtype}, α = {alpha:g}, pixels", pixels, tokens[nearest[head]], bound)
                worst, reached = max(worst, float(gap.max())), max(reached, float(limit.max()))
        summary.append(f"α = {alpha:g}: {worst:.3g} ≤ {reached:.3g}")
    return f"{len(images)} images, 3 shifts, {', '.join(dtypes)}; total variation " + ", ".join(
        summary
    )


def quick_distance(run: Run) -> str:
    """One α in one dtype."""
    return distance_on_images(run, ("float32",), (4.0,))


def full_distance(run: Run) -> str:
    """Four α, four dtypes."""
    dtypes = ("float64", "float32", "bfloat16", "float16")
    return distance_on_images(run, dtypes, (1.0, 4.0, 16.0, 46.0))


def one_hot_on_images(run: Run) -> str:
    """α of `one_hot_sharpness`: the pixels *are* those of the image moved by Δ, edges repeated."""
    images = whole_images(run)
    count, height, width, _ = images.shape
    grid = bare_grid(images)
    outside = 0
    for dtype in DTYPES:
        alpha = one_hot_sharpness(dtype)
        heads = QuadraticEncoding(jnp.full(3, alpha, dtype), jnp.asarray(CENTERS, dtype))
        weights = np.asarray(head_weights(heads, grid), np.float64)
        for head, center in enumerate(CENTERS):
            pad = max(abs(c) for c in center)
            padded = np.pad(images, [(0, 0), (pad, pad), (pad, pad), (0, 0)], mode="edge")
            rows, columns = (
                slice(pad + c, pad + c + n) for c, n in zip(center, (height, width), strict=True)
            )
            equal(
                dtype, attended(heads, head, jnp.asarray(images, dtype)), padded[:, rows, columns]
            )
            target = grid.query_positions + np.array(center)
            gone = ((target < 0) | (target >= np.array(grid.keys))).any(axis=1)
            rows_there = weights[head, gone]
            if (
                not ((rows_there == 1).sum(axis=1) == 1).all()
                or (rows_there.sum(axis=1) != 1).any()
            ):
                raise EvidenceFailed(f"{dtype}: a row without a target is not one-hot")
            outside += int(gone.sum())
    require(outside, "no query had its target outside, so nothing was seen of the border")
    each = outside // len(DTYPES)
    return f"{count} images equal in {', '.join(DTYPES)}; {each} rows have no target, yet sum to 1"


CLAIM = Claim(
    id="C20.lemma2",
    source="Cordonnier, Loukas, Jaggi 2020, Lemma 2, eqs. 9 and 14",
    verdict=Verdict.AMENDED,
    kinds=(Kind.LIMIT,),
    evidence=(
        proved(
            "cordonnier2020/lemma2.v",
            covers="the limit of each weight at every query, and that these heads are nowhere "
            "hard, on two pixels or more; not: W_qry, Ŵ_key and D_k, the bound 1 - θ⁻², that no v "
            "at all gives 1 and 0, (3)",
        ),
        total_variation_enclosed(
            "distance to the nearest key", alphas=(0.5, 1.0, 4.0, 16.0, 46.0, 104.0)
        ),
        Evidence("distance on images, quick", Level.BOUNDED, quick_distance, assumes=EXP),
        Evidence("distance on images", Level.BOUNDED, full_distance, assumes=EXP, quick=False),
        Evidence(
            "one-hot on images, border included",
            Level.BOUNDED,
            one_hot_on_images,
            assumes="exp underflows to zero",
            quick=False,
        ),
    ),
)
