"""How many heads two layers take, one on the other, for a convolution on two axes (S.depth).

Two layers of H_1 and H_2 content-free heads, linear between them, are one layer of H_1·H_2 heads.
So H_1·H_2 ≥ ρ in the limit and ≥ ρ + 1 exactly, at finite scores, ρ being the largest rank of F
(for one pattern that serves every kernel: T, the number of offsets); the least sums of two numbers
with such a product are necessary in all. T_1 and T_2 heads suffice in the limit, T_1 and T_2 + 1
exactly, T_1 and T_2 being the numbers of token offsets on the two axes. Where one layer does with
few heads, a first layer that passes the tokens on, with one head in the limit and two exactly, may
be cheaper.
"""

from collections.abc import Sequence
from math import isqrt

from convattn.bounds.generic_rank import GenericRank
from convattn.bounds.head_counts import HeadCount, HeadCounts, HeadRange

REGIME = {
    "limit": "content-free heads, by scores that may tend to infinity, with value maps that may "
    "diverge, and linear maps between the layers; on a ring of zeros, or judged at queries that "
    "hold their receptive field in the image",
    "exact": "the same at finite scores, on images with a token outside the receptive field",
}


def least_total(product: int) -> int:
    """The least a + b with a·b at least this: ⌈2√product⌉.

    >>> least_total(9), least_total(10), least_total(12)
    (6, 7, 7)
    """
    return 1 + isqrt(4 * product - 1)


def two_layer_counts(
    rank: GenericRank,
    axis_offsets: Sequence[int],
    shared: bool,
    single: tuple[HeadCount, HeadCount],
) -> HeadCounts:
    """The counts for these sizes; shared if one pattern is to serve every kernel.

    `single` are the heads that suffice in one layer, in the limit and exactly.
    """
    first, second = axis_offsets
    product = rank.offsets if shared else rank.least
    basis = "proved" if shared or rank.proved else "checked"
    ranges = []
    for more in (0, 1):
        necessary = HeadCount(
            least_total(product + more),
            "S.depth",
            basis,
            f"the least sum of two numbers whose product is at least {product + more}",
        )
        spread = (first, second + more), "a head for each offset of an axis"
        passed = (1 + more, int(single[more])), f"a layer that passes on, and {single[more].claim}"
        per_layer, reason = min(spread, passed, key=lambda option: sum(option[0]))
        sufficient = HeadCount(sum(per_layer), "S.depth", "proved", reason)
        open_one = (
            f"{necessary} heads in both layers together are shown to be necessary and {sufficient} "
            "to suffice; whether fewer do for every kernel is open"
        )
        difference = "" if necessary == sufficient else open_one
        ranges.append(HeadRange(necessary, sufficient, difference, each=per_layer))
    limit, exact = ranges
    return HeadCounts(rank.offsets, rank.least, limit, exact, dict(REGIME))
