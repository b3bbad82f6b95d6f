"""N.disperse: softmax over bounded scores disperses, at exactly this rate; what it costs not to.

Claimed. Softmax must spread its attention ever more thinly as the number of items grows, whatever a
transformer has learned.
True. Not judged, as only the abstract was read; it must where scores keep a bounded range, and need
not where their range grows with the logarithm of the number of items.

Printed. Veličković et al. 2025, abstract: "even for tasks as simple as finding the maximum key, any
learned circuitry must disperse as the number of items grows at test time. We attribute this to a
fundamental limitation of the softmax function to robustly approximate sharp functions with
increasing problem size, prove this phenomenon theoretically". Hayase and Karakida,
arXiv:2605.12697, abstract, give the inverse temperature at which softmax concentrates by the number
of scores near the largest; Yang et al., arXiv:2412.09925, is known by its title, "Simulating Hard
Attention Using Soft Attention". Only the abstract was read; Lemma 2.1 (scores between two bounds, a
temperature above zero: each coefficient is Θ(1/n)) and Theorem 2.2 (items from a finite set,
continuous layers: each coefficient tends to zero) are known here from summaries, so nothing is said
about their wording.

Verified. Let n scores, divided by the temperature, lie in an interval of length S. (1) Every weight
lies between 1/(1 + (n-1)e^S) and e^S/(e^S + n - 1); both are attained. So n times a weight lies
between e^(-S) and e^S, and as n → ∞ no smaller interval will do. (2) Weights must disperse if and
only if S(n) - log n → -∞: that is where the largest weight that the range S(n) permits tends to
zero. It holds with S bounded: where items and positions enter through features from one compact
set, for all n, and the layers are continuous, no size enters and the feature vectors are mixed by
convex combinations. (3) The exact price of not dispersing, n ≥ 2: a weight of 1 - ε + ε/n at one of
n keys takes the range M(n) = log(1 + n(1/ε - 1)) at least, and one score M(n) among zeros attains
it. M(n) - log n → log(1/ε - 1). (4) Finite parameters do not force bounded scores: a quadratic
relative encoding of fixed α gives the key at its centre more than θ(α)^(-axes), θ(α) = Σ_k
e^(-αk²), at every n, as its scores grow with the distance (S.saturation). Nor do dispersed weights
force a dispersed function: with any fixed M ≠ 0, where every weight is Θ(1/n), (2m+1)² + 1 heads
are exactly a convolution, a function of (2m+1)² tokens (S.finite); their values grow like n/(e^M -
1).

Repair. Not judged: the paper's text could not be read. "Any learned circuitry" in its abstract
holds for those whose scores keep a bounded range as the number of items grows. Relative positions
whose scores are unbounded, a temperature or a bias of log n, escape; and it is the coefficients
that disperse, not always the function.

Proof. *The idea:* a weight is 1/(1 + Σ e^(s_j - s_k)) over the n - 1 other keys, and each
difference lies in [-S, S].

(1) All at -S, or all at S, is attained. For S ≥ 0 and n ≥ 1, n/(1 + (n-1)e^S) ≥ e^(-S) and
n·e^S/(e^S + n - 1) ≤ e^S, both equivalent to e^S ≥ 1; as n → ∞ they tend to these ends.

(2) e^S/(e^S + n - 1) → 0 iff (n - 1)e^(-S) → ∞. Convex combinations stay in the convex hull of the
image of a compact set, which is compact; by induction over the layers so are all queries and keys,
and their products are bounded.

(3) The largest weight of range S is e^S/(e^S + n - 1), increasing in S, and with e^S = 1 +
n(1/ε - 1) it is (1 + n(1/ε - 1))/(n/ε) = 1 - ε + ε/n.

(4) S.saturation; S.finite, whose values are M_δ/(1 - n/(e^M + n - 1)) = M_δ(e^M +
n - 1)/(e^M - 1). ∎
"""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
from flint import arb, ctx

from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict, require
from convattn_ledger.bounds.saturation import PRECISION, quadratic_total_variation, theta
from convattn_ledger.evidence.enclosures import ASSUMES
from convattn_ledger.evidence.exact_attention import exact_softmax
from convattn_ledger.evidence.softmax_rounding import ASSUMPTION, weights_within

