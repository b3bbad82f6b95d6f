"""How many attention heads a convolution takes, for the worst kernel of its size.

Let T be the number of token offsets and ρ the largest rank of the flattened kernel F, that of all
kernels but a null set (`convattn.bounds.generic_rank`).

**Attention may depend on the kernel** (`"per_kernel"`). In the limit ρ heads are necessary
(S.heads), and T suffice (L21 Theorem 1). Exactly, at finite scores, ρ + 1 are necessary and suffice
(S.kernel; for ρ = T S.finite has them). So ρ + 1 suffice in the limit too. If ρ < T and some kernel
of rank ρ has F·1 = 0, no nonzero nonnegative vector lies in its row space, since all of them have
the sum zero, and it takes ρ + 1 in the limit as well (S.kernel). If a kernel's row space holds a
one-hot row, ρ do.

**One attention pattern serves every kernel** (`"shared"`). The kernels with a single tap, taken
together, put the one-hot row of every offset into the span of the heads' rows: T heads are
necessary in the limit, and at finite scores one more, as T softmax rows that span T rows which
vanish outside the receptive field would vanish there themselves (S.heads). T and T + 1 suffice
(L21.theorem1 or S.dp2, S.finite).

**Head dimension.** `convattn.bounds.head_width`. In the limit value maps may diverge, as those of
S.kernel and of S.width do. For maps that stay bounded there are numbers of their own:
`limit.bounded` heads are necessary, `limit.bounded_sufficient` suffice. S.width (4) and S.overlap
are not counted: for K = 3, P = 16, three channels, d_H = 64 they leave 14 or 15 of the 12 to 16.

**Lifted kernels** of a group of turns and reflections: `convattn.bounds.lifted_kernel`.
"""

from collections.abc import Sequence
from math import prod

from convattn.bounds.causal_counts import CAUSAL_REGIME, causal_counts, require_causal
from convattn.bounds.generic_rank import GenericRank, generic_rank
from convattn.bounds.head_counts import HeadCount, HeadCounts, HeadRange
from convattn.bounds.head_width import (
    balanced_ranks,
    matricisation_ranks,
    shared_places,
    split_heads,
    triangular_pairs,
)
from convattn.bounds.lifted_kernel import lifted_counts
from convattn.bounds.residue_blocks import axis_blocks
from convattn.bounds.two_layer_counts import two_layer_counts
from convattn.bounds.value_groups import necessary_groups, shared_values
from convattn.operators.head_places import exact_heads, limit_heads
from convattn.operators.integers import as_integer, per_axis

ATTENTION = ("per_kernel", "shared")
Sizes = tuple[int, ...]
REGIME = {
    "limit": "heads that attend by position, by scores that may tend to infinity, and value maps "
    "that may diverge with them (where more heads are necessary, or more are taken, if these stay "
    "bounded, those numbers are given too); values carry no positions; images with a query whose "
    "whole receptive field they hold (for a count of S.heads, one token a side more than the "
    "furthest offset), zero-padded by a ring, or judged at such queries alone",
    "exact": "the same at finite scores, on images with a query, one of those judged, that sees a "
    "token of the image outside its receptive field; what is necessary is so with content scores "
    "too, if the weights are continuous in the image at zero (S.content)",
}
MAX_SIZE, MAX_CHANNELS = 4096, 10**6
# Of narrow heads in the limit; the library counts neither.
OVERLAP = ", but for sizes where S.width (4) has more as necessary, or S.overlap fewer as enough"


