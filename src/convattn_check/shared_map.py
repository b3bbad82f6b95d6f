"""No shared map: what every query could compute by itself, no value maps compute for all of them.

One axis is enough for a claim about images: an image of height one, and a kernel that is zero but
for its middle row, turn it into a counterexample on two axes.
"""

from fractions import Fraction

from convattn_check import reading as read
from convattn_check.claims import Facts, require_claim
from convattn_check.convolution import Axis
from convattn_check.cost import Work, longest, whole_numbers
from convattn_check.reject import Reject, require, show

MOST_HEADS = 1024
Head = tuple[list[list[int]], int]  # rows of numerators, and their denominator


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
    number = len(read.items(body["heads"], "heads"))
    require_claim(Facts("no_shared_map", claim, (size,), heads=number))
    require(number <= MOST_HEADS, "range", f"{number} heads, expected up to {MOST_HEADS}")
    heads = read.array(body["heads"], "heads", lambda head, at: _head(head, at, pixels))
    long = longest(entry for rows, _ in heads for row in rows for entry in row)
    work = Work("the sums over the heads")
    keys = range(pixels)
    taps = Axis(size, 1).taps()

    inclusion = read.items(body["inclusion"], "inclusion", pixels)
    for query, entry in enumerate(inclusion):
        inside = [query + tap for tap in taps if query + tap in keys]
        where = f"inclusion[{query}]"
        combinations = read.items(entry, where, len(inside))
        for target, item in zip(inside, combinations, strict=True):
            coefficients = read.rationals(item, where, len(heads))
            combination, unit = whole_numbers(
                [c / denominator for c, (_, denominator) in zip(coefficients, heads, strict=True)],
                where,
            )
            work.add(len(heads) * pixels, longest(combination), long)
            reached = [
                sum(c * rows[query][key] for c, (rows, _) in zip(combination, heads, strict=True))
                for key in keys
            ]
            if reached != [unit * (key == target) for key in keys]:
                weights = show([show(Fraction(x, unit)) for x in reached])
                raise Reject("inclusion", f"{where} for key {target} gives {weights}")

    entries = read.rationals(body["separator"], "separator", pixels * pixels)
    separator, unit = whole_numbers(entries, "separator")
    tap = read.integer(body["tap"], "tap", taps[0], taps[-1])
    for number, (rows, denominator) in enumerate(heads):
        work.add(pixels * pixels, longest(separator), long)
        product_with_head = sum(separator[q * pixels + k] * rows[q][k] for q in keys for k in keys)
        require(
            product_with_head == 0,
            "separator",
            f"head {number} and the separator give "
            f"{show(Fraction(product_with_head, unit * denominator))}, expected 0",
        )
    product_with_tap = sum(separator[q * pixels + q + tap] for q in keys if q + tap in keys)
    require(product_with_tap != 0, "separator", f"tap {tap} and the separator give 0")
    positive = all(entry > 0 for rows, _ in heads for row in rows for entry in row)
    return (
        f"{len(heads)} heads{' with finite scores' * positive} on {pixels} pixels "
        f"span, at each query, what a kernel of size {size} reads there, but no value maps make "
        f"the layer the convolution with the one tap {tap}"
    )


def _head(value: object, where: str, pixels: int) -> Head:
    """The rows a(q, k) of a head: nonnegative, each with the sum one.

    "relative": positive weights for the shifts -(n-1), …, n-1, normalised at each query: the
    softmax of finite scores that depend on the shift alone. "rows": as they are.
    """
    if not (isinstance(value, dict) and "relative" in value):
        body = read.fields(value, where, ["rows"])
        weight_rows = [
            read.rationals(row, where, pixels) for row in read.items(body["rows"], where, pixels)
        ]
        flat, unit = whole_numbers([weight for row in weight_rows for weight in row], where)
        rows = [flat[start : start + pixels] for start in range(0, len(flat), pixels)]
        for row, weights in zip(rows, weight_rows, strict=True):
            require(
                min(row) >= 0 and sum(row) == unit,
                "realizable",
                f"{where} has {show([show(x) for x in weights])}, expected weights with the sum 1",
            )
        return rows, unit
    shifts = range(1 - pixels, pixels)
    pairs = read.array(
        read.fields(value, where, ["relative"])["relative"],
        where,
        lambda pair, at: read.items(pair, at, 2),
        len(shifts),
    )
    for shift, (stated, _) in zip(shifts, pairs, strict=True):
        require(
            read.same(stated, shift),
            "realizable",
            f"{where} has the shift {show(stated)}, not {shift}",
        )
    whole, _ = whole_numbers([read.rational(weight, where) for _, weight in pairs], where)
    require(min(whole) > 0, "realizable", f"{where} has a weight that is not positive")
    rows = [whole[pixels - 1 - query :][:pixels] for query in range(pixels)]
    factors, unit = whole_numbers([Fraction(1, sum(row)) for row in rows], where)
    return [[w * factor for w in row] for row, factor in zip(rows, factors, strict=True)], unit
