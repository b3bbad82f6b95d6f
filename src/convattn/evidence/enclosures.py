"""Evidence of level ENCLOSED: how far softmax is from one-hot, by ball arithmetic."""

from itertools import product

from flint import arb, ctx

from convattn.bounds.saturation import (
    PRECISION,
    bias_total_variation,
    quadratic_total_variation,
    quadratic_total_variation_bound,
    upper,
)
from convattn.ledger.claim import Evidence, EvidenceFailed, Level, Run

ASSUMES = "ball arithmetic (python-flint); a comparison counts only if it is true of the whole ball"


def total_variation_enclosed(
    name: str,
    *,
    alphas: tuple[float, ...],
    keys: tuple[int, ...] = (5, 7),
    centers: tuple[tuple[int, ...], ...] = ((0, 0), (1, -1), (2, 2)),
) -> Evidence:
    """Quadratic heads: 0 < TV ≤ 1 - θ^(-axes) at every query of a grid, and the bound goes to zero.

    The bound is compared with 2·axes·e^(-α)/(1 - e^(-α)), which tends to zero: that is the limit.
    Targets outside the grid are included; there TV is to the nearest key's one-hot.
    """

    def check(run: Run) -> str:
        seen = []
        for alpha in alphas:
            bound = quadratic_total_variation_bound(alpha, len(keys))
            with ctx.workprec(PRECISION):
                decay = (-arb(alpha)).exp()
                vanishing = 2 * len(keys) * decay / (1 - decay)
                if not bound < vanishing:
                    raise EvidenceFailed(
                        f"alpha={alpha}: 1 - θ^-{len(keys)} = {bound}, but should be below "
                        f"{vanishing}, which tends to zero"
                    )
            for query in product(*(range(n) for n in keys)):
                for center in centers:
                    distance = quadratic_total_variation(alpha, keys, query, center)
                    if not (distance < bound and distance > 0):
                        raise EvidenceFailed(
                            f"alpha={alpha}, query {query}, centre {center}: total variation "
                            f"{distance}, but should lie between 0 and {bound}"
                        )
            seen.append(f"α={alpha:g}: TV < {upper(bound):.2g}")
        return f"grid {keys}, {len(centers)} centres, every query; " + ", ".join(seen)

    return Evidence(name, Level.ENCLOSED, check, assumes=ASSUMES)


def bias_saturation_enclosed(
    name: str, *, logits: tuple[float, ...], keys: tuple[int, ...]
) -> Evidence:
    """One-hot biases: TV = (N-1)/(e^M + N - 1), positive, below N·e^(-M), which tends to zero."""

    def check(run: Run) -> str:
        seen = []
        for logit in logits:
            for count in keys:
                distance = bias_total_variation(logit, count)
                with ctx.workprec(PRECISION):
                    vanishing = count * (-arb(logit)).exp()
                if not (distance > 0 and distance < vanishing):
                    raise EvidenceFailed(
                        f"M={logit}, N={count}: total variation {distance}, but should lie between "
                        f"0 and N e^-M = {vanishing}"
                    )
            worst = upper(bias_total_variation(logit, max(keys)))
            seen.append(f"M={logit:g}: TV < {worst:.2g}")
        return f"N in {keys}; at N = {max(keys)}: " + ", ".join(seen)

    return Evidence(name, Level.ENCLOSED, check, assumes=ASSUMES)
