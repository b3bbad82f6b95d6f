"""Kernel heads: at finite scores one given kernel takes exactly one head more than the rank of F.

They do: F X = F and F x = 0 (given_kernel.py). Then the heads together are the convolution at every
query whose offsets are all keys, for every N, with the same values; so with a ring of zero tokens
as wide as the offsets reach, at every query of every image.

One fewer does not. Let n be the order of a minor of F that is not 0, and let n heads at finite
scores be the convolution. F_δ = Σ_h A_h(q, q + δ) W_h for each δ that occurs at some query q
(lower_bound.py), so the n maps W_h span at least n dimensions: they are independent. At a shift σ
where the convolution puts nothing, 0 = Σ_h A_h(q, q + σ) W_h then makes the weights zero, which no
softmax of finite scores is. In an image of max|δ|, |σ| + 1 tokens a side all these shifts occur,
δ the columns of the minor.

Of S.group the kernel is that of a lifting convolution: the channels of a filter are neighbours,
turned 0 to 3 times, and for p4m its mirror image turned 0 to 3 times. A group whose filters are all
mirror images of others counts as p4m.

Fewer than n do not either. And n is the rank of F: with all u_h > 0, F x = 0 says that the n + 1
value maps are dependent, and F factors through them.

In the limit, with value maps that may grow without bound, n heads do if, and only if, some
combination y of F's rows is y ≥ 0 and not 0 (S.kernel of the ledger has the argument). If the value
maps are to stay bounded, the y have to span F's row space, which is not looked at here: with the
rows (0, 1, 0) and (1, 0, -1) there is a y, and yet two heads do not. Where there is no y a z > 0
with F z = 0 shows it, for y·z = 0; then the limit takes n + 1 heads too, bounded or not, in an
image in which all offsets occur.

Ranks are over the rationals, and so over the reals and every field of characteristic 0.
"""

from fractions import Fraction

from convattn_check import reading as read
from convattn_check.claims import require_claim
from convattn_check.cost import Work, longest, whole_numbers
from convattn_check.given_kernel import (
    FIELDS,
    HEAD_FIELDS,
    GivenKernel,
    furthest,
    read_kernel,
    read_minor,
    read_products,
    require_tokens,
)
from convattn_check.reject import Reject, require, show

BOUND_FIELDS = ("rows", "columns", "determinant", "unread", "tokens_per_side", "limit")


def check_kernel_heads(claim: str, value: object) -> str:
    """Check the body; the sentence that follows from it."""
    body = read.fields(value, "body", [*FIELDS, *HEAD_FIELDS, *BOUND_FIELDS])
    facts, kernel = read_kernel("kernel_heads", claim, body)
    if claim == "S.group":
        facts.group = _lifted_from(kernel)
    require_claim(facts)
    offsets = kernel.offsets()
    flattened = [[kernel.entry(row, offset) for offset in offsets] for row, _ in kernel.rows()]
    products, unit = read_products(body, facts)
    long = longest(entry for line in products for entry in line)
    Work("F X").add(len(flattened) * len(offsets) * (len(offsets) + 1), long, 64)
    for row in flattened:
        for at, expected in enumerate([*row, 0]):
            mixture = sum(entry * line[at] for entry, line in zip(row, products, strict=True))
            if mixture != expected * unit:
                raise Reject(
                    "identity",
                    f"at {offsets[at] if at < len(offsets) else 'u'} the heads put "
                    f"{show(Fraction(mixture, unit))}, expected {show(expected)}",
                )

    rank, most = facts.heads - 1, read.LARGEST_POSITION
    rows, columns = read_minor(body, kernel, rank)
    unread = read.integers(body["unread"], "unread", len(kernel.axes), -most, most)
    require(
        all(kernel.entry(row, unread) == 0 for row, _ in kernel.rows()),
        "unread",
        f"the convolution reads the token at {unread}, expected one where it puts nothing",
    )
    extra = _limit_extra(body["limit"], kernel, rows, flattened)
    shifts = [*columns, unread, *(offsets if extra else ())]
    tokens = furthest(shifts)
    require_tokens(
        body,
        tokens,
        "one more than the furthest of the columns and the unread shift, and of all offsets with "
        "'positive'",
    )
    growing = "" if extra else ", with value maps that may grow without bound"
    return (
        f"for this {facts.size} kernel with {kernel.channels[0]} channels in and "
        f"{kernel.channels[1]} out, patch {facts.patch}: {rank + 1} heads at finite scores, with a "
        "zero ring and values that serve every image size, are the zero-padded convolution; on "
        f"{tokens} tokens or more no fewer are, whatever they attend to by position, and in the "
        f"limit it takes exactly {rank + extra}{growing}"
    )


def _lifted_from(kernel: GivenKernel) -> str:
    """The group of which four or eight neighbouring outputs are the copies of one filter."""
    inputs, outputs = kernel.channels
    side = kernel.axes[0].offsets()
    if kernel.size != (len(side),) * 2 or max(kernel.patch) > 1 or outputs % 4:
        return ""
    copies = [
        [
            [[kernel.entry([0] * 4 + [c, o], (y, x)) for c in range(inputs)] for x in side]
            for y in side
        ]
        for o in range(outputs)
    ]
    for o in range(outputs):
        turned = [list(line) for line in zip(*copies[o], strict=True)][::-1]
        if o % 4 < 3 and turned != copies[o + 1]:
            return ""
    halves = zip(copies[::8], copies[4::8], strict=outputs % 8 == 0)
    mirrored = all([line[::-1] for line in one] == other for one, other in halves)
    return "p4m" if outputs % 8 == 0 and mirrored else "p4"


def _limit_extra(
    value: object, kernel: GivenKernel, rows: list[list[int]], flattened: list[list[int]]
) -> int:
    """0 with the coefficients of a nonnegative combination of the minor's rows, 1 with a z > 0."""
    offsets = kernel.offsets()
    if isinstance(value, dict) and "positive" in value:
        body = read.fields(value, "limit", ["positive"])
        positive = read.rationals(body["positive"], "limit.positive", len(offsets))
        z, _ = whole_numbers(positive, "limit.positive")
        dots = [sum(a * b for a, b in zip(row, z, strict=True)) for row in flattened]
        require(
            min(z) > 0 and not any(dots),
            "limit",
            f"positive has the least entry {show(min(positive))}, expected above 0, and F z = 0",
        )
        return 1
    body = read.fields(value, "limit", ["combination"])
    combination = read.rationals(body["combination"], "limit.combination", len(rows))
    coefficients, unit = whole_numbers(combination, "limit.combination")
    y = [
        sum(c * kernel.entry(row, offset) for c, row in zip(coefficients, rows, strict=True))
        for offset in offsets
    ]
    least = show(Fraction(min(y), unit))
    require(
        min(y) >= 0 and any(y),
        "limit",
        f"the combination has the least entry {least}, expected none below 0, and not all 0",
    )
    return 0
