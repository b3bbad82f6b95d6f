"""§3, the magnitude of α: 46 is not enough for hard attention in float32.

Claimed. With the sharpness α = 46, the quadratic encoding attends to exactly one pixel in float32
arithmetic.
True. It does not: each neighbouring pixel keeps a weight of about 10^-20, which is far above the
smallest number of float32; α = 104 is enough.

Printed. "Since the smallest positive float32 scalar is approximately 10^-45, setting α = 46 would
suffice to obtain hard attention."

Verified. At α = 46 the neighbours' weights are e^-46 = 1.05e-20 of the target's, more than 2⁸²
times the smallest positive float32, 2^-149, and 2⁵⁹ times the smallest normal one, 2^-126. So
attention is not one-hot at α = 46. It is from α = 103.98 on, where e^-α < 2^-150 rounds to zero,
and from α = 87.34 on already on a device that flushes subnormal numbers, as e^-α < 2^-126.

Repair. α = 104 suffices in float32, and α = 88 where subnormals are flushed. Likely 46 is a slip
of base: 10^-46 is below the smallest float32, and 46·ln 10 = 105.9 does suffice. What α = 46
gives is a maximum that rounds to one. That it does from an α between p ln 2 and (p + 1) ln 2 + ln
4 on, with p bits of significand: 16.6 to 18.7 in float32, depending on the order of summation. A
pixel that is not black hides its neighbours then; a black one shows them.

Errata.
- after Lemma 2 | α = 46 suffices in float32, 1e-45 | 104, or 88 where subnormals are flushed, if
  all other weights are to be zero, as 1e-45 asks (L21's M = 40 asks less); e^-46 is 1e-20

Proof. *The idea:* the target's score exceeds a neighbour's by exactly α, so the quotient of the
weights is e^-α.

From 2.718281828459 < e < 2.71828182846 the powers e^46 < 2⁶⁷, e^104 > 2^150 and e^88 > 2^126 follow
in fractions.

The interval for the maximum: with the maximum subtracted, softmax forms 1/Z, Z = 1 + 4e^-α + …;
adding one neighbour to 1 leaves it at 1 if and only if e^-α ≤ 2^-p, and adding all four if 4e^-α ≤
2^-p, with a factor of 2 to spare for a quotient that is rounded once, as below 1 numbers lie twice
as densely. ∎
"""

import math

import jax.numpy as jnp
import numpy as np

from convattn.encodings import QuadraticEncoding
from convattn.operators.roundoff import one_hot_sharpness
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict, require
from convattn_ledger.audit.float_format import float_format
from convattn_ledger.audit.saturation import measure_quadratic_saturation
from convattn_ledger.evidence import DTYPES, EXP, certified, proved, whole_images
from convattn_ledger.evidence.positional_heads import (
    attended,
    bare_grid,
    head_weights,
    heads_within,
    scores_by_shift,
)


def measured(dtypes: tuple[str, ...]) -> str:
    """The least α of each dtype on this device, on a 32 × 32 grid, against the derived intervals.

    With u the softmax's unit roundoff, four units in the last place of exp move e^-α as 8u in α
    do, the score is one rounding, at most u·α, and the farther keys add less than e^-α to the
    four neighbours, relatively. The least α is a number of the scores' format, so it may lie one
    spacing, at most 2·u_score·α, above the derived one.
    """
    summary = []
    for dtype in dtypes:
        score = float_format(dtype)
        for row in measure_quadratic_saturation(score):
            if row.axes != 2 or float_format(row.softmax_dtype).precision < 24:
                continue  # on a line, or not the softmax that the library runs
            softmax = float_format(row.softmax_dtype)
            roundoff, spacing = 2.0**-softmax.precision, 2 * 2.0**-score.precision
            for name, alpha, (low, high) in (
                ("the maximum is 1", row.alpha.rounds_to_one, row.alpha.rounds_to_one_predicted),
                ("one-hot", row.alpha.one_hot, row.alpha.one_hot_predicted),
            ):
                slack = 8 * roundoff + roundoff * high + math.exp(-low)
                if alpha is None or not low - slack <= alpha <= (high + slack) * (1 + spacing):
                    raise EvidenceFailed(
                        f"{dtype}, {name} from α = {alpha}, predicted {low:.4f} to {high:.4f}"
                    )
            if row.alpha.one_hot is None or not row.alpha.one_hot > 46:
                raise EvidenceFailed(f"{dtype}: one-hot from α = {row.alpha.one_hot}, not above 46")
            neighbour = row.rival_at_claimed / math.exp(-46)
            if not abs(neighbour - 1) <= 16 * roundoff:  # exp 8u, Z, the quotient 2u, math.exp
                raise EvidenceFailed(
                    f"{dtype}: the neighbours at α = 46 weigh {row.rival_at_claimed}, not e^-46"
                )
            summary.append(
                f"{dtype}: maximum 1 from {row.alpha.rounds_to_one:.6g}, one-hot from "
                f"{row.alpha.one_hot:.6g}, neighbours at 46 {row.rival_at_claimed:.3g}"
            )
    require(len(summary) == len(dtypes), f"{len(summary)} of {len(dtypes)} dtypes were measured")
    return "; ".join(summary)


