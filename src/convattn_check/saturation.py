"""Saturation: how small the weights of a quadratic head are, off its target."""

from fractions import Fraction
from math import factorial

from convattn_check import reading as read
from convattn_check.claims import Facts, require_claim
from convattn_check.reject import require, show


def check_saturation(claim: str, value: object) -> str:
    """Whether a nearest neighbour's weight under the quadratic score is above 2^exponent.

    Where the target t is a key, a key at distance 1 from it has w = e^-α / Σ_k e^(-α|k - t|²). The
    sum is at least 1 (k = t) and at most θ², θ = Σ_n e^(-αn²), taken over all of Z²; and θ² < 2 for
    α ≥ 2 (θ < 1.28). So e^-α / 2 < w ≤ e^-α, and no key but the target has more than e^-α.

    e: Σ_(n≤M) 1/n! < e < Σ_(n≤M) 1/n! + 1/(M!·M), here M = 40.
    """
    names = ("alpha", "exponent", "e_lower", "e_upper", "conclusion")
    body = read.fields(value, "body", names)
    alpha = read.integer(body["alpha"], "alpha", 2, read.LARGEST_POSITION)
    exponent = read.integer(body["exponent"], "exponent", -read.LARGEST_POSITION, 0)
    conclusion = read.string(body["conclusion"], "conclusion", ["survives", "vanishes"])
    require_claim(Facts("saturation", claim, alpha=alpha, exponent=exponent, conclusion=conclusion))
    lower, upper = (read.rational(body[name], name) for name in ("e_lower", "e_upper"))
    for bound in (lower, upper):
        require(bound.denominator < 10**100, "range", "a bound of e has over 100 digits")
    partial = sum((Fraction(1, factorial(n)) for n in range(41)), Fraction())
    require(
        0 < lower <= partial and partial + Fraction(1, factorial(40) * 40) <= upper < 3,
        "series",
        f"e_lower {show(lower)} and e_upper {show(upper)} do not enclose the sum of 1/n! to n = 40 "
        "and that sum + 1/(40! 40), which enclose e",
    )
    threshold = Fraction(2) ** -exponent
    survives = conclusion == "survives"
    require(
        2 * upper**alpha < threshold if survives else lower**alpha > threshold,
        "saturation",
        f"with alpha {alpha} the weight of a neighbour is not shown to be "
        f"{'above' if survives else 'below'} 2^{exponent}",
    )
    if survives:
        return (
            f"alpha = {alpha}: a nearest neighbour of the target keeps a weight above 2^{exponent}"
        )
    return f"alpha = {alpha}: every weight but the target's is below 2^{exponent}"
