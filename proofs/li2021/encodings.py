"""§3.1, remark on the positional encoding: which encodings have the property of Lemma 2.

Claimed. The construction works with many position encodings, among them those of Transformer-XL,
T5, TUPE and Swin.
True. On one axis and in the limit it works with those of Transformer-XL, TUPE as printed and, in
its window, Swin; that of T5 cannot tell shifts in a bucket apart, so more than 15 taps are out of
reach.

Printed. "In fact, Theorem 1 holds as long as the positional encoding satisfies the property in
Lemma 2. It's easy to check that a wide range of positional encoding have such property (Dai et al.,
2019; Raffel et al., 2020; Ke et al., 2020; Liu et al., 2021), so our result is general."

Verified. For tokens on one axis, position alone giving the scores, and in the limit. Raffel et al.
(T5) do not have it: their scores are one number for each of 32 buckets of offsets, and on either
side only 0, …, 7 have a bucket of their own (0, …, 15 where attention looks back alone); 8 to 11
share one, 12 to 15, 16 to 22, and so on. Every head gives two offsets of a bucket the same weight,
so no number of such heads, whatever their value maps, is a convolution that maps two keys of a
bucket differently, exactly or in a limit: kernels of more than 15 taps are out of reach. On images
it fails for nine heads already. Patches are numbered row by row, on a ringed grid of W columns (a,
b) is the offset aW + b, and at W = 16 the offsets (1, 0) and (1, 1) share a bucket. The three
others have the property. Dai et al. (Transformer-XL): the score v·R_δ is any combination of cos ω_i
δ and sin ω_i δ, and Σ_i cos ω_i (δ - δ') is strictly largest at δ = δ', as the first frequency is
1. Ke et al. (TUPE), as printed: a number for each offset; their code has T5's buckets. Liu et al.
(Swin): a number for each two-dimensional offset within a window. There it holds where the receptive
field lies in the window.

Repair. True of those of Dai, Ke and Liu, not of Raffel's beyond seven tokens on either side. With
the numbers of rows side by side, (0, 13) and (1, -1) are one offset on a bare grid of 14 columns;
on a ringed one no query has both within the reach of its kernel.

Errata.
- §3.1, remark on the positional encoding | the encoding of Raffel et al. (2020) has the property of
  Lemma 2 | its buckets join the offsets 8 to 11, 12 to 15 and so on, which no head can tell apart;
  it has the property up to seven tokens on either side

Proof. *The main point:* a head's weight at a key is a function of its bucket, divided by the row's
sum, so two keys of a bucket have the same weight in every head, and the layer the same map Σ_h a_h
W_h; a limit of such layers too. Of a convolution these are two taps.

If an offset that is met is alone in its bucket, its number tends to infinity and the others are
zero: one-hot.

The cosines: each is at most 1, and for an integer m that is not zero cos m < 1, as m is no multiple
of 2π; that times a factor that grows is one-hot in the limit. ∎
"""

import math
from fractions import Fraction
from itertools import pairwise, product

import numpy as np

from convattn_ledger import Claim, Evidence, Kind, Level, Run, Verdict, require

BUCKETS, FURTHEST = 32, 128  # of T5: "32 embeddings [...] up to an offset of 128"
SHARED = (8, 12, 16, 23, 32, 46, 64, 91)  # where a bucket of several offsets begins
SHARED_BEHIND = (16, 19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99, 113)


def bucket(offset: int, both_sides: bool = True) -> int:
    """T5's, as in the code that its authors published (mesh-tensorflow).

    >>> [bucket(offset) for offset in (0, 7, 8, 11, 12, -7, -8, 1000)]
    [0, 23, 24, 24, 25, 7, 8, 31]
    """
    half = BUCKETS // 2 if both_sides else BUCKETS
    start = half if both_sides and offset > 0 else 0
    distance = abs(offset) if both_sides else max(-offset, 0)
    alone = half // 2
    if distance < alone:
        return start + distance
    share = math.log(distance / alone) / math.log(FURTHEST / alone)
    return start + min(alone + int(share * (half - alone)), half - 1)


