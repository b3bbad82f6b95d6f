"""S.causal: under a causal mask T5's and ALiBi's biases need about as many heads as tokens.

Claimed. Under a causal mask, heads with the position biases of T5 or ALiBi alone have to be about
as many as the tokens to be exactly a convolution.
True. They have to, for any kernel but zero; where all taps are seen, one head more than taps is
enough with scores that know the length, and five heads for each tap with certain other fixed
biases.

Printed. Not from a paper: our own result. Language models add to their scores a number for each
distance, the same whatever the length: T5 (Raffel et al. 2020) one that is constant from some
distance on, ALiBi (Press et al. 2022) one that is linear in it.

Verified. Let N tokens attend under a causal mask, token q to the tokens k ≤ q, with H heads whose
scores are biases b_h(q - k), finite and whatever else. Let the layer be, at every query q ≥ T - 1,
the causal convolution Σ_d X_(q-d) M_d with T taps, not all zero.

(a) If b_h(d) is the same for all d ≥ D, where D ≥ T, then H ≥ N - D + 1.
(b) If b_h(d) is linear in d, then H ≥ N - T + 1. Slopes and intercepts are any, equal ones too.
(c) With the score log(1 + n(1/ε - 1)) at the distance d and none elsewhere, n = q + 1 the number of
    keys that the query sees, T such heads and one without a bias are exact, for every 0 < ε < 1,
    every kernel and every length, with one set of maps. Where T - 1 zero tokens stand before the
    sequence and count as keys, they are so at every query.
(d) 5T heads with other finite biases that do not know the length are exact at every length, for
    every kernel, with one set of maps.

So no fixed number of heads with T5's or ALiBi's biases alone is exact at every length, for any
kernel but zero, one tap included. Scores that know the length mend it, and so do some biases that
are neither constant nor linear from some distance on. In (c) T + 1 heads are the fewest for T ≥ 1
independent taps and N > T, whatever the finite scores by position are; with content, if the weights
are continuous at the zero image (S.content).

Nothing to repair. (a) is attained for T = D = 1, (b) for T = 1 and N ≤ 2; what is needed in general
is open, and so is whether fewer than 5T do in (d). Seen, not proved: generic biases of their kind
are exact first at H = D(N - D + 1) + Σ q over T - 1 ≤ q < D - 1 for (a), and for (b)
at the sum of Euler's φ(m) over the m that divide one of T, …, N. That attention can be sharp at
every length once scores grow with log n is known (Chiang and Cholak 2022).

Proof. *The idea:* H heads add up to a rational function of the query, or to exponentials of the
distance, and these have few zeros.

Let W be an entry of a tap M_d that is not zero, w_h that entry of head h's map, and u_h =
e^(b_h) > 0. A head's normaliser at q is Z_h(q) = Σ_(e ≤ q) u_h(e).

(a) For q = D - 1 + j, Z_h(q) = c_h + b_h j with b_h = u_h(D), c_h = Σ_(e < D) u_h(e), both
positive. The key at the distance d < T ≤ D exists, so

    Σ_h u_h(d) w_h/(c_h + b_h j) = W        for j = 0, …, N - D.

Multiplied by Π_h (c_h + b_h j) it says that a polynomial in j vanishes at N - D + 1 places. It is
WΠ(c_h + b_h j) minus terms of degree H - 1: of degree H, as W ≠ 0. So H ≥ N - D + 1.

(b) At the last query the distance e has f(e) = Σ_h (w_h/Z_h) y_h x_h^e, with x_h > 0. f vanishes at
the N - T consecutive integers T, …, N - 1, and f(d) = W ≠ 0. Heads of equal x_h taken together, f
is a combination of at most H exponentials, which vanishes everywhere if it does so at H consecutive
integers (Vandermonde, S.barrier). So N - T < H.

(c) The row q is that of S.finite over n keys: (1-ε)S_d + εJ_q, J_q uniform on the visible ones, as
every target is one. The maps M_d/(1-ε) and -ε/(1-ε)·ΣM_d do not depend on n.

*The least:* at the last query M_d = Σ_h a_h(d) W_h makes the W_h independent if there are T of them
or fewer, and at the distance T, out of reach, 0 = Σ_h a_h W_h makes weights zero, which no softmax
does.

(d) Let Z(j) = (j+2, (j+1)/(j+3), 2(j+2)/(j+3), j+1, (j+1)(j+2)/(j+3)) and w = (-1, -1, 2, 2, -1),
of sum 1. Every v = (a, b, b, a, a - b) has Σ_h w_h v_h/Z_h(j) = 0 for all j: over (j+1)(j+2) it is
a(-(j+1) + 2(j+2) - (j+3)) + b(j+3)(-(j+2) + (j+1) + 1) = 0.

The differences Z(j) - Z(j-1) are of this form, with a = 1 and b = 2/((j+2)(j+3)), and positive.

For tap d let five heads have e^bias = V = (3, 1, 1, 3, 2)/(3T) at the distances e < T other than d,
Z(0) - (T - 1)V at d, and Z(e-T+1) - Z(e-T) at e ≥ T. All are positive, the normalisers at q = T -
1 + j are Z(j), and with the maps w_h M_d the five put M_d at d, and 0 at all other distances. ∎
"""

