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
coordinate that other tokens read takes a place in the group of each of these δ and two in the
group of the token itself; one that no other token reads takes two places in one group, with
different heads. A group of g heads with w places taken has room for ⌊(g·d - w)/2⌋ of the latter,
if g ≥ 2. A second head is first given to the groups where it makes the most room.

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
) -> tuple[dict[int, int], int]:
    """How many groups of each width get a second head, and the heads of the token's own group.

    >>> exact_groups({48: 4, 3: 4}, 768, 180, 64)
    ({3: 4, 48: 4}, 12)
    """
    narrow = {width: number for width, number in sorted(widths.items()) if width <= head_dim}
    at_token = max(2, -(-2 * read // head_dim))
    places = (at_token * head_dim - 2 * read) // 2
    places += sum(
        number * ((-(-width // head_dim) * head_dim - width) // 2)
        for width, number in widths.items()
        if width > head_dim
    )
    missing = max(0, coordinates - read - places)
    second = {}
    for width, number in narrow.items():
        gain = (2 * head_dim - width) // 2
        second[width] = min(number, -(-missing // gain)) if 2 * gain >= head_dim else 0
        missing = max(0, missing - second[width] * gain)
    if missing:
        parity = (at_token * head_dim - 2 * read) % 2
        at_token += -(-(2 * missing - parity) // head_dim)
    return second, at_token


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
    second, at_token = exact_groups(widths, coordinates, read, head_dim)
    own = sum(-(-width // head_dim) * number for width, number in widths.items())
    return own + sum(second.values()) + at_token
