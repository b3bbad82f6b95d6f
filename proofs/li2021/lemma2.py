"""Lemma 2: a relative bias M at one offset attends to that patch, in the limit M → ∞.

Claimed. A large bias M at one relative position makes a head attend to that patch alone, and M = 40
does so up to machine precision.
True. It does in the limit, at queries for which that patch exists, and attention is uniform at the
others; M = 40 is enough in float32, but in float64 the weight is below one from 15 patches on.

Printed. "For any relative position δ between two patches, there exists a relative positional
encoding scheme B such that softmax(B_(q,:))_k = 1{q - k = δ}." Its proof sets b_δ0 = M and b_δ = 0
elsewhere, gives the weights e^M/(e^M + N - 1) and 1/(e^M + N - 1) (eq. 10), and ends: "by setting M
= 40 we will have softmax(B_(q,:))_k = 1{q-k=δ} up to machine precision".

Verified. With b = M at one offset and zero elsewhere, at every query for which the patch at that
offset exists, the total variation between the row and the one-hot row is (N - 1)/(e^M + N - 1)
exactly; for N ≥ 2 it is positive for every finite M, and it tends to zero as M → ∞. At every other
query all scores are equal and the row is uniform, 1/N, whatever M is. At M = 40 the weight of the
target, rounded once, is one in float32 for every N up to 2³² (not for 2³³); in float64 it is one
for N ≤ 14 and below one from N = 15 on. Computed as 1/(1 + (N - 1)e^-M), its denominator in float64
still rounds to one at N = 27, not at N = 28.

Repair. Three points. (1) It is a limit: no finite B makes softmax an indicator. (2) Eq. 10 is
printed for every q, but where the target is missing no key has q - k = δ, the row sums to one all
the same, and it is uniform; so (10) is false at the border, and the indicator cannot even be
approached there. (3) "Machine precision" at M = 40 is float32's; in float64 the maximum is below
one from 15 patches on, and from 28 on where the denominator is rounded first. In the sign of this
project the offset k - q is the printed -δ.

Errata.
- Lemma 2 and eqs. 7, 14 | q - k = δ, and q + δ | Misprint: one sign
- eq. 10 | for every query | where the target exists; elsewhere the row is uniform
- Lemma 2 | M = 40 up to machine precision | Remark: true in float32, if the target's weight is to
  round to one (the others are not zero, as C20's α asks); float64 tells the weight from one from N
  = 15

Proof. *The idea:* softmax of one M and N - 1 zeros is e^M/(e^M + N - 1) at the M and 1/(e^M +
N - 1) elsewhere.

Half the L1 distance to the one-hot row is one minus the former, (N - 1)/(e^M + N - 1), at most
N·e^-M. The softmax of N zeros is uniform.

With u = 2^-p (p = 24, 53) the neighbours of one are 1 - u and 1 + 2u, so 1 - TV rounds to one if TV
< u/2 and to less if TV > u/2, and 1 + (N - 1)e^-M rounds to one if (N - 1)e^-M < u and to more if
it is greater. These comparisons are made with balls. ∎
"""

import jax.numpy as jnp
import numpy as np
from flint import arb, ctx

from convattn.encodings import BiasEncoding
from convattn.operators.shifts import from_query_minus_key
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict, require
from convattn_ledger.bounds.saturation import PRECISION, bias_total_variation, upper
from convattn_ledger.evidence import EXP, bias_saturation_enclosed, proved, whole_images
from convattn_ledger.evidence.layer_runs import within
from convattn_ledger.evidence.positional_heads import (
    attended,
    bare_grid,
    head_weights,
    images_as_tokens,
)
from convattn_ledger.evidence.softmax_rounding import mixture_within, weights_within

# As printed, q - k, and M. The third and fourth have no target at many queries.
HEADS = (((-1, 2), 4.0), ((0, 0), 40.0), ((3, -5), 40.0), ((-31, 1), 8.0))
# dtype, bits p, then N on either side of where 1 - TV stops rounding to one, and the denominator.
ROUNDING = (("float32", 24, (2**32, 2**33), (2**33, 2**34)), ("float64", 53, (14, 15), (27, 28)))


def forty_enclosed(run: Run) -> str:
    """M = 40: on which side of half a unit in the last place TV lies, strictly."""
    summary = []
    for dtype, bits, weights, denominators in ROUNDING:
        with ctx.workprec(PRECISION):
            half = arb(2) ** -(bits + 1)
            for keys, rounds_to_one in zip(weights, (True, False), strict=True):
                distance = bias_total_variation(40.0, keys)
                if not (distance < half if rounds_to_one else distance > half):
                    raise EvidenceFailed(
                        f"{dtype}, N = {keys}: TV = {distance}, on the wrong side of 2^-{bits + 1}"
                    )
            for keys, rounds_to_one in zip(denominators, (True, False), strict=True):
                excess = (keys - 1) * (-arb(40)).exp()
                if not (excess < 2 * half if rounds_to_one else excess > 2 * half):
                    raise EvidenceFailed(
                        f"{dtype}, N = {keys}: (N-1)e^-40 = {excess}, wrong side of 2^-{bits}"
                    )
        summary.append(
            f"{dtype}: the weight rounds to one at N = {weights[0]}, not at {weights[1]}; the "
            f"denominator at N = {denominators[0]}, not at {denominators[1]}"
        )
    return "; ".join(summary)


