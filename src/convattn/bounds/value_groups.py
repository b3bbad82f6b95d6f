"""Heads that share value maps in groups of equally many, as in grouped-query attention (S.gqa).

G value maps of d_H columns hold G·d_H numbers of a token, and the convolution needs rk_in of them,
the rank of its maps side by side: G·d_H ≥ rk_in, however many heads there are. If so, each map can
hold its part, and the heads that suffice without a limit on their width do, once for each group. If
one map holds all (d_H ≥ rk_in), or no more than G heads are wanted, sharing costs no head, but that
there are a multiple of G.
"""

from math import prod

from convattn.bounds.head_counts import HeadCount
from convattn.bounds.head_width import Sizes, matricisation_ranks


def necessary_groups(
    groups: int,
    head_dim: int | None,
    geometry: tuple[Sizes, Sizes, Sizes],
    channels: tuple[int, int],
    offsets: int,
) -> tuple[HeadCount | None, bool]:
    """How many value maps are necessary (None: of any width), and whether one holds all.

    >>> necessary_groups(16, 64, ((3, 3), (16, 16), (1, 1)), (3, 3), 9)
    (HeadCount(12, claim='S.gqa', basis='proved'), False)
    """
    if head_dim is None:
        return None, True
    rank = matricisation_ranks(*geometry, *channels)[0]
    most = prod(geometry[1]) * min(channels[0], channels[1] * offsets)
    if groups * head_dim < most:
        raise ValueError(
            f"kv_groups={groups} value maps of head_dim={head_dim} hold {groups * head_dim} "
            f"numbers of a token, but expected at least {most}, which the maps of some kernel may "
            f"need (S.gqa: {rank} are necessary); take kv_groups={-(-most // head_dim)} or more, "
            f"or head_dim={-(-most // groups)} or more"
        )
    needed = HeadCount(-(-rank // head_dim), "S.gqa", "proved", f"G d_H >= rk_in = {rank}")
    return needed, head_dim >= most


def shared_values(
    pair: tuple[HeadCount, HeadCount], full_width: HeadCount, groups: int, one_holds_all: bool
) -> tuple[HeadCount, HeadCount]:
    """The counts for heads in groups, from those for heads with value maps of their own.

    `full_width` is how many suffice without a limit on their width.

    >>> pair = HeadCount(24), HeadCount(28)
    >>> [int(count) for count in shared_values(pair, HeadCount(10), 12, False)]
    [24, 120]
    """
    necessary, enough = pair
    if not one_holds_all and enough > groups:
        source = f"{full_width.claim}: {full_width.reason}"
        reason = f"{full_width} heads for each of {groups} groups ({source})"
        enough = HeadCount(groups * full_width, "S.gqa", full_width.basis, reason)
    return _multiple(necessary, groups), _multiple(enough, groups)


def _multiple(count: HeadCount, groups: int) -> HeadCount:
    more = -count % groups
    reason = f"{count.reason}; the next multiple of {groups} groups"
    return HeadCount(count + more, count.claim, count.basis, reason) if more else count