BITS = 256


def least_weight(keys, power):
    """1/(1 + (n-1)e^S), for e^S as a fraction or a ball."""
    return 1 / (1 + (keys - 1) * power)


def greatest_weight(keys, power):
    """e^S/(e^S + n - 1)."""
    return power / (power + keys - 1)


def bounds_in_fractions(run: Run) -> str:
    """Integer scores of a range S, 3/2 for e: between the bounds, which are attained."""
    cases, base = 20 if run.quick else 200, Fraction(3, 2)
    for case in range(cases):
        rng = run.rng(case)
        keys, reach = int(rng.integers(2, 12)), int(rng.integers(1, 6))
        scores = rng.integers(0, reach + 1, (3, keys))
        scores[1], scores[2] = 0, reach
        scores[1, 0], scores[2, 0] = reach, 0
        weights = exact_softmax(scores, base)
        least, greatest = least_weight(keys, base**reach), greatest_weight(keys, base**reach)
        if weights.min() < least or weights.max() > greatest:
            raise EvidenceFailed(f"case {case}: {weights} leave [{least}, {greatest}]")
        attained = (weights[2, 0], weights[1, 0])
        require(attained == (least, greatest), f"case {case}: {attained}, not {least}, {greatest}")
    return f"{cases} cases, up to 11 keys: between the bounds, and both attained"


def bounded_scores(run: Run) -> str:
    """n times the extreme weights stays in (e^(-S), e^S), and comes within 1/1000 of the ends."""
    summary = []
    for span in (0.5, 4.0, 10.0):
        with ctx.workprec(BITS):
            power = arb(span).exp()
            for exponent in range(1, 13):
                keys = 10**exponent
                low = keys * least_weight(keys, power)
                high = keys * greatest_weight(keys, power)
                if not (1 / power < low and low < 1 and high > 1 and high < power):
                    raise EvidenceFailed(f"S = {span}, n = {keys}: n·w from {low} to {high}")
            near = (low * power - 1 < arb("0.001")) and (1 - high / power < arb("0.001"))
            require(bool(near), f"S = {span}: {low} and {high} do not come near the ends")
        summary.append(f"S = {span:g}")
    return f"n = 10 to 10¹², {', '.join(summary)}: n times a weight within (e^-S, e^S), sharply"


def score_needed(keys: int, uniform_weight: arb) -> arb:
    """M(n) = log(1 + n(1/ε - 1))."""
    return (1 + keys * (1 / uniform_weight - 1)).log()


def price(run: Run) -> str:
    """At M(n) the weight is 1 - ε + ε/n; a little below M(n) no scores reach it."""
    with ctx.workprec(BITS):
        for uniform_weight in (arb("0.5"), arb("0.01"), arb("1e-6")):
            for exponent in range(1, 9):
                keys = 10**exponent
                expected = 1 - uniform_weight + uniform_weight / keys
                needed = score_needed(keys, uniform_weight)
                reached = greatest_weight(keys, needed.exp())
                less = greatest_weight(keys, (needed - arb("1e-9")).exp())
                if not (abs(reached - expected) < arb(2) ** -200 and less < expected):
                    raise EvidenceFailed(
                        f"ε = {uniform_weight}, n = {keys}: {reached}, not {expected}"
                    )
            excess = needed - arb(keys).log() - (1 / uniform_weight - 1).log()
            require(
                bool(abs(excess) < arb("1e-7")),
                f"ε = {uniform_weight}: M(n) - log n is off by {excess}",
            )
    return "ε = 1/2, 1/100, 10⁻⁶, n = 10 to 10⁸: M(n) gives the weight 1 - ε + ε/n, less does not"


