"""Evidence of level ENCLOSED: how far softmax is from one-hot, by ball arithmetic."""

from itertools import product

import jax.numpy as jnp
import numpy as np
from flint import arb, ctx
from jaxtyping import Float, Int

from convattn.encodings.bias import BiasEncoding
from convattn_ledger.bounds.saturation import (
    PRECISION,
    bias_total_variation,
    quadratic_total_variation,
    quadratic_total_variation_bound,
    upper,
)
from convattn_ledger.claim import Evidence, EvidenceFailed, Level, Run

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
        summary = []
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
            summary.append(f"α={alpha:g}: TV < {upper(bound):.2g}")
        return f"grid {keys}, {len(centers)} centres, every query; " + ", ".join(summary)

    return Evidence(name, Level.ENCLOSED, check, assumes=ASSUMES)


def bias_saturation_enclosed(
    name: str, *, logits: tuple[float, ...], keys: tuple[int, ...]
) -> Evidence:
    """One-hot biases: the rows of the library's own scores, and their distance to the one-hot row.

    For N keys in a row and a query in the middle, half the L1 distance to the one-hot row is summed
    from the row itself, weight by weight in balls; it must agree with (N-1)/(e^M + N - 1), be
    positive, and lie below N·e^(-M), which tends to zero: that is the limit. A query without the
    key must have a row of equal scores.
    """

    def check(run: Run) -> str:
        summary = []
        for logit in logits:
            for count in keys:
                if count < 2:
                    raise EvidenceFailed(f"N={count}: total variation to a single key is no limit")
                query = (count - 1) // 2
                present, absent = (
                    _bias_row(logit, offset, np.arange(count) - query) for offset in (1, count)
                )
                if len(np.unique(absent)) != 1:
                    raise EvidenceFailed(f"M={logit}, N={count}: a row without its key is uneven")
                distance = distance_to_one_hot(present, query + 1)
                with ctx.workprec(PRECISION):
                    vanishing = count * (-arb(logit)).exp()
                formula = bias_total_variation(logit, count)
                agrees = abs(distance - formula) < distance * arb(2) ** -100
                if not (agrees and distance > 0 and distance < vanishing):
                    raise EvidenceFailed(
                        f"M={logit}, N={count}: total variation {distance}, but should lie between "
                        f"0 and N e^-M = {vanishing} and be {formula}"
                    )
            worst = upper(bias_total_variation(logit, max(keys)))
            summary.append(f"M={logit:g}: TV < {worst:.2g}")
        return f"rows of N keys, N in {keys}; at N = {max(keys)}: " + ", ".join(summary)

    return Evidence(name, Level.ENCLOSED, check, assumes=ASSUMES)


def _bias_row(
    logit: float, offset: int, shifts: Int[np.ndarray, " keys"]
) -> Float[np.ndarray, " keys"]:
    """The scores of a head with bias M at one offset, from the library's encoding."""
    encoding = BiasEncoding(jnp.full((1, 1), logit, jnp.float64), None, ((offset,),))
    return np.asarray(encoding.shift_scores(shifts[:, None], len(shifts))[0], np.float64)


def distance_to_one_hot(scores: Float[np.ndarray, " keys"], target: int) -> arb:
    """Half the L1 distance of softmax(scores) to the one-hot row, enclosed.

    Keys of equal score have equal weight, so each distinct score is exponentiated once.
    """
    with ctx.workprec(PRECISION):
        values, counts = (array.tolist() for array in np.unique(scores, return_counts=True))
        powers = [arb(value).exp() for value in values]
        total = sum((power * n for power, n in zip(powers, counts, strict=True)), arb())
        index = values.index(float(scores[target]))
        counts[index] -= 1
        others = sum((power / total * n for power, n in zip(powers, counts, strict=True)), arb())
        return (1 - powers[index] / total + others) / 2
