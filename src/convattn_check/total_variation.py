"""Total variation: how far a row of attention is from what it tends to, as half the L1 distance.

Rationals stand on the safe side of the exponential: for x > 0 all terms of its series are positive,
so that with s = Σ_(n ≤ terms) x^n/n! it is e^x > s and e^-x < 1/s.

A bound may be true and say nothing. So there are at least 2x terms: each term after them is at most
half the one before, so that together they are at most the last, and e^x < 2s. The rational for e^x
or e^-x is within a factor 2 of s or 1/s, and the bound at most twice what follows from it.
"""

from fractions import Fraction

from convattn_check import reading as read
from convattn_check.claims import Facts, require_claim
from convattn_check.reject import require, show

FIELDS = {
    "quadratic": ("score", "sharpness", "terms", "power", "bound", "axes", "squares"),
    "bias": ("score", "sharpness", "terms", "power", "bound", "keys"),
}
MOST_TERMS = 512  # of the series of the exponential
MOST_SQUARES = 8  # terms e^(-αn²) that are not left to the tail
LARGEST_DENOMINATOR = 1_000  # of the sharpness, which is raised to the number of terms
LONGEST_DENOMINATOR = 10**100  # of the power and the bound
LOOSEST = 2  # how many times what can be shown a bound may be


def check_total_variation(claim: str, value: object) -> str:
    """The distance of the rows of quadratic heads, or of one bias, from their limit."""
    stated = value.get("score") if isinstance(value, dict) else None
    score = read.string(stated, "score", FIELDS)
    body = read.fields(value, "body", FIELDS[score])
    require_claim(Facts("total_variation", claim, score=score))
    sharpness, power, bound = (
        read.rational(body[name], name) for name in ("sharpness", "power", "bound")
    )
    require(
        0 < sharpness <= read.LARGEST_POSITION and sharpness.denominator <= LARGEST_DENOMINATOR,
        "range",
        f"sharpness {show(sharpness)}, expected more than 0, up to {read.LARGEST_POSITION}, with a "
        f"denominator of up to {LARGEST_DENOMINATOR}",
    )
    for number in (power, bound):
        require(
            number > 0 and number.denominator < LONGEST_DENOMINATOR,
            "range",
            f"{show(number)}, expected a positive number with a denominator of up to 100 digits",
        )
    require(bound < 1, "range", f"bound {show(bound)}: no total variation is above 1")
    terms = read.integer(body["terms"], "terms", 1, MOST_TERMS)
    require(
        terms >= 2 * sharpness, "series", f"{terms} terms, expected 2·{show(sharpness)} or more"
    )
    series = exponential_from_below(sharpness, terms)
    if score == "quadratic":
        return _quadratic(body, sharpness, power, bound, series)
    return _bias(body, sharpness, power, bound, series)


def exponential_from_below(exponent: Fraction, terms: int) -> Fraction:
    """Σ_(n ≤ terms) x^n/n!, below e^x for x > 0.

    >>> exponential_from_below(Fraction(2), 3)
    Fraction(19, 3)
    """
    total = term = Fraction(1)
    for n in range(1, terms + 1):
        term *= exponent * Fraction(1, n)
        total += term
    return total


def _quadratic(
    body: dict[str, object], alpha: Fraction, power: Fraction, bound: Fraction, series: Fraction
) -> str:
    """The scores -α|k - t|² on a rectangle of keys, for an integer target t, inside or outside.

    The row is a product over the axes. On one axis let p be the key nearest to t, at distance d, 0
    if t is a key. A key n steps from p is at distance d + n (n if d = 0, on either side), so its
    score is at least αn² below p's, as (d + n)² - d² ≥ n². So p's weight there is more than 1/θ,
    θ = Σ_(n in Z) e^(-αn²), its weight in the row more than θ^-axes, and the total variation to p's
    one-hot row, which is one minus that weight, below 1 - θ^-axes.

    With e^-α ≤ r < 1 and L squares, θ ≤ 1 + 2 Σ_(n ≤ L) r^(n²) + 2 r^((L+1)²) / (1 - r): the later
    exponents are (L+1)², (L+1)² + 1, … at least.
    """
    axes = read.integer(body["axes"], "axes", 1, 2)
    squares = read.integer(body["squares"], "squares", 1, MOST_SQUARES)
    require(
        power < 1 and 1 <= power * series <= LOOSEST,
        "series",
        f"power {show(power)} is not shown to be at least e^-{show(alpha)} and below 1, or is more "
        f"than {LOOSEST} times what the series gives",
    )
    theta = 1 + 2 * sum((power ** (n * n) for n in range(1, squares + 1)), Fraction())
    scaled = theta * (1 - power) + 2 * power ** ((squares + 1) ** 2)  # θ's bound times 1 - r
    require(
        (1 - bound) * scaled**axes <= (1 - power) ** axes,
        "total_variation",
        f"1 - theta^-{axes} is not shown to be at most {show(bound)}",
    )
    require(
        (LOOSEST - bound) * scaled**axes >= LOOSEST * (1 - power) ** axes,
        "total_variation",
        f"the bound {show(bound)} is more than {LOOSEST} times what is shown",
    )
    return (
        f"quadratic heads with alpha = {show(alpha)} on {axes} axes: at every query of every "
        "rectangle of keys, borders included, the total variation between a row and the one-hot "
        f"row of the key nearest to the target is below {show(bound)}"
    )


def _bias(
    body: dict[str, object], logit: Fraction, power: Fraction, bound: Fraction, series: Fraction
) -> str:
    """One score M > 0 and N - 1 zeros: the row (w, 1, …, 1)/(w + N - 1) with w = e^M.

    Half its L1 distance to (1, 0, …, 0) is summed from its entries, for a rational w ≤ e^M. One
    minus the first entry, it falls as w grows, so that e^M gives no more.
    """
    keys = read.integer(body["keys"], "keys", 2, read.LARGEST_POSITION)
    require(
        power <= series <= LOOSEST * power,
        "series",
        f"power {show(power)} is not shown to be at most e^{show(logit)}, or {LOOSEST} times it is "
        "less than the series gives",
    )
    total = power + keys - 1
    row = [power, *[Fraction(1)] * (keys - 1)]  # both rows are written times the total
    one_hot = [total, *[Fraction(0)] * (keys - 1)]
    distance = sum((abs(a - b) for a, b in zip(row, one_hot, strict=True)), Fraction())
    require(
        distance <= 2 * bound * total,
        "total_variation",
        f"half the L1 distance is not shown to be at most {show(bound)}",
    )
    require(
        LOOSEST * distance >= 2 * bound * total,
        "total_variation",
        f"the bound {show(bound)} is more than {LOOSEST} times what is shown",
    )
    return (
        f"a bias M = {show(logit)} at one of {keys} keys: the total variation between the row and "
        f"that key's one-hot row is at most {show(bound)}"
    )
