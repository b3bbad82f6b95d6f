"""S.sharpness: what sharp scores save, and what exactness costs without them.

Claimed. If the scores of heads lie in a bounded range, exactness costs large value maps, and with
only as many heads as offsets the range has to grow like the logarithm of N.
True. So it is for heads that attend by position, by explicit bounds: two heads come as near to the
first as one likes for one tap, and the constant of the second is known.

Printed. Not from a paper: our own result. (That bounded scores let attention disperse as 1/N is
Veličković et al. 2025, arXiv:2410.01104, Lemma 2.1; here is what an exact layer pays for it in its
value maps.)

Verified. Let heads whose attention does not depend on the image have scores within an interval of
length S > 0 over N keys.

(1) If they are exactly a zero-padded convolution, and some query sees a token of the image at the
offset δ and another one outside its receptive field, then in any norm, and entry by entry,

    Σ‖W_h‖ ≥ ‖M_δ‖·(e^S + N - 1)/(e^S - 1).

(2) For one tap S.finite's two heads come within the factor 1 + ε of it.

(3) T heads, as many as offsets, about the convolution, ρ = T: at a query whose receptive field lies
in the image let η be the sum over all keys k, those of the ring included, of ‖E_k‖, the flattened
error of the layer's map at k; at the ring E_k = Σ_h a_h(q, k) W_h.
If η < σ_min = σ_min(F), then

    S ≥ log(N/T) + log(σ_min/η) - r,
    r = log(N/(N - T)) + log(σ_min/(σ_min - η)),

and r ≤ 2 log 2 for N ≥ 2T, η ≤ σ_min/2. So with T heads the bias's log N cannot be avoided.

Nothing to repair. (Conjectured with a constant that was not known; it is 2 log 2.)

Proof. *The idea:* two weights of a row of bounded scores differ by little.

(1) Divide a row's exponentials by the least: w_k ∈ [1, E], E = e^S. Two weights of it differ by
(w_k - w_l)/Σw ≤ (w_k - w_l)/(w_k + w_l + N - 2) ≤ (E - 1)/(E + N - 1), as the quotient rises with
w_k and falls with w_l. With k the token at δ and l the one outside, M_δ = Σ_h (A_h(q, k) - A_h(q,
l)) W_h.

(2) S.finite has E = 1 + N(1/ε - 1), so that (E + N - 1)/(E - 1) = 1/(1 - ε); its maps are M/(1 - ε)
and -εM/(1 - ε), in all (1 + ε)/(1 - ε) times M.

(3) S.rigidity (iii), all keys counted, has s/(1 - s) ≤ Σ_(k outside)‖E_k‖/(σ_min - ‖E‖) for the
weight s of a head outside, and ‖E‖ ≤ Σ_(k inside) ‖E_k‖, so it is at most η/(σ_min - η). By the
range of the scores s/(1 - s) ≥ (N - T)/(T·e^S). ∎
"""

from fractions import Fraction

import numpy as np
from flint import arb, ctx

from convattn.operators.roundoff import unit_roundoff
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict, require
from convattn_ledger.bounds.saturation import PRECISION
from convattn_ledger.evidence import DTYPES, certified, converted, proved, whole_images
from convattn_ledger.evidence.layer_runs import equals_convolution


def floor(span: Fraction, keys: int) -> Fraction:
    """(E + N - 1)/(E - 1)."""
    return (span + keys - 1) / (span - 1)


def gaps(run: Run) -> str:
    """Random rows in [1, E]: no two weights differ by more, and one row attains it."""
    cases, nearest = 200 if run.quick else 2000, Fraction(0)
    for case in range(cases):
        rng = run.rng("gaps", case)
        keys, span = int(rng.integers(2, 30)), Fraction(int(rng.integers(101, 5000)), 100)
        ends = rng.integers(0, 2, keys).tolist()
        row = [1 + (span - 1) * (end if case % 2 else Fraction(int(rng.integers(0, 9)), 8))
               for end in ends]  # fmt: skip
        gap = (max(row) - min(row)) / sum(row, Fraction(0)) * floor(span, keys)
        if gap > 1:
            raise EvidenceFailed(f"N = {keys}, E = {span}: the gap is {gap} times its bound")
        nearest = max(nearest, gap)
        sharp = [span, *[Fraction(1)] * (keys - 1)]
        attained = (sharp[0] - sharp[1]) / sum(sharp, Fraction(0)) * floor(span, keys)
        require(attained == 1, f"N = {keys}, E = {span}: one sharp weight gives {attained}")
    return (
        f"{cases} rows: at most {float(nearest):.3g} of the bound, which one sharp weight attains"
    )


