"""S.width: how many heads of dimension d_H take a convolution's coordinates, one by one.

Take the coordinates of a token (pixel and channel) on the side, in or out, that has fewer: n of
them. Offset δ reads w_δ, and R are read by a token other than their own. What a head does with one
coordinate does not touch the others, so a head is a row of attention and a list of d_H coordinates
(`convattn.constructions.narrow_heads`), and counting heads is counting places in such lists.

**In the limit, with value maps that grow.** The ⌈w_δ/d⌉ heads of an offset δ ≠ 0 have weight 1 on
their own token and ε on δ. Those w_δ coordinates take one place there and one with a head at the
token itself, which cancels 1/ε. A coordinate that no other token reads takes one place in all, and
any of these heads will do: it is at the token itself up to ε. So with G = Σ_(δ≠0) ⌈w_δ/d⌉

    G + ⌈(n - s)/d⌉ heads,     s = min(G·d - Σ w_δ, n - R).

**Exactly, at finite scores.** Heads form groups, one for each δ ≠ 0 and one for the token itself. A
coordinate that other tokens read takes a place in the group of each of these δ and two in the group
of the token itself; one that no other token reads takes two places in one group, with different
heads. A group of g heads with w places taken has room for ⌊(g·d - w)/2⌋ of the latter, if g ≥ 2. So
a group of ⌈w/d⌉ heads gains by one more: d - ⌈w/2⌉ if it had one head; else d/2, and for odd d in
turn (d + 1)/2 and (d - 1)/2, the larger first where g·d - w is odd. Heads are given where they gain
most; where nothing gains more than d/2, k heads of one group gain ⌊k·d/2⌋. That is the least
number: in every group the gains from (d + 1)/2 up come first, in falling order, but for pairs of (d
- 1)/2 and (d + 1)/2, which a group of the token itself has too.

Neither number is above that of one-hot heads whose maps are split (S.headdim): with no place shared
they are G + ⌈n/d⌉, and G + 2⌈n/d⌉ with the uniform head's.
"""

from collections.abc import Mapping


def limit_heads(widths: Mapping[int, int], coordinates: int, read: int, head_dim: int) -> int:
    """Heads that suffice in the limit, with value maps that grow like 1/ε.

    Args:
        widths: How many offsets δ ≠ 0 have which w_δ > 0.
        coordinates: n.
        read: R.
        head_dim: d_H.

    Source: S.width of this project's ledger.

    >>> limit_heads({48: 4, 3: 4}, 768, 180, 64)  # K = 3, P = 16, three channels
    16
    """
    own = sum(-(-width // head_dim) * number for width, number in widths.items())
    spare = own * head_dim - sum(width * number for width, number in widths.items())
    return own - (min(spare, coordinates - read) - coordinates) // head_dim


def exact_groups(
    widths: Mapping[int, int], coordinates: int, read: int, head_dim: int
) -> tuple[dict[int, tuple[int, int]], int]:
    """How many groups of each width get one head more and how many two, and the token's own heads.

    >>> exact_groups({48: 4, 3: 4}, 768, 180, 64)
    ({3: (4, 0), 48: (4, 0)}, 12)
    >>> exact_groups({8: 2}, 9, 8, 3)  # K = 3, P = 9 on one axis
    ({8: (0, 0)}, 6)
    """
    at_token = max(2, -(-2 * read // head_dim))
    extra = dict.fromkeys(sorted(widths), (0, 0))
    missing = coordinates - read - (at_token * head_dim - 2 * read) // 2
    odd = []  # the widths whose next head gains (d + 1)/2
    for width in extra:
        if width > head_dim:
            spare = -(-width // head_dim) * head_dim - width
            missing -= widths[width] * (spare // 2)
            if head_dim % 2 and spare % 2:
                odd.append(width)
    for width in extra:
        gain = head_dim - -(-width // 2)
        if width <= head_dim and 2 * gain >= head_dim and missing > 0:
            taken = min(widths[width], -(-missing // gain))
            extra[width] = (taken, 0)
            missing -= taken * gain
            if head_dim % 2 and width % 2:
                odd.append(width)
    if missing > 0 and head_dim % 2 and (at_token * head_dim - 2 * read) % 2:
        at_token += 1
        missing -= (head_dim + 1) // 2
    for width in odd:
        gain = (head_dim + 1) // 2
        one = extra[width][0]
        taken = min(one or widths[width], max(0, -(-missing // gain)))
        extra[width] = (one - taken, taken) if one else (taken, 0)
        missing -= taken * gain
    return extra, at_token + max(0, -(-2 * missing // head_dim))


def exact_heads(widths: Mapping[int, int], coordinates: int, read: int, head_dim: int) -> int:
    """Heads that suffice exactly, at finite scores; none for a convolution that reads nothing.

    Args:
        As for `limit_heads`.

    Source: S.width of this project's ledger.

    >>> exact_heads({48: 4, 3: 4}, 768, 180, 64), exact_heads({}, 16, 0, 8)
    (28, 4)
    """
    if not coordinates:
        return 0
    extra, at_token = exact_groups(widths, coordinates, read, head_dim)
    own = sum(-(-width // head_dim) * number for width, number in widths.items())
    return own + sum(one + 2 * two for one, two in extra.values()) + at_token
