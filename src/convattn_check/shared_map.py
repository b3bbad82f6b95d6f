"""No shared map: what every query could compute by itself, no value maps compute for all of them.

One axis is enough for a claim about images: an image of height one, and a kernel that is zero but
for its middle row, turn it into a counterexample on two axes.
"""

from fractions import Fraction

from convattn_check import reading as read
from convattn_check.claims import Facts, require_claim
from convattn_check.convolution import Axis
from convattn_check.reject import require, show

MOST_HEADS = 1024


def check_no_shared_map(claim: str, value: object) -> str:
    """The spans hold at every query, and yet no value maps serve all queries.

    Span: at query q each e_(q+δ) in the image is a combination of the heads' rows at q. No map: if
    value maps made the layer the convolution with the one tap δ from one channel to one, they would
    be numbers w_h with Σ_h w_h a_h(q, k) = E_δ(q, k) = [k = q + δ]; but the separator y has
    Σ y a_h = 0 for every head and Σ y E_δ ≠ 0. (A bias is 0: take the image 0.) Repeating heads
    changes neither, so there are counterexamples with any larger number of heads.
    """
    names = ("kernel_size", "pixels", "heads", "inclusion", "separator", "tap")
    body = read.fields(value, "body", names)
    (size,) = read.sides(body["kernel_size"], "kernel_size", 1)
    (pixels,) = read.sides(body["pixels"], "pixels", 1)
    heads = read.array(body["heads"], "heads", lambda head, at: _head(head, at, pixels))
    require_claim(Facts("no_shared_map", claim, (size,), heads=len(heads)))
    require(len(heads) <= MOST_HEADS, "range", f"more than {MOST_HEADS} heads")
    keys = range(pixels)
    taps = Axis(size, 1).taps()

    inclusion = read.items(body["inclusion"], "inclusion", pixels)
    for query, given in enumerate(inclusion):
        inside = [query + tap for tap in taps if query + tap in keys]
        where = f"inclusion[{query}]"
        combinations = read.items(given, where, len(inside))
        for target, item in zip(inside, combinations, strict=True):
            combination = read.rationals(item, where, len(heads))
            reached = [
                sum((c * head[query][key] for c, head in zip(combination, heads, strict=True)), _0)
                for key in keys
            ]
            require(
                reached == [int(key == target) for key in keys],
                "inclusion",
                f"{where} for key {target} gives {show([show(x) for x in reached])}",
            )

    separator = read.rationals(body["separator"], "separator", pixels * pixels)
    y = [separator[query * pixels :][:pixels] for query in keys]
    tap = read.integer(body["tap"], "tap", taps[0], taps[-1])
    for number, head in enumerate(heads):
        product_with_head = sum((y[q][k] * head[q][k] for q in keys for k in keys), _0)
        require(
            product_with_head == 0,
            "separator",
            f"head {number} and the separator give {show(product_with_head)}, expected 0",
        )
    product_with_tap = sum((y[q][q + tap] for q in keys if q + tap in keys), _0)
    require(product_with_tap != 0, "separator", f"tap {tap} and the separator give 0")
    positive = all(entry > 0 for head in heads for row in head for entry in row)
    return (
        f"{len(heads)} heads{' with finite scores' * positive} on {pixels} pixels "
        f"span, at each query, what a kernel of size {size} reads there, but no value maps make "
        f"the layer the convolution with the one tap {tap}"
    )


_0 = Fraction(0)


def _head(value: object, where: str, pixels: int) -> list[list[Fraction]]:
    """The rows a(q, k) of a head: nonnegative, each with the sum one.

    "relative": positive weights for the shifts -(n-1), …, n-1, normalised at each query: the
    softmax of finite scores that depend on the shift alone. "rows": as they are.
    """
    if not (isinstance(value, dict) and "relative" in value):
        body = read.fields(value, where, ["rows"])
        rows = [
            read.rationals(row, where, pixels) for row in read.items(body["rows"], where, pixels)
        ]
        for row in rows:
            require(
                min(row) >= 0 and sum(row) == 1,
                "realizable",
                f"{where} has {show([show(x) for x in row])}, expected weights with the sum 1",
            )
        return rows
    shifts = range(1 - pixels, pixels)
    pairs = read.array(
        read.fields(value, where, ["relative"])["relative"],
        where,
        lambda pair, at: read.items(pair, at, 2),
        len(shifts),
    )
    weights = {}
    for shift, (given, weight) in zip(shifts, pairs, strict=True):
        require(
            read.same(given, shift),
            "realizable",
            f"{where} has the shift {show(given)}, not {shift}",
        )
        weights[shift] = read.rational(weight, where)
    require(min(weights.values()) > 0, "realizable", f"{where} has a weight that is not positive")
    totals = [sum(weights[k - q] for k in range(pixels)) for q in range(pixels)]
    return [[weights[k - q] / totals[q] for k in range(pixels)] for q in range(pixels)]