def float32_on_this_device(run: Run) -> str:
    """The dtype that the paper speaks of."""
    return measured(("float32",))


def other_dtypes_on_this_device(run: Run) -> str:
    """Scores in the other dtypes; softmax runs in at least float32."""
    return measured(("float64", "bfloat16", "float16"))


def black_pixels(run: Run) -> str:
    """A head at Δ = 0, with α = 46 and one-hot, on images whose darkest entry is zero.

    Scores are exact integers, so every pixel is within the bound of
    `convattn_ledger.evidence.softmax_rounding`. With hard attention a black entry stays exactly
    black; at α = 46 it becomes the sum of its neighbours times e^-46. In float16 that is below the
    smallest number of the result, and only the weights tell.
    """
    images = whole_images(run)
    images = images - images.min(axis=(1, 2, 3), keepdims=True)
    grid = bare_grid(images)
    exact = [scores_by_shift(grid, lambda shifts: -46.0 * (shifts**2).sum(-1))]
    padded = np.pad(images, [(0, 0), (1, 1), (1, 1), (0, 0)])
    around = padded[:, :-2, 1:-1] + padded[:, 2:, 1:-1] + padded[:, 1:-1, :-2] + padded[:, 1:-1, 2:]
    black = (images == 0) & (around > 0)
    require(black.any(), "no image has a black entry with a neighbour that is not black")
    summary = []
    for dtype in DTYPES:
        typed = jnp.asarray(images, dtype)
        soft, hard = (
            QuadraticEncoding(jnp.full(1, alpha, dtype), jnp.zeros((1, 2), dtype))
            for alpha in (46.0, one_hot_sharpness(dtype))
        )
        heads_within(dtype, soft, exact, images)
        weights = np.asarray(head_weights(soft, grid), np.float64)[0]
        neighbours = weights[np.arange(1023), np.arange(1, 1024)][np.arange(1, 1024) % 32 != 0]
        require((neighbours > 0).all(), f"{dtype}: at α = 46 a neighbour's weight is zero")
        if np.asarray(attended(hard, 0, typed), np.float64)[black].any():
            raise EvidenceFailed(f"{dtype}: hard attention does not leave black pixels black")
        outputs = np.asarray(attended(soft, 0, typed), np.float64)[black]
        representable = float(jnp.finfo(dtype).tiny) < 1e-20
        if (outputs > 0).all() != representable:
            raise EvidenceFailed(f"{dtype}: black pixels become {outputs.min()} to {outputs.max()}")
        summary.append(f"{dtype} up to {outputs.max():.2g}")
    return f"{len(images)} images, {int(black.sum())} black entries become: " + ", ".join(summary)


CLAIM = Claim(
    id="C20.alpha46",
    source="Cordonnier, Loukas, Jaggi 2020, §3, remark on the magnitude of α",
    verdict=Verdict.REFUTED,
    kinds=(Kind.REFUTATION,),
    evidence=(
        proved(
            "cordonnier2020/alpha46.v",
            covers="bounds on e^-α, from both sides at α = 46, from above at 88, 104 and 46 ln "
            "10; not: the thresholds 87.34 and 103.98, where the maximum rounds to one, nor any "
            "rounding of softmax",
        ),
        certified("C20.alpha46", name="46 leaves neighbours, 104 does not"),
        Evidence(
            "least α on this device, float32",
            Level.BOUNDED,
            float32_on_this_device,
            assumes="exp is within 4 units in the last place",
        ),
        Evidence(
            "least α on this device, other dtypes",
            Level.BOUNDED,
            other_dtypes_on_this_device,
            assumes="exp is within 4 units in the last place",
            quick=False,
        ),
        Evidence("black pixels of images", Level.BOUNDED, black_pixels, assumes=EXP, quick=False),
    ),
)