def buckets_of_t5(run: Run) -> str:
    """Which offsets share a bucket, one by one."""
    for both_sides, shared in ((True, SHARED), (False, SHARED_BEHIND)):
        by_distance = [bucket(-n, both_sides) for n in range(1001)]
        starts = [n for n in range(1, 1001) if by_distance[n] != by_distance[n - 1]]
        alone = shared[0]
        require(starts == [*range(1, alone), *shared], f"buckets begin at {starts}")
        other_side = [bucket(n) for n in range(1, 1001)]
        require(
            not both_sides
            or all(a == b + 16 for a, b in zip(other_side, by_distance[1:], strict=True)),
            "the two sides have other buckets",
        )
    several = ", ".join(f"{a} to {b - 1}" for a, b in pairwise(SHARED))
    return f"bidirectional: 0 to 7 alone, {several}, {SHARED[-1]} and more; behind: 0 to 15 alone"


def heads_of_t5(run: Run) -> str:
    """Heads with a random number for each bucket, in fractions: the maps at 8 and 11 are equal."""
    tokens, heads = 24, 40
    rng = run.rng("t5")
    weights = rng.integers(1, 1000, (heads, BUCKETS))
    maps = rng.integers(-9, 10, heads)
    equal = different = 0
    for query in range(tokens):
        row = [bucket(key - query) for key in range(tokens)]
        sums = [sum(Fraction(int(w[b])) for b in row) for w in weights]
        layer = [
            sum(int(m) * int(w[b]) / total for m, w, total in zip(maps, weights, sums, strict=True))
            for b in row
        ]
        for one, other in ((8, 11), (12, 15), (7, 8)):
            if query + other < tokens:
                same = layer[query + one] == layer[query + other]
                equal += same
                different += not same
                require(same == (one != 7), f"query {query}: offsets {one} and {other}")
    pairs = f"{equal} pairs of one bucket equal, {different} of two not"
    return f"{heads} heads on {tokens} tokens: {pairs}"


def nine_offsets(run: Run) -> str:
    """The nine offsets of a 3 × 3 neighbourhood, numbered row by row on a ringed grid."""
    buckets = []
    for columns in (4, 8, 16, 26):
        offsets = {(a, b): a * columns + b for a, b in product((-1, 0, 1), repeat=2)}
        number = len({bucket(offset) for offset in offsets.values()})
        require(len(set(offsets.values())) == 9, f"{columns} columns: offsets coincide")
        buckets.append(number)
    require(buckets[0] == 9 and max(buckets[1:]) < 9, f"{buckets} buckets of nine offsets")
    require(bucket(16) == bucket(17), "(1, 0) and (1, 1) are apart at 16 columns")
    return f"on 4, 8, 16 and 26 columns nine offsets have {buckets} buckets"


def frequencies() -> np.ndarray:
    """Of a sine and a cosine each."""
    return np.asarray(10_000.0 ** -(np.arange(32) / 32))


def sinusoids(run: Run) -> str:
    """Transformer-XL's, 64 features: the sum of cosines is largest at its own offset alone."""
    shifts = np.arange(-1000, 1001)
    score = np.cos(frequencies()[:, None] * shifts).sum(axis=0)
    gap = score[1000] - np.delete(score, 1000).max()
    require(gap > 1, f"a gap of {gap}")
    return f"a gap of {gap:.3f} to the second, of 32 at most, for offsets up to 1000"


def table_entry(offsets: np.ndarray, side: int) -> np.ndarray:
    """Where the number of an offset, counted from the least, stands in Swin's table."""
    return np.asarray(offsets[..., 0] * (2 * side - 1) + offsets[..., 1])


def windows(run: Run) -> str:
    """Swin's table: two offsets within a window never share an entry."""
    for side in (4, 7, 12):
        positions = np.array(list(product(range(side), repeat=2)))
        offsets = positions[None] - positions[:, None] + side - 1
        entries = table_entry(offsets, side)
        pairs = {
            (*o, e)
            for o, e in zip(map(tuple, offsets.reshape(-1, 2)), entries.ravel(), strict=True)
        }
        require(len(pairs) == len({p[2] for p in pairs}) == (2 * side - 1) ** 2, f"side {side}")
    return "windows of 4, 7 and 12 tokens a side: an entry for each offset"


CLAIM = Claim(
    id="L21.encodings",
    source="Li et al. 2021, Section 3.1, remark on the positional encoding",
    verdict=Verdict.AMENDED,
    kinds=(Kind.IDENTITY,),
    evidence=(
        Evidence("T5's buckets", Level.TESTED, buckets_of_t5),
        Evidence("heads of T5", Level.TESTED, heads_of_t5),
        Evidence("nine offsets", Level.TESTED, nine_offsets),
        Evidence("sinusoids", Level.TESTED, sinusoids),
        Evidence("windows", Level.TESTED, windows),
    ),
)