def weights_on_images(run: Run, dtypes: tuple[str, ...], heads: tuple) -> str:
    """Weights on the 32 × 32 grid, and the pixels attended to, against eq. 10.

    Scores are M and 0, exact in every dtype, so the weights are within the bound of
    `convattn_ledger.evidence.softmax_rounding` of eq. 10, which is evaluated by ball arithmetic. A
    pixel
    attended to differs from the target's by Σ_k w_k (X_k - X_target), at most TV·max|X| for pixels
    that are not negative, and by the rounding of the mixture. A row without a target is N equal
    numbers; N = 2¹⁰, so that 1/N is exact and the comparison is `==`.
    """
    images = whole_images(run)
    grid, tokens = bare_grid(images), images_as_tokens(images)
    keys = grid.number_of_keys
    offsets = tuple(from_query_minus_key(printed) for printed, _ in heads)
    table = np.diag([logit for _, logit in heads])
    uniform, summary = 0, []
    for dtype in dtypes:
        encoding = BiasEncoding(jnp.asarray(table, dtype), None, offsets)
        weights = np.asarray(head_weights(encoding, grid), np.float64)
        worst = 0.0
        for head, (printed, logit) in enumerate(heads):
            target = grid.query_positions - np.array(printed)
            exists = ((target >= 0) & (target < np.array(grid.keys))).all(axis=1)
            index = np.ravel_multi_index(tuple(target[exists].T), grid.keys)
            distance = bias_total_variation(logit, keys)
            eq10 = np.full((keys, keys), float((distance / (keys - 1)).mid()))
            eq10[np.flatnonzero(exists), index] = float((1 - distance).mid())
            eq10[~exists] = 1 / keys

            is_there = (grid.key_positions[None] == target[:, None]).all(axis=2)
            scores = np.where(is_there, logit, 0.0)
            allowed = weights_within(scores, dtype)
            within(f"{dtype}, M = {logit:g}", weights[head], eq10, allowed.bound)
            if (weights[head][~exists] != 1 / keys).any():
                raise EvidenceFailed(f"{dtype}: a row without a target is not exactly uniform")
            uniform += int((~exists).sum())

            mixture = mixture_within(allowed, tokens, dtype)
            pixels = np.asarray(attended(encoding, head, jnp.asarray(images, dtype)), np.float64)
            shifted = np.where(exists[:, None], 0.0, tokens.mean(axis=0))
            shifted[exists] = tokens[index]
            saturation = np.where(exists[:, None], upper(distance) * tokens.max(), 0.0)
            within(
                f"{dtype}, pixels", images_as_tokens(pixels), shifted, mixture.bound + saturation
            )
            worst = max(worst, float(np.abs(weights[head] - eq10).max()))
        summary.append(f"{dtype} {worst:.2g}")
    require(uniform, "every query had its target, so nothing was seen of the border")
    return (
        f"{len(images)} images, N = {keys}, {len(heads)} heads; weights off eq. 10 by at most: "
        + ", ".join(summary)
        + f"; {uniform // len(dtypes)} rows without a target are exactly 1/N"
    )


def one_head_on_images(run: Run) -> str:
    """One head in float32."""
    return weights_on_images(run, ("float32",), HEADS[2:3])


def heads_on_images(run: Run) -> str:
    """All heads in all dtypes."""
    return weights_on_images(run, ("float64", "float32", "bfloat16", "float16"), HEADS)


CLAIM = Claim(
    id="L21.lemma2",
    source="Li et al. 2021, Lemma 2 and appendix A.1, eqs. 10 to 12",
    verdict=Verdict.AMENDED,
    kinds=(Kind.LIMIT,),
    evidence=(
        proved(
            "li2021/lemma2.v",
            covers="the rows of a query with a given target and of one with none, the total "
            "variation and the limit; not: which queries have the target, M = 40 in floating "
            "point",
        ),
        bias_saturation_enclosed(
            "distance to one-hot",
            logits=(1.0, 4.0, 16.0, 40.0, 128.0),
            keys=(2, 27, 28, 256, 1024, 50176),
        ),
        Evidence(
            "M = 40, rounded",
            Level.ENCLOSED,
            forty_enclosed,
            assumes="ball arithmetic (python-flint); rounding to nearest",
        ),
        Evidence("one head on images", Level.BOUNDED, one_head_on_images, assumes=EXP),
        Evidence("heads on images", Level.BOUNDED, heads_on_images, assumes=EXP, quick=False),
    ),
)
