"""S.dp1: one positional feature already expresses every convolution, exactly.

Claimed. One positional feature is enough for K² + 1 heads to express every K × K convolution
exactly, where Cordonnier et al. ask for three.
True. It is, with zero tokens around the image and value maps that know the number of keys, but
rounding errors grow fast: float64 will do for nine offsets, and not for 25.

Printed. Not from a paper: our own result. Cordonnier et al. 2020, Theorem 1, asks for D_p ≥ 3. One
positional feature is enough: with r_δ = log t_δ on Δ_K for distinct rationals t_δ ≠ 1, zero
elsewhere, and v_h = h, the K² + 1 heads h = 0, …, K² express every convolution exactly; in the
limit the K² heads 1, …, K² do, with r_δ = M + log t_δ. For K ≥ 3 no such heads are all one-hot.

Verified. The same, for T token offsets in place of K² (so on patches and sequences too), t_δ
positive, at every query whose offsets are all keys, hence zero-padded with a ring. The value maps
carry the normaliser Z_h(N) = N + Σ_δ (t_δ^h - 1), which knows the number of keys. With three
offsets or more some head is missing from every choice of features: the weight at an offset whose
feature lies between those of two others is at most 1/2, whatever v is.

Nothing to repair. It is a theorem, not a recommendation: undoing the Vandermonde matrix multiplies
relative errors of the weights by up to κ, computed exactly: 140 for T = 3, 1.6·10⁷ for T = 9,
1.7·10²¹ for T = 25. The construction refuses a dtype of unit roundoff u where κ·u > 2⁻⁷; that
leaves float64 and float32 for T = 3, float64 for T = 9, none for T = 25.

Proof. *The idea:* the heads are the powers of t_δ, and polynomials in t tell the offsets apart.

Before normalisation head h has the row 1 + Σ_δ (t_δ^h - 1)e_(q+δ), of sum Z_h at every such query.
As 1 and the t_δ are T + 1 distinct numbers, there are polynomials L_δ(z) = Σ_h V_hδ z^h of degree T
with L_δ(t_δ) = 1 and L_δ = 0 at the others. With the maps Z_h Σ_δ V_hδ M_δ the layer's row for M_δ
is L_δ(1)·1 + Σ_δ' (L_δ(t_δ') - L_δ(1))e_(q+δ') = e_(q+δ).

In the limit the rows are Σ_δ t_δ^h e_(q+δ)/Σ_δ t_δ^h, and the T powers h = 1, …, T suffice, with
L_δ(0) = 0.

*One-hot heads:* if r_1 ≤ r_2 ≤ r_3 then v·r_2 ≤ max(v·r_1, v·r_3), so the weight at the second
offset is at most that of one of the others, and at most 1/2. ∎
"""

from fractions import Fraction

import flint
import jax.numpy as jnp
import numpy as np

from convattn.constructions import conv_to_attention
from convattn.constructions.scalar import (
    refuse_ill_conditioned,
    rounding_amplification,
    scalar_bases,
)
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict
from convattn_ledger.evidence import (
    DTYPES,
    certified,
    equals_convolution,
    exact_convolution,
    proved,
)


def bases(count: int) -> list[Fraction]:
    """Distinct positive rationals, none of them one; other than the library's 2, …, T + 1."""
    return [Fraction(2 * number + 1, 2) for number in range(1, count + 1)]


def undo(nodes: list[Fraction], first: int) -> list[list[Fraction]]:
    """V with Σ_h V_hδ z_i^h = 1 if z_i is node δ, else 0; h from `first`. A linear system, in
    fractions.

    Raises:
        ZeroDivisionError: Where the nodes are not distinct.
    """
    size = len(nodes)
    powers = [[node ** (first + h) for h in range(size)] for node in nodes]
    matrix = flint.fmpq_mat(
        [[flint.fmpq(x.numerator, x.denominator) for x in row] for row in powers]
    )
    inverse = matrix.inv().tolist()
    return [[Fraction(int(x.p), int(x.q)) for x in row] for row in inverse]


def rational_layer(run: Run) -> str:
    """K = 3 on 5 × 6 pixels with their ring: the layer in fractions equals the convolution."""
    rng = run.rng("case")
    kernel = rng.integers(-9, 10, (3, 3, 1, 1))
    image = rng.integers(0, 256, (1, 5, 6, 1))
    expected = exact_convolution(image, kernel)[0, :, :, 0]
    ringed = np.pad(image[0, :, :, 0], 1)
    chosen, taps = bases(9), kernel.reshape(-1).tolist()
    keys, total = ringed.size, int(ringed.sum())
    for limit in (False, True):
        first = 1 if limit else 0
        nodes = chosen if limit else [*chosen, Fraction(1)]
        try:
            inverse = undo(nodes, first)
        except ZeroDivisionError as error:
            raise EvidenceFailed(f"the nodes {nodes} are not distinct") from error
        for query in np.ndindex(5, 6):
            field = ringed[query[0] : query[0] + 3, query[1] : query[1] + 3].reshape(-1).tolist()
            result = Fraction(0)
            for head, coefficients in enumerate(inverse):
                weights = [base ** (first + head) for base in chosen]
                outside = Fraction(0 if limit else 1)
                normaliser = sum(weights) + outside * (keys - 9)
                attended = sum(w * x for w, x in zip(weights, field, strict=True))
                attended += outside * (total - sum(field))
                value = normaliser * sum(
                    v * w for v, w in zip(coefficients, taps, strict=False)
                )  # of the T offsets; the last column, of the node 1, belongs to none
                result += attended / normaliser * value
            if result != int(expected[query]):
                form = "limit" if limit else "finite"
                raise EvidenceFailed(f"{form}, query {query}: {result}, not {expected[query]}")
    return "K = 3 on 5 × 6 pixels, all queries: ten heads at finite parameters, nine in the limit"