from dataclasses import replace
from fractions import Fraction
from math import comb, gcd, log, prod

import jax
import jax.numpy as jnp
import numpy as np
from flint import nmod_mat

from convattn.bounds.majorant import majorant_of
from convattn.bounds.rounding import layer_error_bound
from convattn.encodings.bias import BiasEncoding
from convattn.encodings.layer import AttentionLayer
from convattn.fast.application import apply_attention, attention_maps
from convattn.operators.roundoff import gamma
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict, require
from convattn_ledger.evidence import (
    DTYPES,
    EXP,
    EXP_AND_LOG1P,
    UNDERFLOW,
    applied,
    certified_identities,
    converted,
    exact_convolution,
    integer_kernel,
    proved,
    whole_images,
)
from convattn_ledger.evidence.layer_runs import equal, within

PRIME = 2**61 - 1
LINE = {"patch_size": (1,), "stride": (1,), "dilation": (1,), "ring": ((0, 0),), "causal": True}
UNIFORM_WEIGHT = Fraction(1, 4)


def is_expressed(weights: list[list[int]], tokens: int, taps: list[int]) -> bool:
    """Whether some maps make heads u_h(d) this convolution at every query with all taps, mod p."""
    rows, targets = [], []
    for query in range(len(taps) - 1, tokens):
        norms = [pow(sum(head[: query + 1]), -1, PRIME) for head in weights]
        for distance in range(query + 1):
            pairs = zip(weights, norms, strict=True)
            rows.append([head[distance] * norm % PRIME for head, norm in pairs])
            targets.append(taps[distance] if distance < len(taps) else 0)
    flat = [x for row in rows for x in row]
    both = [x for row, w in zip(rows, targets, strict=True) for x in (*row, w)]
    left = nmod_mat(len(rows), len(weights), flat, PRIME).rank()
    return int(left) == int(nmod_mat(len(rows), len(weights) + 1, both, PRIME).rank())


def clipped(run: Run, heads: int, tokens: int, distance: int) -> list[list[int]]:
    """Generic weights, the same from some distance on."""
    draws = run.rng("clipped", heads, tokens).integers(2, 2**60, (heads, distance + 1)).tolist()
    return [[head[min(d, distance)] for d in range(tokens)] for head in draws]


def linear(run: Run, heads: int, tokens: int) -> list[list[int]]:
    """x^d for generic x."""
    bases = run.rng("linear", heads, tokens).integers(2, 2**60, heads).tolist()
    return [[pow(base, d, PRIME) for d in range(tokens)] for base in bases]


def generic_clipped(tokens: int, taps: int, distance: int) -> int:
    """D(N - D + 1) + Σ q over T - 1 ≤ q < D - 1."""
    return distance * (tokens - distance + 1) + sum(range(taps - 1, distance - 1))


def generic_linear(tokens: int, taps: int) -> int:
    """Σ φ(m) over the m that divide one of T, …, N."""
    orders = {m for n in range(taps, tokens + 1) for m in range(1, n + 1) if n % m == 0}
    return sum(sum(gcd(m, k) == 1 for k in range(1, m + 1)) for m in orders)