def growing_scores(run: Run) -> str:
    """Quadratic scores of fixed α: the centre's weight at every n, above 1/θ."""
    summary = []
    for alpha in (0.25, 1.0):
        weights = []
        for keys in (5, 21, 85):
            distance = quadratic_total_variation(alpha, (keys,), (keys // 2,), (0,))
            with ctx.workprec(PRECISION):
                weights.append(1 - distance)
                require(
                    bool(1 - distance > 1 / theta(alpha)),
                    f"α = {alpha}, n = {keys}: {1 - distance} is not above {1 / theta(alpha)}",
                )
        summary.append(f"α = {alpha:g}: {weights[-1].str(4, radius=False)} at n = {keys}")
    return "the centre keeps its weight: " + ", ".join(summary)


def finite_values(maps: np.ndarray, power: Fraction, keys: int) -> list:
    """S.finite for e^M = power: one head an offset, and the uniform one."""
    uniform_weight = Fraction(keys) / (power + keys - 1)
    return [
        *(value_map / (1 - uniform_weight) for value_map in maps),
        -uniform_weight / (1 - uniform_weight) * maps.sum(axis=0),
    ]


def sharp_function(run: Run) -> str:
    """K = 3 on one axis, e^M = 2 at every n: exact at interior queries; every weight below 2/n."""
    power, offsets, summary = Fraction(2), (-1, 0, 1), []
    for keys in (8, 64) if run.quick else (8, 64, 512):
        rng = run.rng(keys)
        tokens = rng.integers(-9, 10, (keys, 2)).astype(object)
        maps = rng.integers(-9, 10, (3, 2, 2)).astype(object)
        values = finite_values(maps, power, keys)
        queries, total = range(1, keys - 1), tokens.sum(axis=0)
        for query in queries:
            rows = [total + (power - 1) * tokens[query + offset] for offset in offsets]
            mixed = [row / (power + keys - 1) for row in rows] + [total * Fraction(1, keys)]
            result = sum(row @ value_map for row, value_map in zip(mixed, values, strict=True))
            expected = sum(
                tokens[query + o] @ value_map for o, value_map in zip(offsets, maps, strict=True)
            )
            require(
                (result == expected).all(), f"n = {keys}, query {query}: {result}, not {expected}"
            )
        growth = (power + keys - 1) / (power - 1)
        require(bool((values[0] == growth * maps[0]).all()), f"n = {keys}: not {growth} times")
        summary.append(
            f"n = {keys}: largest weight {greatest_weight(keys, power)}, values × {growth}"
        )
    return "four heads are the convolution exactly; " + "; ".join(summary)


def floating_point(run: Run) -> str:
    """One score S among zeros and one zero among S, in two dtypes."""
    summary = []
    for dtype in ("float64", "float32"):
        for keys in (16, 256, 4096):
            scores = np.zeros((2, keys))
            scores[0, 0], scores[1, 1:] = 8, 8
            allowed = weights_within(scores, dtype)
            result = np.asarray(jax.nn.softmax(jnp.asarray(scores, dtype), axis=-1), np.float64)
            power = float(np.exp(8))
            ends = np.array([greatest_weight(keys, power), least_weight(keys, power)])
            error = np.abs(result[:, 0] - ends)
            slack = allowed.bound[:, 0] + 2**-45 * ends
            require(bool((error <= slack).all()), f"{dtype}, n = {keys}: {error} exceeds {slack}")
        summary.append(f"{dtype}: {keys * ends[1]:.4g} to {keys * ends[0]:.4g} at n = {keys}")
    return "n times a weight for S = 8; " + ", ".join(summary)


CLAIM = Claim(
    id="N.disperse",
    source="Veličković et al. 2025 (arXiv:2410.01104), abstract",
    verdict=Verdict.NOT_JUDGED,
    kinds=(Kind.LIMIT,),
    evidence=(
        Evidence("bounds in fractions", Level.TESTED, bounds_in_fractions),
        Evidence("bounded scores", Level.ENCLOSED, bounded_scores, assumes=ASSUMES),
        Evidence("the price", Level.ENCLOSED, price, assumes=ASSUMES),
        Evidence("scores that grow", Level.ENCLOSED, growing_scores, assumes=ASSUMES),
        Evidence("a sharp function", Level.TESTED, sharp_function),
        Evidence("in floating point", Level.BOUNDED, floating_point, assumes=ASSUMPTION),
    ),
)