def count_heads(
    kernel_size: int | Sequence[int],
    *,
    patch_size: int | Sequence[int] = 1,
    in_channels: int = 1,
    out_channels: int = 1,
    head_dim: int | None = None,
    dilation: int | Sequence[int] = 1,
    attention: str = "per_kernel",
    layers: int = 1,
    kv_groups: int | None = None,
    causal: bool = False,
    group: str | None = None,
) -> HeadCounts:
    """How many heads are necessary for the worst kernel, and how many suffice for every kernel.

    Args:
        kernel_size: K, odd or even; one integer is a square kernel of two axes, one or two in a
            sequence are the axes'.
        patch_size, dilation: One integer for all axes or one for each.
        in_channels, out_channels: Of the image and of the convolution. Sizes are at most 4096,
            channels a million.
        head_dim: d_H, the width of a head's value map; None: as wide as a map needs.
        attention: `"per_kernel"`: the attention may depend on the kernel. `"shared"`: one attention
            pattern serves every kernel, only the values depend on it.
        layers: 2: two layers, one on the other, with a kernel of two axes; the heads of each and
            of both.
        kv_groups: G, how many value maps the heads share, in groups of equally many, as in
            grouped-query attention; None: each head has its own.
        causal: Whether the K taps of a sequence end at the query itself, and a mask hides the keys
            after it.
        group: `"p4"` or `"p4m"`: the kernel is the lifting convolution of that group, of
            out_channels filters (`convattn.bounds.lifted_kernel.lifted_kernel`).

    Returns:
        `HeadCounts`: `limit.necessary`, `limit.sufficient`, `exact.necessary` and
        `exact.sufficient`, integers with a `claim`, a `basis` and a `reason` each. `limit.bounded`
        and `limit.bounded_sufficient` are such integers where they are known, for value maps that
        stay bounded in the limit, to be more than the two of the limit, else None. With
        `layers=2` the four numbers are those of both layers together, and `limit.each` and
        `exact.each` those of each layer. `groups` is how many value maps are necessary, with
        kv_groups and a head_dim.

    Raises:
        ValueError: For sizes that are not positive integers or too large, more than two axes,
            another `attention`, two layers with a head_dim, of one axis, or with a dilation on
            patches, sizes without a closed form whose rank takes too long to compute, a causal
            mask on two axes or on patches, value maps that are too narrow together, kv_groups with
            two layers, another group, or one with patches, a kernel that is not square, a head_dim,
            kv_groups, a causal mask, two layers or shared attention.

    Source: S.heads, S.kernel, S.finite, S.dp2, S.headdim, S.width, S.depth, S.gqa, S.causal,
        S.group of this project's ledger; L21 Theorems 1, 5 and 6.

    >>> counts = count_heads(3, patch_size=16, in_channels=3, out_channels=3, head_dim=64)
    >>> int(counts.limit.necessary), int(counts.limit.sufficient)  # with maps that may grow
    (12, 16)
    >>> int(counts.limit.bounded), int(counts.limit.bounded_sufficient)
    (20, 20)
    >>> int(counts.exact.necessary), int(counts.exact.sufficient)
    (24, 28)
    >>> count_heads(5, patch_size=2).limit.necessary
    HeadCount(9, claim='S.heads', basis='proved')
    >>> count_heads(3, in_channels=3, out_channels=3, layers=2).exact.each  # one layer takes ten
    (3, 4)
    >>> count_heads((4,), in_channels=64, out_channels=64, causal=True).exact.sufficient
    HeadCount(5, claim='S.causal', basis='proved')
    >>> int(count_heads(5, group="p4m", out_channels=2).exact.sufficient)  # 16 output channels
    16
    """
    axes = len(kernel_size) if isinstance(kernel_size, Sequence) else 2
    if axes not in (1, 2):
        raise ValueError(
            f"kernel_size={kernel_size!r}, but expected an integer, for a square kernel, or one "
            "or two integers, one for each axis"
        )
    size = per_axis(kernel_size, axes, "kernel_size", most=MAX_SIZE)
    patch = per_axis(patch_size, axes, "patch_size", most=MAX_SIZE)
    spread = per_axis(dilation, axes, "dilation", most=MAX_SIZE)
    channels = (
        as_integer(in_channels, "in_channels", most=MAX_CHANNELS),
        as_integer(out_channels, "out_channels", most=MAX_CHANNELS),
    )
    if attention not in ATTENTION:
        raise ValueError(
            f"attention={attention!r}, but expected 'per_kernel', if the attention may depend on "
            "the kernel, or 'shared', if one pattern is to serve every kernel"
        )
    geometry = (size, patch, spread)
    if group is not None:
        if (head_dim, attention, layers, kv_groups, causal) != (None, "per_kernel", 1, None, False):
            raise ValueError(
                f"group={group!r} with head_dim={head_dim}, attention={attention!r}, "
                f"layers={layers}, kv_groups={kv_groups} and causal={causal}, but expected none of "
                "these; leave them out, or leave group out"
            )
        lifted, *both = lifted_counts(geometry, prod(channels), group)
        limited, finite = (HeadRange(count, count) for count in both)
        return HeadCounts(prod(size), lifted, limited, finite, dict(REGIME))
    if causal:
        require_causal(size, patch)
    groups = None if kv_groups is None else as_integer(kv_groups, "kv_groups")
    rank = generic_rank(*geometry, prod(channels))
    shared = attention == "shared"
    limit, exact = _shared_pattern(rank, geometry) if shared else _for_each_kernel(rank, geometry)
    if causal:
        limit, exact = causal_counts(limit), causal_counts(exact)
    if as_integer(layers, "layers", most=2) == 2:
        if groups is not None:
            raise ValueError(
                f"kv_groups={groups} with layers=2, but expected one layer; leave out one"
            )
        single = (limit[1], exact[1])
        return two_layer_counts(rank, _axis_offsets(geometry, head_dim), shared, single)
    bounded = None
    dimension = None if head_dim is None else as_integer(head_dim, "head_dim")
    full_width = (limit[1], exact[1])
    if dimension is not None:
        limit, exact, bounded = _narrow(limit, exact, rank, geometry, channels, dimension, shared)
    needed = None
    if groups is not None:
        needed, free = necessary_groups(groups, dimension, geometry, channels, rank.offsets)
        limit = shared_values(limit, full_width[0], groups, free)
        exact = shared_values(exact, full_width[1], groups, free)
        # The maps of S.kernel's heads in the limit do not stay bounded.
        stays = full_width[1 if full_width[0].claim == "S.kernel" else 0]
        bounded = bounded and shared_values(bounded, stays, groups, free)
    regime = REGIME | (CAUSAL_REGIME if causal else {})
    limited = _range(limit, bounded, OVERLAP if dimension else "")
    return HeadCounts(rank.offsets, rank.least, limited, _range(exact), regime, needed)