def first_that_is_exact(run: Run) -> str:
    """The first H at which generic biases are exact, at least the bounds, and as the row says."""
    summary, most = [], 2 if run.quick else 5
    sizes = [(n, t, d) for t in (1, 2, 3) for d in range(t, t + 3) for n in range(d, d + most)]
    cases = [(n, t, d, n - d + 1, generic_clipped(n, t, d)) for n, t, d in sizes]
    lines = [(n, t) for t in (1, 2, 3) for n in range(t, t + most + 1)]
    cases += [(n, t, 0, n - t + 1, generic_linear(n, t)) for n, t in lines]
    for tokens, count, distance, bound, expected in cases:
        taps = run.rng("taps", tokens, count).integers(1, 2**60, count).tolist()
        for heads in range(1, expected + 1):
            weights = clipped(run, heads, tokens, distance) if distance else None
            exact = is_expressed(weights or linear(run, heads, tokens), tokens, taps)
            name = f"N = {tokens}, T = {count}, " + (f"D = {distance}" if distance else "linear")
            require(not exact or heads >= bound, f"{name}: {heads} heads are exact")
            require(exact == (heads == expected), f"{name}: {heads} heads, {expected} expected")
        summary.append(f"{name}: {expected} ≥ {bound}")
    return f"{len(summary)} sizes, such as {summary[0]}; {summary[len(sizes) - 1]}; {summary[-1]}"


def exact_row(query: int, distance: int | None) -> list[Fraction]:
    """A head of (c) at a query: e = 1 + n(1/ε - 1) at its distance, if it is there, else 1."""
    count = query + 1
    weights = [Fraction(1)] * count
    if distance is not None and distance <= query:
        weights[query - distance] = 1 + count * (1 / UNIFORM_WEIGHT - 1)
    return [weight / sum(weights) for weight in weights]


def layer_in_fractions(run: Run) -> str:
    """(c) in fractions: one set of maps for every length, with and without zeros before it."""
    queries = 0
    for count in (1, 2, 3, 4):
        taps = [Fraction(x) for x in run.rng("taps", count).integers(-9, 10, count).tolist()]
        maps = [
            *(tap / (1 - UNIFORM_WEIGHT) for tap in taps),
            -UNIFORM_WEIGHT / (1 - UNIFORM_WEIGHT) * sum(taps),
        ]
        for tokens in range(1, 5 if run.quick else 9):
            values = run.rng("tokens", count, tokens).integers(-9, 10, tokens).tolist()
            for zeros in (0, count - 1):
                keys = [0] * zeros + values
                for query in range(count - 1, len(keys)):
                    rows = [exact_row(query, d) for d in (*range(count), None)]
                    attended = [sum(a * x for a, x in zip(row, keys, strict=False)) for row in rows]
                    got = sum(x * m for x, m in zip(attended, maps, strict=True))
                    expected = sum(keys[query - d] * taps[d] for d in range(count))
                    require(got == expected, f"T = {count}, query {query}: {got}, not {expected}")
                    queries += 1
    return f"{queries} queries of 1 to 4 taps, ε = {UNIFORM_WEIGHT}"


def best_maps(encoding: BiasEncoding, tokens: int) -> tuple[float, float]:
    """The error of the causal layer with these biases that is nearest to the identity, K = 1."""
    images, apply = jnp.eye(tokens)[..., None], jax.jit(apply_attention)
    layer = AttentionLayer(encoding, None, jnp.eye(encoding.heads)[:, None], **LINE)
    heads = np.asarray(apply(layer, images)).reshape(-1, encoding.heads)  # a channel for each
    best, *_ = np.linalg.lstsq(heads, np.eye(tokens).ravel(), rcond=None)
    maps = jnp.broadcast_to(jnp.asarray(best)[:, None, None], layer.output.shape)
    result = np.asarray(apply(replace(layer, output=maps), images))[..., 0]
    error = np.abs(result - np.eye(tokens)).max()
    return float(error), tokens * 2.0**-40 * float(1 + np.abs(best).sum())


