"""S.group: how many heads the lifting convolution of a group of turns and reflections takes.

G is p4, the turns by 90°, or p4m, these and four reflections. With n filters, those of all input
channels together, generic ones have the rank ρ = Σ d·min(m, n·d) over the complex irreducible
representations of G on the taps, of dimension d and multiplicity m, and no others more (Schur). At
finite scores that makes ρ + 1 heads. In the limit, ρ if some combination of the filters' means over
G is nonnegative and not 0: always, if n is at least the number of orbits, which is the multiplicity
of the trivial representation; else not for filters of the sum zero, say (S.kernel).
"""

from typing import Any

from convattn.bounds.head_counts import HeadCount

GROUPS = ("p4", "p4m")


def require_group(group: object) -> None:
    """Refuse another name."""
    if group not in GROUPS:
        raise ValueError(
            f"group={group!r}, but expected 'p4', the turns by 90 degrees, 'p4m', these and the "
            "reflections, or None; leave it out to count for every kernel"
        )


def multiplicities(kernel_size: int, group: str) -> list[tuple[int, int]]:
    """(d, m) of each irreducible representation in the functions on K × K taps; the trivial first.

    >>> multiplicities(3, "p4"), multiplicities(3, "p4m")
    ([(1, 3), (1, 2), (1, 2), (1, 2)], [(1, 3), (1, 0), (1, 1), (1, 1), (2, 2)])
    """
    require_group(group)
    half, odd = divmod(kernel_size, 2)  # on a half diagonal, and whether there is a centre
    turned, free, axis = half * (half + odd), half * (half - 1) // 2, odd * half  # orbits
    if group == "p4":
        return [(1, turned + odd), *[(1, turned)] * 3]
    lines = (free + half + axis + odd, free, free + axis, free + half)
    return [*((1, line) for line in lines), (2, turned)]


def lifted_rank(kernel_size: int, group: str, filters: int) -> int:
    """ρ for so many generic filters, the largest of all of that number.

    >>> [lifted_rank(5, "p4m", n) for n in range(1, 7)]
    [8, 15, 22, 23, 24, 25]
    """
    return sum(d * min(m, filters * d) for d, m in multiplicities(kernel_size, group))


def lifted_kernel(filters: Any, group: str) -> Any:
    """The kernel of the lifting convolution, `[K, K, in, |G|·r]`, of filters `[K, K, in, r]`.

    The channels of a filter are neighbours: turned 0 to 3 times anticlockwise, and with p4m its
    mirror image turned 0 to 3 times.

    Raises:
        ValueError: For another group, and for filters of another shape.

    >>> lifted_kernel([[[[0]], [[1]]], [[[2]], [[3]]]], "p4").reshape(4, 4).T.tolist()
    [[0, 1, 2, 3], [1, 3, 0, 2], [3, 2, 1, 0], [2, 0, 3, 1]]
    """
    import numpy as np  # which counting alone does not load

    require_group(group)
    filters = np.asarray(filters)
    if filters.ndim != 4 or filters.shape[0] != filters.shape[1]:
        raise ValueError(
            f"filters.shape={filters.shape}, but expected square filters [K, K, in, r]; add the "
            "missing axis"
        )
    originals = [filters] if group == "p4" else [filters, filters[:, ::-1]]
    copies = [np.rot90(each, turns, axes=(0, 1)) for each in originals for turns in range(4)]
    return np.stack(copies, axis=-1).reshape(*filters.shape[:3], -1)


def lifted_counts(
    sizes: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]], filters: int, group: str
) -> tuple[int, HeadCount, HeadCount]:
    """ρ for the worst of n filters, and the heads that it takes in the limit and exactly.

    Raises:
        ValueError: For another group, and for what is not square or has patches.

    >>> lifted_counts(((3, 3), (1, 1), (1, 1)), 1, "p4m")[1:]
    (HeadCount(8, claim='S.group', basis='proved'), HeadCount(8, claim='S.group', basis='proved'))
    """
    size, patch, dilation = sizes
    require_group(group)
    if len(size) != 2 or len({*size}) + len({*dilation}) > 2 or max(patch) > 1:
        raise ValueError(
            f"group={group!r} with kernel_size={size}, patch_size={patch}, dilation={dilation}, "
            "but expected a square kernel with one dilation on pixels, as its taps and tokens are "
            "turned; leave group out, and give the lifted kernel's out_channels, to count for all "
            "kernels"
        )
    (_, orbits), *_ = multiplicities(size[0], group)
    rank = lifted_rank(size[0], group, filters)
    why = "rank F, whose row space holds the ones"
    if filters < orbits:
        why = "rank F + 1 for filters whose means over the group span no nonnegative vector"
    limit = HeadCount(rank + (filters < orbits), "S.group", "proved", why)
    return rank, limit, HeadCount(rank + 1, "S.group", "proved", "rank F + 1")