def _axis_offsets(geometry: "Geometry", head_dim: int | None) -> list[int]:
    """The offsets on both axes, refused where there is no construction."""
    size, patch, dilation = geometry
    if len(size) != 2 or head_dim is not None or max(patch) > 1 < max(dilation):
        raise ValueError(
            f"layers=2 with kernel_size={size}, patch_size={patch}, dilation={dilation} and "
            f"head_dim={head_dim}, but expected two axes, no head_dim, and no dilation on patches"
        )
    axes = zip(*geometry, strict=True)
    return [sum(len(block.columns) for block in axis_blocks(*axis)) for axis in axes]


Pair = tuple[HeadCount, HeadCount]  # necessary, sufficient
Geometry = tuple[Sizes, Sizes, Sizes]


def _range(pair: Pair, bounded: Pair | None = None, known: str = "") -> HeadRange:
    necessary, sufficient = pair
    most, enough = (
        (count if count > usual else None for count, usual in zip(bounded, pair, strict=True))
        if bounded
        else (None, None)
    )
    if necessary == sufficient:
        return HeadRange(necessary, sufficient, "", most, enough)
    between = ""
    if most is not None:
        between = f", {most} if the value maps stay bounded ({most.claim}: {most.reason}),"
    growing = ""
    if enough is not None:
        growing = f" with value maps that grow, {enough} with bounded ones ({enough.claim})"
    diverging = " with value maps that diverge" if most and most >= sufficient else ""
    return HeadRange(
        necessary,
        sufficient,
        f"{necessary} heads are shown to be necessary ({necessary.claim}: {necessary.reason})"
        f"{between} and {sufficient} to suffice ({sufficient.claim}: {sufficient.reason}){growing};"
        f" whether fewer than {sufficient} do for every kernel{diverging} is open{known}",
        most,
        enough,
    )


def _limit_theorem(geometry: Geometry) -> str:
    """The claim whose construction has one head for each offset of these sizes."""
    size, patch, dilation = geometry
    square = len(size) == 2 and len({*size}) == len({*patch}) == 1
    printed = square and size[0] % 2 == 1 and max(dilation) == 1
    return "L21.theorem1" if printed else "S.dp2"