def middle_weight(features: list[int], target: int) -> Fraction:
    """The softmax weight of the second of three features, with 3/2 in place of e."""
    powers = [Fraction(3, 2) ** (target * feature) for feature in features]
    return powers[1] / sum(powers)


def no_one_hot_head(run: Run) -> str:
    """Of three offsets, the one with the middle feature never has more than half of the weight."""
    cases, middle_most = (50 if run.quick else 500), Fraction(0)
    for case in range(cases):
        rng = run.rng(case)
        features = sorted(rng.integers(-9, 10, 3).tolist())
        target = int(rng.integers(-9, 10))
        weight = middle_weight(features, target)
        middle_most = max(middle_most, weight)
        if weight > Fraction(1, 2):
            raise EvidenceFailed(f"features {features}, v = {target}: weight {weight}")
    return f"{cases} triples of features, e replaced by 3/2: at most {float(middle_most):.3f}"


def conditioning(run: Run) -> str:
    """κ, recomputed from a linear system; and which dtypes the construction refuses."""
    summary = []
    for shape, accepted in (((3,), DTYPES[:2]), ((3, 3), DTYPES[:1]), ((5, 5), ())):
        count = int(np.prod(shape))
        nodes = [*map(Fraction, scalar_bases(count)), Fraction(1)]
        inverse = undo(nodes, 0)
        kappa = max(
            sum(abs(row[column]) * node**h for h, row in enumerate(inverse))
            for column in range(count)
            for node in nodes
        )
        if kappa != rounding_amplification(count):
            raise EvidenceFailed(f"T = {count}: κ = {kappa}, not {rounding_amplification(count)}")
        for dtype in DTYPES:
            sound = kappa * Fraction(float(jnp.finfo(dtype).eps)) / 2 <= Fraction(1, 128)
            if sound != (dtype in accepted):
                raise EvidenceFailed(
                    f"T = {count}: κ·u is {'small' if sound else 'large'} in {dtype}"
                )
            try:
                if shape == (5, 5):
                    refuse_ill_conditioned(count, True, dtype)
                else:
                    conv_to_attention(jnp.ones((*shape, 1, 1), dtype), encoding="scalar")
                built = True
            except ValueError as error:
                if "amplifies rounding" not in str(error):
                    raise
                built = False
            if built != sound:
                raise EvidenceFailed(f"T = {count}: {dtype} was {'taken' if built else 'refused'}")
        names = ", ".join(accepted) or "no dtype"
        summary.append(f"T = {count}: κ = {float(kappa):.2g}, {names}")
    return "; ".join(summary) + "; all others are refused"


CLAIM = Claim(
    id="S.dp1",
    source="this project, sharpening D_p ≥ 3 of C20 Theorem 1",
    verdict=Verdict.HOLDS,
    kinds=(Kind.LAYER_EQUALITY,),
    evidence=(
        proved(
            "sharpened/dp1.v",
            covers="exactly, with T + 1 heads, for odd K with a ring; not: queries without a ring, "
            "other sets of offsets, the conditioning",
        ),
        proved(
            "sharpened/dp1_limit.v",
            covers="T heads with the limits of the weights are the convolution, for odd K with a "
            "ring",
        ),
        proved(
            "sharpened/dp1_tends.v",
            covers="the layers of T heads at finite scores tend to the convolution as M → ∞, at "
            "each output of each image, for odd K with a ring",
        ),
        proved(
            "sharpened/dp1_one_hot.v",
            covers="of three offsets or more one has at most half of the weight in every head, if "
            "all offsets are keys",
        ),
        certified("S.dp1", covers="t_δ = 2, …, T + 1"),
        Evidence("the layer in fractions", Level.TESTED, rational_layer),
        Evidence("no one-hot head", Level.TESTED, no_one_hot_head),
        Evidence("conditioning and refusals", Level.TESTED, conditioning, quick=False),
        equals_convolution(
            "K = 3, rows as sequences", (3,), encoding="scalar", form="exact", dtypes=DTYPES[:2]
        ),
        equals_convolution(
            "3 × 3, pixels", (3, 3), encoding="scalar", form="exact", dtypes=DTYPES[:1]
        ),
    ),
)