def one_tap(run: Run) -> str:
    """(2) in fractions: S.finite's maps over their floor are 1 + ε."""
    for keys in (2, 9, 100, 1156):
        for uniform_weight in (Fraction(1, 100), Fraction(1, 2), Fraction(9, 10)):
            span = 1 + keys * (1 / uniform_weight - 1)
            total = 1 / (1 - uniform_weight) + uniform_weight / (1 - uniform_weight)
            require(
                total == (1 + uniform_weight) * floor(span, keys),
                f"N = {keys}, ε = {uniform_weight}: {total} in all",
            )
    return "1 + ε for N = 2 to 1156, ε = 1/100 to 9/10"


def values_on_images(run: Run) -> str:
    """The stored maps of 1 × 1 layers, and their scores on real images, against the floor.

    The maps are rounded once each and doubled or divided by powers of two, for ε = 1/2 and 1/4; the
    leak is exact, and so is E in fractions: the sum of magnitudes is off by 8 roundings at most.
    """
    image = whole_images(run)[:1]
    keys = image.shape[1] * image.shape[2]
    summary = []
    for dtype in DTYPES:
        for uniform_weight in (0.5, 0.25):
            kernel = run.rng("tap").integers(1, 9, (1, 1, 3, 2))
            layer = converted(
                kernel, dtype, encoding="bias", form="exact", uniform_weight=uniform_weight
            )
            stored = float(np.asarray(layer.encoding.uniform_weight))
            span = 1 + keys * (1 / Fraction(stored) - 1)
            least = kernel[0, 0] * float(floor(span, keys))
            total = np.abs(np.asarray(layer.output, np.float64)).sum(axis=0)
            slack = 1 + 8 * unit_roundoff(layer.output.dtype)
            if not ((total * slack >= least) & (total <= (1 + stored) * least * slack)).all():
                raise EvidenceFailed(
                    f"{dtype}, ε = {uniform_weight}: {total} and the floor {least}"
                )
            summary.append(f"{dtype}, ε = {uniform_weight}: {float((total / least).max()):.4g}")
    return f"N = {keys}, of the floor: " + "; ".join(summary)


def least_score(offsets: int, keys: int, error: arb) -> arb:
    """log((N - T)/T) + log((1 - η)/η), for σ_min = 1."""
    return (arb(keys - offsets) / offsets).log() + ((1 - error) / error).log()


def one_hot_heads(run: Run) -> str:
    """(3), enclosed: T bias heads with T orthogonal maps, from N = 50 to 10^6.

    Head δ has e^M at its offset; with F = I the layer's map is B - I inside and u·1 at each key
    outside, u = 1/(e^M + N - 1). S = M is to be at least the bound, and not far above.
    """
    summary = []
    for offsets, keys in ((9, 50), (9, 1156), (25, 1156), (9, 10**6)):
        for score in (10, 20, 40):
            with ctx.workprec(PRECISION):
                unit = 1 / (arb(score).exp() + keys - 1)
                inside = unit * arb(offsets).sqrt()  # a key inside has u at every head but its own
                own = (arb(offsets - 1) * unit**2 + ((keys - 1) * unit) ** 2).sqrt()
                error = offsets * own + (keys - offsets) * inside
                if not error < 1:
                    continue
                bound = least_score(offsets, keys, error)
                if not bound < score:
                    raise EvidenceFailed(
                        f"T = {offsets}, N = {keys}: M = {score}, and the bound is {bound}"
                    )
            summary.append(f"T = {offsets}, N = {keys}: {float(bound.mid()):.3g} < {score}")
    require(len(summary) >= 6, f"only {len(summary)} cases had an error below σ_min")
    return "; ".join(summary)


CLAIM = Claim(
    id="S.sharpness",
    source="this project, beside S.finite and S.saturation",
    verdict=Verdict.HOLDS,
    kinds=(Kind.LOWER_BOUND,),
    evidence=(
        proved(
            "sharpened/sharpness.v",
            covers="(1), entry by entry, for odd kernels without dilation; not: other norms, (2) "
            "and (3)",
        ),
        certified("S.sharpness", name="two heads for one tap", covers="ε = 1/2"),
        Evidence("gaps between two weights", Level.TESTED, gaps),
        Evidence("one tap", Level.TESTED, one_tap),
        Evidence(
            "the price of log N",
            Level.ENCLOSED,
            one_hot_heads,
            assumes="ball arithmetic (python-flint)",
        ),
        Evidence("stored maps", Level.BOUNDED, values_on_images, assumes="maps as stored"),
        equals_convolution("1 × 1, two heads", (1, 1), form="exact", dtypes=("float32",)),
    ),
)