def clipped_floor(values: np.ndarray) -> float:
    """H!·Πb/Σ|λ_j| with λ_j = (-1)^j·C(H, j)·Π_h Z_h(D - 1 + j), which annihilates every head.

    Args:
        values: b_h(d), d < D; from D on the bias is 0, so that b = 1.
    """
    heads, constant = len(values), np.exp(values).sum(axis=1)
    norms = [float(np.prod(constant + j)) * comb(heads, j) for j in range(heads + 1)]
    return prod(range(1, heads + 1)) / sum(norms)


def linear_floor(slopes: np.ndarray) -> float:
    """|μ_0|/Σ|μ_e|, μ the coefficients of Π(X - x_h), x_h = e^(-slope)."""
    annihilator = np.poly(np.exp(-slopes))[::-1]
    return float(abs(annihilator[0]) / np.abs(annihilator).sum())


def best_layers(run: Run) -> str:
    """K = 1 on lines: with the best maps, causal layers of the library stay as far off as proved.

    The multipliers of the proof annihilate every head and not the convolution, so that some entry
    is off by the floor at least. float64 rounds by far less.
    """
    summary = []
    tables = [np.array([[0.7]]), np.array([[2.0], [-1.0]]), np.array([[1.0, 0.5], [-0.5, 2.0]])]
    slopes = [np.array([1.0]), np.array([0.5, 1.0]), np.array([0.25, 0.5, 1.0])]
    cases = [("clipped", values, values.shape[1] + len(values)) for values in tables]
    cases += [("linear", values, len(values) + 1) for values in slopes]
    cases = [cases[1], cases[4]] if run.quick else cases
    for name, values, tokens in cases:
        floor = clipped_floor(values) if name == "clipped" else linear_floor(values)
        distances = range(values.shape[1] if name == "clipped" else tokens)
        table = values if name == "clipped" else -values[:, None] * np.array(distances)
        encoding = BiasEncoding(jnp.asarray(table), None, tuple((-d,) for d in distances))
        error, rounding = best_maps(encoding, tokens)
        if not error >= floor > rounding:
            raise EvidenceFailed(f"{name}, {len(values)} heads: error {error:.3g}, floor {floor}")
        summary.append(f"{name}, H = {len(values)}, N = {tokens}: {error:.2g} ≥ {floor:.2g}")
    return "; ".join(summary)


def five_heads(taps: int, tap: int, tokens: int) -> list[list[Fraction]]:
    """(d): the exponentials of the biases of the five heads of a tap, by the distance."""

    def five(j: int) -> list[Fraction]:
        numerators = (j + 2) * (j + 3), j + 1, 2 * (j + 2), (j + 1) * (j + 3), (j + 1) * (j + 2)
        return [Fraction(numerator, j + 3) for numerator in numerators]

    others = [Fraction(numerator, 3 * taps) for numerator in (3, 1, 1, 3, 2)]
    own = [z - (taps - 1) * v for z, v in zip(five(0), others, strict=True)]
    rows = [own if e == tap else others for e in range(taps)]
    for e in range(taps, tokens):
        rows.append([a - b for a, b in zip(five(e - taps + 1), five(e - taps), strict=True)])
    return [list(head) for head in zip(*rows, strict=True)]


def fixed_biases(run: Run) -> str:
    """(d) in fractions: what the five heads of each tap put at each distance, at each query."""
    maps, tokens = (-1, -1, 2, 2, -1), 10 if run.quick else 40
    cases = [(taps, tap) for taps in (1, 2, 3, 5) for tap in range(taps)]
    for taps, tap in cases:
        heads = five_heads(taps, tap, tokens)
        require(min(map(min, heads)) > 0, f"T = {taps}, tap {tap}: a weight is not positive")
        for query in range(taps - 1, tokens):
            rows = [head[: query + 1] for head in heads]
            put = [
                sum(w * row[e] / sum(row) for w, row in zip(maps, rows, strict=True))
                for e in range(query + 1)
            ]
            expected = [Fraction(e == tap) for e in range(query + 1)]
            require(put == expected, f"T = {taps}, tap {tap}, query {query}: {put}")
    return f"{len(cases)} taps, each of five heads, at all queries of {tokens} tokens"


