"""Equality: on the ringed grid the layer is the zero-padded convolution, whatever the kernel.

At a query whose T offsets are all keys, one of N, head h has the row

    (Σ_δ c_hδ S_δ + (u0_h + u1_h·N) J) / Z_h(N)                         (attention.py)

and the value map Z_h(N) Σ_δ' V_hδ' Pattern_δ'(W) (values.py). So the layer is

    Σ_δ Σ_δ' (Σ_h c_hδ V_hδ') S_δ X Pattern_δ'(W)
          + Σ_δ' (Σ_h (u0_h + u1_h·N) V_hδ') J X Pattern_δ'(W),

while the convolution is Σ_δ S_δ X Pattern_δ(W) (convolution.py). They agree for every kernel W,
every image X, every N and any number of channels in and out as soon as

    Σ_h c_hδ V_hδ' = [δ = δ'],      Σ_h u0_h V_hδ' = 0,      Σ_h u1_h V_hδ' = 0:

the (T+2) × heads matrix of the rows, times V, is the identity over two rows of zeros.

Why one query settles all image sizes. Nothing above depends on the query, or on the image but for
N, and N has dropped out. The ring makes the rest true: it lays zero tokens around the image as far
out as the offsets reach, so that every offset of every query is a key; and a zero token contributes
nothing, as a pixel outside the image contributes nothing to a zero-padded convolution.

Nor does the identity depend on what the keys hold. So for S.pad the ring is filled in any way,
before patches are cut; its tokens are then tokens of the filled image, and at the tokens inside the
layer is the convolution of the filled image.
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import product

from convattn_check import reading as read
from convattn_check.attention import Offset, Row, read_attention
from convattn_check.claims import Facts, require_claim
from convattn_check.convolution import Axis
from convattn_check.cost import Work, longest, whole_numbers
from convattn_check.reject import Reject, require, show
from convattn_check.values import Column, read_values

MOST_OFFSETS = 1024
FIELDS = (
    "kernel_size patch_size dilation stride stride_route kernel regime ring offsets pattern heads "
    "attention values"
)


def check_equality(claim: str, value: object) -> str:
    """Check the body; the sentence that follows from it."""
    body = read.fields(value, "body", FIELDS.split())
    facts, axes = _read_axes(claim, body)
    read.string(body["kernel"], "kernel", ["every"])

    offsets = list(product(*(axis.offsets() for axis in axes)))
    require(len(offsets) <= MOST_OFFSETS, "range", f"more than {MOST_OFFSETS} offsets")
    require(
        read.same(body["offsets"], offsets),
        "offsets",
        f"offsets {show(body['offsets'])}, expected {show(offsets)}",
    )
    items = read.items(body["pattern"], "pattern", len(axes))
    for number, axis in enumerate(axes):
        pattern = axis.pattern()
        require(
            read.same(items[number], pattern),
            "pattern",
            f"pattern[{number}] is {show(items[number])}, expected {show(pattern)}: tap indices by "
            f"[offset][output pixel][input pixel] for {axis}",
        )
    ring = _read_ring(body["ring"], axes)

    facts.offsets = len(offsets)
    facts.heads = read.integer(body["heads"], "heads", 1, MOST_OFFSETS + 1)
    attention = read_attention(body["attention"], offsets, facts.heads)
    facts.family, facts.score = attention.family, attention.score
    require(
        (facts.regime == "limit") == (facts.family == "one_hot_limit"),
        "realizable",
        f"the regime is {facts.regime!r}, expected 'limit' for one_hot_limit and 'finite' for "
        f"other families, and the family is {facts.family}",
    )
    require_claim(facts)
    require_identity(attention.rows, read_values(body["values"], attention, len(offsets)), offsets)
    scores = f"scores {facts.score} in the limit" if facts.score else "finite scores"
    equal = f"on the grid with the zero ring {ring} are the zero-padded convolution"
    if claim == "S.pad":
        equal = (
            f"on the image with a ring {ring} of tokens, filled in any way, are the convolution of "
            "that filled image at the tokens inside"
        )
    return (
        f"for every {facts.size} kernel, D_in, D_out and image of whole patches: {facts.heads} "
        f"heads ({facts.family}, {scores}) {equal}; patch {facts.patch}, dilation "
        f"{facts.dilation}, stride {facts.stride} ({body['stride_route']})"
    )


def require_identity(
    rows: Sequence[Row], columns: Sequence[Column], offsets: Sequence[Offset]
) -> None:
    """Rowsᵀ V = identity over two rows of zeros, column by column in whole numbers.

    The rows are scaled by their common denominator R, each column by its own, L; the sums must be
    R·L at δ' and 0 elsewhere.
    """
    work = Work("the sums over the heads")
    scaled, common = whole_numbers([x for row in rows for x in row.values()], "attention")
    remaining = iter(scaled)
    whole = [[(at, next(remaining)) for at in row] for row in rows]
    long = [longest(entry for _, entry in row) for row in whole]
    for number, column in enumerate(columns):
        factors, own = whole_numbers([*column.values()], "values")
        unit = common * own
        sums = [0] * (len(columns) + 2)
        for head, factor in zip(column, factors, strict=True):
            work.add(len(whole[head]), long[head], factor.bit_length())
            for at, entry in whole[head]:
                sums[at] += entry * factor
        for at, total in enumerate(sums):
            if total != (unit if at == number else 0):
                names = [*(f"c at {offset}" for offset in offsets), "u0", "u1"]
                raise Reject(
                    "identity",
                    f"sum over h of ({names[at]} of head h) * V[h][{offsets[number]}] is "
                    f"{show(Fraction(total, unit))}, expected {int(at == number)}",
                )


def _read_axes(claim: str, body: dict[str, object]) -> tuple[Facts, list[Axis]]:
    kernel = read.sides(body["kernel_size"], "kernel_size", None)
    patch, dilation, stride = (
        read.sides(body[name], name, len(kernel)) for name in ("patch_size", "dilation", "stride")
    )
    direct = read.string(body["stride_route"], "stride_route", ["tokens", "subsample"]) == "tokens"
    for s, p in zip(stride, patch, strict=True):
        require(
            not direct or p % s == 0,
            "stride",
            f"stride {s} straight to the tokens, expected a divisor of the patch size {p}",
        )
    skips = stride if direct else (1,) * len(kernel)
    regime = read.string(body["regime"], "regime", ["limit", "finite"])
    facts = Facts("equality", claim, kernel, patch, dilation, stride, regime=regime)
    return facts, [Axis(*sizes) for sizes in zip(kernel, patch, dilation, skips, strict=True)]


def _read_ring(value: object, axes: Sequence[Axis]) -> list[list[int]]:
    """Every offset of every query is a key: low ≥ -min offset, high ≥ max offset."""
    ring = read.array(
        value,
        "ring",
        lambda pair, at: read.integers(pair, at, 2, 0, read.LARGEST_POSITION),
        len(axes),
    )
    for number, ((low, high), axis) in enumerate(zip(ring, axes, strict=True)):
        first, last = min(axis.offsets()), max(axis.offsets())
        require(
            low >= -first and high >= last,
            "ring",
            f"axis {number} has {low} zero tokens before and {high} after, expected at least "
            f"{-first} and {last}: the offsets reach that far",
        )
    return ring
