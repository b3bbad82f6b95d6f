"""S.dp2: two positional features give one-hot heads on any finite image.

Claimed. Two positional features are enough for heads that attend to a single token each, on any
finite image, where Cordonnier et al. ask for three.
True. They are, in the limit of sharp scores, and so for the convolution with zero tokens around the
image; float32 can hold the scores exactly for 4096 offsets, bfloat16 for only 16.

Printed. Not from a paper: our own result. Cordonnier et al. 2020, Theorem 1, asks for D_p ≥ 3. Two
features give one- hot heads on every finite image: number the shifts of Δ_K by n, give all other
shifts one further number, and take r_δ = (n, n²). With α a power of two this is exact up to n =
4096 in float32 and 16 in bfloat16; with other α rounding sets in earlier.

Verified. The same, in the limit α → ∞, for T token offsets numbered 0, …, T - 1 and every other
shift numbered T: with v_Δ = α(2n_Δ, -1) the total variation between a head's row and the
one-hot row at q + Δ is below (N - 1)e^-α (N ≥ 2) at every query whose target is a key, so that
T heads tend to the convolution, zero-padded with a ring. αn² is exact for all n up to 94906266
in float64, 4096 in float32, 16 in bfloat16 and 46 in float16 if α is a power of two in range,
and the next n is not.

Nothing to repair. The library computes the centred form -α(n - n_Δ)², in at least float32; it needs
only (T - n_Δ)² to be exact, and the number of the rows is T + 1 whatever the image.

Proof. v_Δ·r = α(2n_Δ n - n²) = -α(n - n_Δ)² + αn_Δ². The numbers are distinct integers and no shift
but Δ has the number n_Δ, so every other key's score is lower by at least α, and the N - 1 of them
have at most (N - 1)e^-α/(1 + (N - 1)e^-α) of the weight. Lemma 1 of C20 does the rest. Rounding:
with p bits all integers up to 2^p are exact, and an integer above is exact iff its odd part is
below 2^p. ∎
"""

import jax.numpy as jnp
import numpy as np
from flint import arb, ctx

from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict
from convattn_ledger.bounds.saturation import PRECISION, upper
from convattn_ledger.evidence import certified, equals_convolution, proved

# dtype, bits, and the largest n up to which every n² is exact.
EXACT = (("float64", 53, 94906266), ("float32", 24, 4096), ("bfloat16", 8, 16), ("float16", 11, 46))


def head_distance(alpha: int, target: int, count: int, keys: int):
    """TV of the head of one number, with N keys of which N - T share the spare number; a ball."""
    groups = [(number, 1) for number in range(count) if number != target] + [(count, keys - count)]
    others = arb(0)
    for number, times in groups:
        others += times * (-arb(alpha) * (number - target) ** 2).exp()
    return others / (1 + others)


def distance_enclosed(run: Run) -> str:
    """0 < TV < (N - 1)e^-α for every head."""
    summary = []
    for count, keys in ((3, 34), (9, 100), (9, 1156), (25, 144)):
        for alpha in (1, 8, 46, 104, 128):
            worst = 0.0
            with ctx.workprec(PRECISION):
                vanishing = (keys - 1) * (-arb(alpha)).exp()
                for target in range(count):
                    distance = head_distance(alpha, target, count, keys)
                    if not (distance > 0 and distance < vanishing):
                        raise EvidenceFailed(
                            f"T = {count}, N = {keys}, α = {alpha}, n = {target}: TV = {distance}, "
                            f"not between 0 and {vanishing}"
                        )
                    worst = max(worst, upper(distance))
        summary.append(f"T = {count}, N = {keys}: TV < {worst:.2g} at α = {alpha}")
    return "; ".join(summary)


def feature_scores(numbers: np.ndarray, target: int) -> np.ndarray:
    """(2n_Δ, -1)·(n, n²) for every number n."""
    return 2 * target * numbers - numbers**2


def scores_of_the_features(run: Run) -> str:
    """v_Δ·(n, n²) against -α(n - n_Δ)² + αn_Δ², and one largest score for each row, in integers."""
    for count in (2, 9, 25, 121):
        numbers = np.arange(count + 1)
        for target in range(count):
            scores = feature_scores(numbers, target)
            if (scores != target**2 - (numbers - target) ** 2).any():
                raise EvidenceFailed(f"T = {count}, n = {target}: the scores differ")
            gaps = np.delete(scores[target] - scores, target)
            if gaps.min() != 1:
                raise EvidenceFailed(
                    f"T = {count}, n = {target}: the nearest rival is {gaps.min()} off"
                )
    return "T = 2, 9, 25, 121: one largest score, every other at least one (times α) below"


def first_inexact(dtype: str, factor: int, numbers: np.ndarray) -> int | None:
    """The first n for which α·n² is not a number of the dtype, on this device."""
    exact = factor * numbers.astype(object) ** 2
    stored = np.asarray(jnp.asarray(exact.astype(np.int64)).astype(dtype), np.float64)
    different = np.array([int(x) != y for x, y in zip(stored, exact, strict=True)])
    return int(numbers[different.argmax()]) if different.any() else None


def rounding_of_the_features(run: Run) -> str:
    """The n at which αn² is first rounded: by counting bits, and on this device in four dtypes."""
    summary = []
    for dtype, bits, last in EXACT:
        window = np.arange(max(0, last - 4000), last + 3)
        odd = [n * n // ((n * n) & -(n * n)) if n else 0 for n in map(int, window)]
        counted = next(int(n) for n, part in zip(window, odd, strict=True) if part >= 2**bits)
        if counted != last + 1:
            raise EvidenceFailed(
                f"{dtype}: n = {counted} is the first whose square has > {bits} bits"
            )
        first = {factor: first_inexact(dtype, factor, window) for factor in (1, 4)}
        if set(first.values()) != {last + 1}:
            raise EvidenceFailed(f"{dtype}: α = 1, 4 are rounded first at n = {first}")
        start = np.arange(1, min(last, 10000) + 2)
        if last < 10000:
            third = first_inexact(dtype, 3, start)
            if third is None or not third <= last:
                raise EvidenceFailed(f"{dtype}: α = 3 is exact up to n = {last} as well")
            summary.append(f"{dtype}: to n = {last}, α = 3 only to {third - 1}")
        else:
            summary.append(f"{dtype}: to n = {last}")
    return "n² is exact " + "; ".join(summary)


CLAIM = Claim(
    id="S.dp2",
    source="this project, sharpening D_p ≥ 3 of C20 Theorem 1",
    verdict=Verdict.HOLDS,
    kinds=(Kind.LAYER_EQUALITY, Kind.LIMIT),
    evidence=(
        proved(
            "sharpened/dp2.v",
            covers="the total variation of a head is at most (N - 1)e^-α for α > 0; not: that it "
            "is below, nor rounding",
        ),
        proved(
            "sharpened/dp2_limit.v",
            covers="T heads tend to the convolution as α → ∞, at each output of each image, for "
            "odd K with a ring; not: other sets of offsets",
        ),
        certified("S.dp2"),
        Evidence(
            "distance to hard attention",
            Level.ENCLOSED,
            distance_enclosed,
            assumes="ball arithmetic (python-flint)",
        ),
        Evidence("scores of the features", Level.TESTED, scores_of_the_features),
        Evidence("rounding of the features", Level.TESTED, rounding_of_the_features),
        equals_convolution("3 × 3, pixels", (3, 3), encoding="enumerated"),
        equals_convolution("5 × 5, P = 4", (5, 5), patch_size=4, encoding="enumerated"),
    ),
)