def counted_maps(run: Run) -> str:
    """The weights of the library's causal layer against those of (c), in fractions.

    The score M is off by γ_15·M (`BiasEncoding.score_error`), so the argument of exp by γ_16·M, and
    an exponential by 8 roundings more; the normaliser sums n of them, and a quotient is two. So a
    weight is off by γ_(34M + n + 24) of itself at most.
    """
    worst, tokens = 0.0, 9
    for count in (2,) if run.quick else (1, 2, 4):
        options = {"padding": "CAUSAL", "causal": True, "uniform_weight": float(UNIFORM_WEIGHT)}
        layer = converted(np.ones((count, 1, 1)), "float64", **options)
        weights = np.asarray(jax.jit(lambda layer: attention_maps(layer, (tokens,)).weights)(layer))
        for head, index in np.ndindex(count + 1, tokens):
            query = index + count - 1
            row = exact_row(query, None if head == count else count - 1 - head)
            row += [Fraction(0)] * (tokens - 1 - index)
            score = log(1 + (query + 1) * (1 / UNIFORM_WEIGHT - 1)) * (head < count)
            bound = Fraction(gamma(34 * score + query + 25, 2.0**-53))
            for got, exact in zip(weights[head, index].tolist(), row, strict=True):
                error = abs(Fraction(got) - exact)
                require(error <= bound * exact, f"T = {count}, query {query}: {got}, not {exact}")
                worst = max(worst, float(error / exact) if exact else 0.0)
    return f"off by {worst:.2g} of themselves at most; masked ones are zero"


def layers_on_images(run: Run) -> str:
    """(c) on rows of real images: the library's causal layers, within the rounding bound."""
    images = whole_images(run, 4)
    lines = images.reshape(-1, *images.shape[2:])
    kernel = integer_kernel(run.rng("kernel"), (5,), 3, 4)
    ahead = np.zeros((4, *kernel.shape[1:]), int)  # a centred kernel that reads nothing later
    expected = exact_convolution(lines, np.concatenate([kernel, ahead]))
    options, comparisons = {"padding": "CAUSAL", "causal": True}, []
    for dtype in DTYPES:
        limit = converted(kernel, dtype, form="limit", **options)
        one_hot = equal(dtype, applied(limit, lines, dtype), expected)
        layer = converted(kernel, dtype, **options)
        bound = layer_error_bound(
            layer, lines.astype(dtype), majorant_of(layer, kernel, None, lines)
        )
        for backend in ("dense", "shift"):
            result = applied(layer, lines, dtype, backend=backend)
            comparisons.append(f"{backend} {within(dtype, result, expected, bound)}")
        comparisons.append(f"limit {one_hot}")
    return f"{len(lines)} lines, {layer.heads} heads; " + "; ".join(comparisons)


CLAIM = Claim(
    id="S.causal",
    source="this project, on the biases of T5 and ALiBi",
    verdict=Verdict.HOLDS,
    kinds=(Kind.LAYER_EQUALITY, Kind.LOWER_BOUND),
    evidence=(
        proved("sharpened/causal_clipped.v", covers="(a), for layers without a bias"),
        proved(
            "sharpened/causal_linear.v",
            covers="(b), over any field, for layers without a bias",
        ),
        proved(
            "sharpened/causal_finite.v",
            covers="(c), at the queries that have all taps; not: that T + 1 is the least",
        ),
        proved(
            "sharpened/causal_least.v",
            covers="no fewer than T + 1 heads, for T ≥ 1 independent taps and N > T, for "
            "attention by position, if no weight at a visible key is zero and the layer "
            "has no bias; not: content",
        ),
        certified_identities(
            "S.causal", "identities", "fixed", "counted", covers="(a), (b) for H = 2; (c) for T = 3"
        ),
        Evidence("the first number that is exact", Level.TESTED, first_that_is_exact),
        Evidence("the layer in fractions", Level.TESTED, layer_in_fractions),
        Evidence("fixed biases", Level.TESTED, fixed_biases),
        Evidence("the best maps", Level.BOUNDED, best_layers, assumes=EXP),
        Evidence("weights in fractions", Level.BOUNDED, counted_maps, assumes=EXP_AND_LOG1P),
        Evidence(
            "rows of images",
            Level.BOUNDED,
            layers_on_images,
            assumes=f"{EXP_AND_LOG1P}; {UNDERFLOW}",
            quick=False,
        ),
    ),
)
