"""Approximation: how near a given number of heads comes to one given kernel.

The distance is the squared Frobenius norm of the difference of the two linear maps of the image,
per query whose offsets are all tokens of the image. F holds every entry of the convolution's once,
with all its rows (p, q, i, j). (At a query with offsets on a ring of zero tokens the layer's
distance is no larger, but the bounds need not hold: on an image of one token one head does without
error.)

*The layer.* It puts F X at the offsets and, as F x = 0 is demanded, nothing elsewhere
(given_kernel.py). So its distance is |F X - F|² = tr (X - I)ᵀ G (X - I) with the integer matrix G =
FᵀF. F x = 0 is the same as G x = 0.

*The bound.* With N heads F_δ is approached by combinations of N maps, so by a matrix of rank N, and
the distance is at least λ_(N+1) + … + λ_T, λ_1 ≥ λ_2 ≥ … the eigenvalues of G (Eckart and Young;
what is put elsewhere only adds). λ_i ≥ t if G - tI has at most T - i negative eigenvalues. By
Jacobi and Sylvester their number is that of the changes of sign in 1, Δ_1, …, Δ_T, the leading
minors, where none of these is 0.

*Within one head.* The layer has N heads and its distance is at most 1 + 10⁻⁶ times a lower bound
of λ_N + … + λ_T, which N - 1 heads cannot go below. The bound is positive, so N - 1 heads do err.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, floor

from convattn_check import reading as read
from convattn_check.claims import require_claim
from convattn_check.cost import Work, longest
from convattn_check.given_kernel import FIELDS, HEAD_FIELDS, read_kernel, read_products
from convattn_check.reject import Reject, require, show

SLACK = Fraction(1, 10**6)
MOST_OFFSETS = 32
LARGEST_THRESHOLD = 10**40  # its numerator and its denominator: the minors are products of T
MOST_PLACES = 40  # enough for any threshold


def check_approximation(claim: str, value: object) -> str:
    """Check the body; the sentence that follows from it."""
    body = read.fields(value, "body", [*FIELDS, *HEAD_FIELDS, "thresholds", "error"])
    facts, kernel = read_kernel("approximation", claim, body, MOST_OFFSETS)
    require_claim(facts)
    width, heads = facts.offsets, facts.heads
    require(heads <= width, "heads", f"{heads} heads for {width} offsets, expected no more")
    offsets = kernel.offsets()
    gram = [[0] * width for _ in range(width)]
    for row, count in kernel.rows():
        entries = [kernel.entry(row, offset) for offset in offsets]
        for left, line in zip(entries, gram, strict=True):
            for at, right in enumerate(entries):
                line[at] += count * left * right

    products, unit = read_products(body, facts)
    leftover = [
        sum(entry * line[-1] for entry, line in zip(row, products, strict=True)) for row in gram
    ]
    require(not any(leftover), "identity", "the heads together attend to keys beyond the offsets")
    off = [
        [line[at] - unit * (at == own) for at in range(width)] for own, line in enumerate(products)
    ]
    total = sum(
        off[a][at] * gram[a][b] * off[b][at]
        for a in range(width)
        for b in range(width)
        for at in range(width)
    )
    error = read.rational(body["error"], "error")
    computed = Fraction(total, unit * unit)
    require(error == computed, "error", f"error {show(error)}, expected {show(computed)}")

    thresholds = read.rationals(body["thresholds"], "thresholds", width - heads + 1)
    require(
        thresholds == sorted(thresholds, reverse=True) and thresholds[-1] >= 0,
        "inertia",
        "the thresholds are not in falling order, or one is negative",
    )
    require(
        all(max(t.numerator, t.denominator) < LARGEST_THRESHOLD for t in thresholds),
        "range",
        "a threshold has a numerator or a denominator of over 40 digits",
    )
    require(
        thresholds[0] > 0,
        "inertia",
        f"the thresholds are all 0: nothing shows that {heads - 1} heads err",
    )
    work = Work("the leading minors, for all thresholds together,")
    last = {threshold: index for index, threshold in enumerate(thresholds) if threshold}
    for threshold, index in last.items():  # of equal ones the last is allowed the fewest
        below, allowed = negative_eigenvalues(gram, threshold, work), width - heads - index
        require(
            below <= allowed,
            "inertia",
            f"{below} of {width} eigenvalues of G lie below thresholds[{index}], expected "
            f"{allowed} at most",
        )
    reached = sum(thresholds, Fraction(0))
    require(
        error <= (1 + SLACK) * reached,
        "error",
        f"error {show(error)}, expected at most one part in a million above {show(reached)}",
    )
    bound = reached - thresholds[0]
    nearer = "heads without content come nearer than"
    optimum = f"no {heads} {nearer} {about(bound)}, " if bound else ""
    return (
        f"for this {facts.size} kernel with {kernel.channels[0]} channels in and "
        f"{kernel.channels[1]} out, patch {facts.patch}: {heads} heads at finite scores come "
        f"within {about(error, up=True)} of the convolution (squared Frobenius norm, per query "
        f"whose offsets are all tokens of the image); {optimum}no {heads - 1} {nearer} "
        f"{about(reached)}"
    )


def about(number: Fraction, *, up: bool = False) -> str:
    """A number that is not negative, cut or rounded up after six places, or at its first digit.

    >>> about(Fraction(2, 3)), about(Fraction(2, 3), up=True), about(Fraction(1, 10**8))
    ('0.666666', '0.666667', '0.00000001')
    """
    places = 6
    while 0 < number * 10**places < 1 and places < MOST_PLACES:
        places += 1
    scaled = number * 10**places
    whole, rest = divmod(ceil(scaled) if up else floor(scaled), 10**places)
    return f"{whole}.{rest:0{places}d}"


def negative_eigenvalues(matrix: Sequence[Sequence[int]], threshold: Fraction, work: Work) -> int:
    """How many eigenvalues of a symmetric integer matrix lie below the threshold.

    Bareiss without exchanging rows: the pivots are the leading minors of q·matrix - p·I.

    >>> work = Work("the leading minors")
    >>> negative_eigenvalues([[2, 1], [1, 2]], Fraction(5, 2), work)  # the eigenvalues are 1 and 3
    1
    """
    p, q = threshold.numerator, threshold.denominator
    rows = [[q * entry for entry in row] for row in matrix]
    for index, row in enumerate(rows):
        row[index] -= p
    previous, changes = 1, 0
    for index, top in enumerate(rows):
        pivot = top[index]
        if pivot == 0:
            raise Reject(
                "inertia",
                f"a leading minor of G - {show(threshold)} I is 0; choose another threshold",
            )
        changes += (pivot < 0) != (previous < 0)
        long = longest(top)
        for row in rows[index + 1 :]:
            factor = row[index]
            work.add(3 * (len(rows) - index), long, longest(row))
            for at in range(index, len(rows)):
                row[at] = (row[at] * pivot - factor * top[at]) // previous
        previous = pivot
    return changes
