"""How far softmax is from one-hot at finite parameters, as rigorous enclosures.

Everything here is ball arithmetic (python-flint's `arb`): a result is an interval that contains
the true number, and a comparison is True only if it holds for the whole interval.

Total variation is half the L1 distance of two rows. Write θ(α) = Σ_(n ∈ Z) e^(-αn²).

**Quadratic.** On a rectangle of keys the quadratic head factors over the axes. Let q + Δ be the
target, or the nearest key to it (its projection onto the rectangle). On one axis the other keys
stand at distances 1, 2, … on each side of that key, and their scores fall below its score by at
least α times the squared distance: for a target inside by |n|² exactly, and for a target beyond
the edge by (d + n)² - d² ≥ n². So the weight of the nearest key is at least 1/θ on each axis,
and

    TV = 1 - weight ≤ 1 - θ(α)^(-axes).

**Bias.** One score M and N - 1 zeros: TV = (N - 1)/(e^M + N - 1), exactly.
"""

import math

import flint
from flint import arb

PRECISION = 4096  # bits: enough to tell e^(-α·n²) of a missing neighbour from zero


def theta(alpha: arb | float) -> arb:
    """θ(α) = Σ_n e^(-αn²), enclosed: the terms up to n = 64, and a geometric bound on the tail.

    Args:
        alpha: α ≥ 0.05, so that the tail is small.

    >>> theta(1.0).overlaps(arb("1.77263720482665 +/- 1e-14"))
    True
    """
    with flint.ctx.workprec(PRECISION):
        exponent = arb(alpha)
        if not exponent >= arb("0.05"):
            raise ValueError(
                f"alpha={alpha}, but expected at least 0.05: below that 64 terms do not enclose "
                "θ(α); such a head attends to thousands of keys"
            )
        total = arb(1)
        for n in range(1, 65):
            total += 2 * (-exponent * n * n).exp()
        # n ≥ 65: n² ≥ 65 n, so the tail is at most 2 r^65/(1 - r) with r = e^(-65 α).
        ratio = (-65 * exponent).exp()
        tail = 2 * ratio**65 / (1 - ratio)
        return total + tail.union(arb(0))


def quadratic_total_variation_bound(alpha: arb | float, axes: int = 2) -> arb:
    """1 - θ(α)^(-axes): at every query, border included, against the nearest key's one-hot.

    Source: S.saturation of this project's ledger.

    >>> bool(quadratic_total_variation_bound(46.0) < 1e-19)
    True
    """
    with flint.ctx.workprec(PRECISION):
        return 1 - theta(alpha) ** (-axes)


def quadratic_total_variation(
    alpha: float, keys: tuple[int, ...], query: tuple[int, ...], center: tuple[int, ...]
) -> arb:
    """The total variation itself, enclosed: one minus the weight of the nearest key.

    Args:
        All positions in tokens; `query` counts from the first key.
    """
    with flint.ctx.workprec(PRECISION):
        weight = arb(1)
        for size, q, delta in zip(keys, query, center, strict=True):
            squares = [(k - q - delta) ** 2 for k in range(size)]
            least = min(squares)
            total = arb(0)
            for square in squares:
                total += (-arb(alpha) * (square - least)).exp()
            weight /= total
        return 1 - weight


def bias_total_variation(logit: arb | float, number_of_keys: int) -> arb:
    """(N - 1)/(e^M + N - 1), enclosed: at every query whose target exists.

    Source: S.saturation of this project's ledger; L21 eq. 10.

    >>> bool(bias_total_variation(40.0, 28) < 1.2e-16)
    True
    """
    with flint.ctx.workprec(PRECISION):
        others = arb(number_of_keys - 1)
        return others / (arb(logit).exp() + others)


def upper(ball: arb) -> float:
    """A float that is certainly not below the ball.

    >>> upper(arb(1) / 3) >= 1 / 3, upper((-arb(1000)).exp()) > 0
    (True, True)
    """
    with flint.ctx.workprec(PRECISION):
        return math.nextafter(float(ball.upper()), math.inf)