def _for_each_kernel(rank: GenericRank, geometry: Geometry) -> tuple[Pair, Pair]:
    basis = "proved" if rank.proved else "checked"
    if rank.least == rank.offsets:
        return (
            (
                HeadCount(rank.least, "S.heads", basis, "rank F, one for each offset"),
                HeadCount(
                    rank.offsets, _limit_theorem(geometry), "proved", "one head for each offset"
                ),
            ),
            (
                HeadCount(rank.least + 1, "S.kernel", basis, "rank F + 1"),
                HeadCount(rank.offsets + 1, "S.finite", "proved", "and a uniform head"),
            ),
        )
    exact = (
        HeadCount(rank.least + 1, "S.kernel", basis, "rank F + 1"),
        HeadCount(rank.most + 1, "S.kernel", "proved", "rank F + 1"),
    )
    settled = rank.one_hot and rank.least == rank.most
    sufficient = (
        HeadCount(rank.most, "S.kernel", basis, "rank F, whose row space holds a one-hot row")
        if settled
        else HeadCount(exact[1], "S.kernel", "proved", "rank F + 1 at finite scores")
    )
    necessary = HeadCount(rank.least, "S.heads", basis, "rank F")
    if rank.balanced >= rank.least:
        necessary = HeadCount(
            rank.balanced + 1,
            "S.kernel",
            "proved" if rank.balanced_proved else "checked",
            "rank F + 1 for a kernel with F·1 = 0, whose row space holds no nonnegative vector",
        )
    return (necessary, sufficient), exact


def _shared_pattern(rank: GenericRank, geometry: Geometry) -> tuple[Pair, Pair]:
    return (
        (
            HeadCount(rank.offsets, "S.heads", "proved", "the one-hot rows of all offsets"),
            HeadCount(rank.offsets, _limit_theorem(geometry), "proved", "one head for each offset"),
        ),
        (
            HeadCount(
                rank.offsets + 1, "S.heads", "proved", "the one-hot rows, and no weight is zero"
            ),
            HeadCount(rank.offsets + 1, "S.finite", "proved", "and a uniform head"),
        ),
    )


def _narrow(
    limit: Pair,
    exact: Pair,
    rank: GenericRank,
    geometry: Geometry,
    channels: tuple[int, int],
    dimension: int,
    shared: bool,
) -> tuple[Pair, Pair, Pair]:
    """The counts for heads of this dimension; those of the limit with bounded value maps last."""

    def parts(width: int) -> int:
        return -(-width // dimension)

    full = prod(geometry[1]) * min(channels)
    ranks = matricisation_ranks(*geometry, *channels)
    rows, basis = rank.offsets - 1, "proved"
    free = triangular_pairs(*channels)
    if not shared:
        free_rank = generic_rank(*geometry, free) if free else None
        rows = free_rank.least - 1 if free_rank else 0
        basis = "proved" if free_rank is None or free_rank.proved else "checked"
    split = split_heads(*geometry, *channels, dimension)
    sizes = (*shared_places(*geometry, *channels), dimension)
    balanced = sum(balanced_ranks(*geometry, *channels))

    def most(*counts: HeadCount) -> HeadCount:
        return max(counts, key=int)

    necessary = (
        most(
            limit[0],
            HeadCount(parts(max(ranks)), "S.headdim", "proved", "N_H d_H >= max(rk_in, rk_out)"),
        ),
        most(
            exact[0],
            HeadCount(parts(sum(ranks)), "S.headdim", "proved", "N_H d_H >= rk_in + rk_out"),
            HeadCount(
                rows + 1 + parts(full), "S.headdim", basis, f"substitution of {rows + 1} heads"
            ),
        ),
    )
    bounded = most(
        HeadCount(rows + parts(full), "S.headdim", basis, f"substitution of {rows} heads"),
        HeadCount(parts(balanced), "S.headdim", "proved", "rk_in + rk_out of a balanced kernel"),
    )
    one_hot = HeadCount(split, "S.headdim", "proved", "every offset's map split over heads")
    sufficient = [
        HeadCount(
            limit_heads(*sizes), "S.width", "proved", "coordinates share heads, maps grow like 1/ε"
        ),
        HeadCount(exact_heads(*sizes), "S.width", "proved", "coordinates share the heads"),
    ]
    if not shared:  # the maps of S.kernel's heads have at most the full width
        sufficient = [
            min(
                count,
                HeadCount(
                    pair[1] * parts(full), "S.headdim", pair[1].basis, "every head's map split"
                ),
                key=int,
            )
            for count, pair in zip(sufficient, (limit, exact), strict=True)
        ]
    sufficient[0] = min(one_hot, *reversed(sufficient), key=int)
    return (
        (necessary[0], sufficient[0]),
        (necessary[1], sufficient[1]),
        (bounded, min(one_hot, sufficient[1], key=int)),
    )
