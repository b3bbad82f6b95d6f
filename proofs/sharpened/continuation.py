"""S.continuation: heads with rotary scores alone are exact on no long axis.

Claimed. Finitely many heads with fixed rotary scores are not exactly a convolution on long axes.
True. From some length on, which depends on the scores, they are not even close: for any value maps
some entry is off by nearly half the kernel's largest entry there, unless all taps in sight are
zero.

Printed. Not from a paper: our own result. Barbero et al. 2024 (N.rope) show that one rotary head
attends to one distance as closely as one likes, at the price of norms that grow with the length.
They do not ask whether several heads with fixed scores can be exact.

Verified. Fix finitely many heads and a query q on an axis with the keys k = 0, …, N - 1, without a
mask. Head h gives key k the weight e^(s_h(k)) / Z_h, and s_h does not depend on N. Let m be the
last key that the convolution reads from q. With rotary scores, any angles, e^(s_h(k)) is almost
periodic in k; so it is with sinusoids that are added to queries and keys.

(1) Then there is an N₀, which depends on the scores, q and m alone, such that for N ≥ N₀ no maps,
    even chosen for q and N, make the heads a convolution at q, unless all taps that q sees are
    zero. So no set of such heads is one at all lengths, K = 1 included.
(2) Nor nearly: for every η > 0 there is an N₁ such that for N ≥ N₁ and any maps, some entry of the
    map from some key to q is off by at least 1/2 - η times the largest absolute entry of those
    taps.
(3) Two heads whose scores differ by F pairs, Σ_j a_j cos(ω_j k) + b_j sin(ω_j k) + c, at the first
    and at the last query, are no convolution, but with zero taps, of reach r on N ≥ r + 2F + 2
    tokens. This is sharp: F pairs are enough for K = 1 on N = 2F + 1 tokens, so that N₀ can be as
    large as one likes.
(4) Whatever the fixed scores: if heads are exact at q for infinitely many N, and a tap that q sees
    is not 0, then some combination of the e^(s_h) vanishes on all keys beyond m and not on all up
    to m. Biases of one offset, and clipped ones, can have such combinations (S.finite); quadratic
    scores (S.barrier), almost periodic ones and those linear in the distance have none, the last
    if both sides have one slope.

On images the same holds along one axis, for a row of keys that holds a tap. If the weights
are continuous in the tokens at the zero image, (1), (3) and (4) hold for the scores there
(S.content), and (2) for the derivative.

Nothing to repair. N₀ for three heads or more in terms of the number of pairs is open.

Proof. *The idea:* what almost comes back again and again does not vanish from some key on.

Let w_h be one entry of the maps over Z_h. Equality at q says f(k) = Σ_h w_h e^(s_h(k)) is the entry
of the tap for k ≤ m, and 0 for m < k < N.

(4) Let E be the span of the e^(s_h) and E_N the part of it that is 0 for m < k < N. These spaces
decrease, so that E_N = E_∞ from some N₀ on. If all f in E_∞ vanish up to m, so do those in E_N, and
the taps that q sees are zero for N ≥ N₀.

(1) Finitely many almost periodic functions have common almost periods: for every ε > 0 there are p,
as large as one likes, with |e^(s_h(k+p)) - e^(s_h(k))| ≤ ε for all h and k. (For rotary scores: of
enough multiples of the angles two are close to each other modulo 2π, and scores and their
exponentials are uniformly continuous functions of the angles.) So |f(k)| ≤ |f(k + p)| + ε Σ|w_h|,
and if f vanishes from some key on, it is zero. Hence E_∞ = 0.

(2) In the same way the supremum of |f| beyond m is that over all keys. On the functions in E whose
supremum is 1, a compact set, max over m < k < N of |f(k)| grows to 1 with N, so uniformly: it is at
least 1 - η for N ≥ N₁.

Let c be the largest absolute entry, at k. If all entries are off by e at most, then |f(k)| ≥ c - e,
and e ≥ (1 - η)|f(k)| from the keys beyond m. So e ≥ c(1 - η)/(2 - η) ≥ (1/2 - η)c.

(3) By a mirror let the tap that is not zero be seen from the first token, so m = r. f(k) = 0 at the
N - 1 - r keys beyond. With one w_h alone there are none, so w_1 w_2 ≠ 0, and s_1 - s_2 = log(-w_2 /
w_1) there. This is a combination of 2F + 1 exponentials e^(±iω_j k), 1 that vanishes at as many
consecutive integers; by Vandermonde's determinant it vanishes everywhere, and so does f.

*Sharp:* with p = 2F + 1, ω_j = 2πj/p and a_j = 2a/p the difference is a·[p divides k - q] - a/p:
the one-hot bias and the uniform head of S.finite on p tokens. ∎
"""

import jax
import jax.numpy as jnp
import numpy as np
from flint import arb, arb_mat, ctx, nmod_mat

from convattn.bounds.rounding import relative_error
from convattn.encodings.layer import AttentionLayer
from convattn.encodings.majorants import ScoreError
from convattn.encodings.rotary import RotaryEncoding, axial_turns, rotary_heads
from convattn.fast.application import apply_attention
from convattn.operators.roundoff import gamma
from convattn.operators.shifts import TokenGrid
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict, require
from convattn_ledger.bounds.saturation import PRECISION
from convattn_ledger.evidence import EXP, exact_convolution, integer_kernel, proved, whole_images
from convattn_ledger.evidence.enclosures import ASSUMES as BALLS
from convattn_ledger.evidence.layer_runs import within

PRIME = 2**61 - 1
LINE = {"patch_size": (1,), "stride": (1,), "dilation": (1,), "ring": ((0, 0),)}
# Pairs, base of the angles, heads: RoFormer's 10000 and, on images, 100 (Heo et al. 2024).
ANGLES = ((4, 10000.0, 3), (2, 100.0, 3), (16, 10000.0, 3), (8, 100.0, 5))


def rotary(pairs: int, base: float, heads: int, amplitude: float = 1.0) -> RotaryEncoding:
    """Heads that look at the offsets around zero, and one that looks at all keys alike."""
    reach = heads // 2
    turns = axial_turns(pairs, base=base)
    looking = rotary_heads(turns, [[d] for d in range(-reach, reach + 1)], jnp.asarray(amplitude))
    flat = [jnp.concatenate([array, 0 * array[:1]]) for array in (looking.cosine, looking.sine)]
    return RotaryEncoding(jnp.concatenate([looking.turns, looking.turns[:1]]), *flat)


def exponentials(encoding: RotaryEncoding, shifts: range) -> list[list[arb]]:
    """e^(s_h(δ)) of the library's own scores in float64, as balls: row δ, column h."""
    scores = encoding.shift_scores(np.array(shifts)[:, None], len(shifts))
    return [[arb(float(score)).exp() for score in row] for row in np.asarray(scores).T]


def nothing_vanishes(run: Run) -> str:
    """The keys m + 1, …, m + H have a determinant that is not zero: N₀ ≤ m + H + 1 for these."""
    summary = []
    with ctx.workprec(PRECISION):
        for pairs, base, heads in ANGLES:
            encoding, reach = rotary(pairs, base, heads), heads // 2
            rows = exponentials(encoding, range(reach + 1, reach + heads + 2))
            determinant = arb_mat(rows).det()
            if determinant.contains(0):
                raise EvidenceFailed(
                    f"{pairs} pairs, base {base:g}: the determinant is {determinant}"
                )
            summary.append(
                f"{pairs} pairs, base {base:g}, H = {heads + 1}: {float(determinant.mid()):.2g}"
            )
    return "determinants " + "; ".join(summary)


def least_error(encoding: RotaryEncoding, reach: int, tokens: int) -> tuple[arb, np.ndarray]:
    """A lower bound on the error of (2) for the tap 1 at q = 0, and the best w_h in float64.

    If μ on the keys beyond m has Σ_k μ_k e^(s_h(k)) = e^(s_h(0)) for all h, then f(0) = Σ_k μ_k
    f(k), so that an error e has 1 - e ≤ |f(0)| ≤ e·Σ|μ_k|. The μ of the least sum stands on H keys,
    which a linear program names; μ itself is enclosed.
    """
    from scipy.optimize import linprog

    rows = np.exp(np.asarray(encoding.shift_scores(np.arange(tokens)[:, None], tokens), float).T)
    far = rows[reach + 1 :]
    optimum = linprog(
        np.ones(2 * len(far)), A_eq=np.hstack([far.T, -far.T]), b_eq=rows[0], method="highs-ds"
    )
    keys = np.argsort(-np.abs(optimum.x[: len(far)] - optimum.x[len(far) :]))[: rows.shape[1]]
    table = exponentials(encoding, range(tokens))
    chosen = arb_mat([table[reach + 1 + int(key)] for key in keys]).transpose()
    solution = chosen.solve(arb_mat([[entry] for entry in table[0]]))
    total = sum((abs(solution[row, 0]) for row in range(len(keys))), arb(0))
    return 1 / (1 + total), optimum.eqlin.marginals / (1 + optimum.fun)


def half_of_a_tap(run: Run) -> str:
    """The error that no maps avoid grows with N, and is at most one half."""
    summary = []
    with ctx.workprec(PRECISION):
        for pairs, base, heads in ANGLES[:2]:
            last = arb(0)
            sizes = (10, 40, 100, 400)
            for tokens in sizes:
                error, _ = least_error(rotary(pairs, base, heads), heads // 2, tokens)
                inside = bool(error > last - arb(2) ** -40 and error < arb("0.5001"))
                require(inside, f"{pairs} pairs, N = {tokens}: {error} after {last}")
                last = error
            expected = arb("0.499") if pairs == 2 else arb("0.39")
            require(bool(last > expected), f"{pairs} pairs: {last} on {sizes[-1]} tokens")
            summary.append(f"{pairs} pairs, base {base:g}: {float(last.mid()):.4f} on {sizes[-1]}")
    return "errors of at least, times the tap: " + "; ".join(summary)


def with_best_maps(run: Run) -> str:
    """The library's layer with the best maps for q = 0, on one-hot images: no error is smaller."""
    summary = []
    for (pairs, base, heads), tokens in zip(ANGLES, (40, 100, 24, 30), strict=True):
        encoding = rotary(pairs, base, heads)
        with ctx.workprec(PRECISION):
            bound, best = least_error(encoding, heads // 2, tokens)
            floor = float(bound.lower())
        scores = np.asarray(encoding.shift_scores(np.arange(tokens)[:, None], tokens), float)
        maps = best * np.exp(scores).sum(axis=1)
        layer = AttentionLayer(encoding, None, jnp.asarray(maps)[:, None, None], **LINE)
        response = np.asarray(jax.jit(apply_attention)(layer, jnp.eye(tokens)[..., None]))[:, 0, 0]
        # The kernel's other taps may be anything, so that only q's own key and those beyond count.
        error = max(abs(response[0] - 1), np.abs(response[heads // 2 + 1 :]).max())
        slack = tokens * 2.0**-40 * (1 + np.abs(maps).sum())
        if not error + slack >= floor > slack or error > floor + slack:
            raise EvidenceFailed(f"{pairs} pairs, N = {tokens}: error {error}, least {floor}")
        summary.append(f"{pairs} pairs, {heads + 1} heads, N = {tokens}: {error:.4f} ≥ {floor:.4f}")
    return "; ".join(summary)


def comb(period: int, amplitude: float) -> RotaryEncoding:
    """Two heads: a·[period divides δ] - a/period with period/2 pairs, and none."""
    count = np.arange(1, period // 2 + 1)
    heights = np.where(2 * count == period, 1, 2) * amplitude / period
    parts = jnp.asarray(np.stack([heights, 0 * heights]))
    turns = jnp.asarray(np.stack([count, count])[..., None] / period)
    return RotaryEncoding(turns, parts, 0 * parts)


def rows_of_pixels(run: Run) -> str:
    """Two heads, 16 pairs of 1/32, …, 1/2 turns: K = 1 on rows of 32 pixels, and not on two rows.

    The uniform weight is 1/2, so that the maps are 2M and -M, exact. The stored amplitude is off
    from log 33 by four units of roundoff; scores are off by as many roundings as the encoding
    counts, times its majorant. On 64 tokens the keys q and q + 32 have the same weight in every
    head, so that one of the two maps is off by half of the tap.
    """
    images = whole_images(run)
    rows = images.reshape(-1, *images.shape[2:])
    kernel = integer_kernel(run.rng("kernel"), (1,), 3, 4)
    amplitude = float(np.log(33.0))
    encoding, grid = comb(32, amplitude), TokenGrid((32,), ((0, 0),))
    maps = jnp.asarray(np.stack([2 * kernel[0], -kernel[0]]), float)
    layer, attend = AttentionLayer(encoding, None, maps, **LINE), jax.jit(apply_attention)
    typed = jnp.asarray(rows, float)
    majorant = np.asarray(attend(AttentionLayer(encoding, None, jnp.abs(maps), **LINE), typed))
    unit = 2.0**-53
    heights = float(np.max(np.asarray(encoding.shift_majorant(grid.shifts, 32))))
    absolute = gamma(16 + encoding.roundings, unit) * heights + 4 * unit * amplitude
    scores = ScoreError(jnp.dtype("float64"), absolute, amplitude, 0.0)
    exponent = absolute + unit * (amplitude + 2 * absolute)
    double = jnp.dtype("float64")
    relative = relative_error(layer, grid, scores, exponent, double, double, True)
    bound = relative * majorant * (1 + 2.0**-20)
    exact = within("float64", attend(layer, typed), exact_convolution(rows, kernel), bound)
    columns = np.stack(
        [
            np.asarray(
                attend(
                    AttentionLayer(encoding, None, one[:, None, None], **LINE),
                    jnp.eye(64)[..., None],
                )
            ).ravel()
            for one in jnp.eye(2)
        ],
        axis=-1,
    )
    best, *_ = np.linalg.lstsq(columns, np.eye(64).ravel(), rcond=None)
    error = float(np.abs(columns @ best - np.eye(64).ravel()).max())
    require(error > 0.5 - 2.0**-20, f"on 64 tokens the error is {error}")
    return f"{len(rows)} rows of 32, two heads: {exact}; on 64 tokens {error:.3g} of the tap"


def two_heads(run: Run) -> str:
    """Modulo primes: 2F + 1 exponentials vanish at no 2F + 1 places in a row, the comb at 2F."""
    for pairs in range(1, 9):
        numbers = run.rng("angles", pairs).integers(2, 2**60, pairs).tolist()
        nodes = [1, *numbers, *(pow(x, -1, PRIME) for x in numbers)]
        for start in (1, 3):
            table = [pow(x, start + k, PRIME) for k in range(len(nodes)) for x in nodes]
            rank = int(nmod_mat(len(nodes), len(nodes), table, PRIME).rank())
            require(rank == len(nodes), f"{pairs} pairs from {start}: rank {rank}")
        period, prime, root = 2 * pairs + 1, *root_of_unity(2 * pairs + 1)
        sums = [
            sum(pow(root, f * k % period, prime) for f in range(-pairs, pairs + 1)) % prime
            for k in range(2 * period)
        ]
        expected = [period % prime * (k % period == 0) for k in range(2 * period)]
        require(sums == expected, f"period {period}: the sums are {sums}")
    return "F = 1 to 8: no zeros in a row beyond 2F, and the comb has 2F"


def root_of_unity(order: int) -> tuple[int, int]:
    """A prime that is 1 modulo the order and large, and an element of that order."""
    prime = next(
        p
        for p in range(order * 100 + 1, 10**6, order)
        if all(p % d for d in range(2, int(p**0.5) + 1))
    )
    divisors = [d for d in range(1, order) if order % d == 0]
    return prime, next(
        root
        for root in (pow(x, (prime - 1) // order, prime) for x in range(2, prime))
        if all(pow(root, d, prime) != 1 for d in divisors)
    )


def periodic_heads(run: Run) -> str:
    """Weights of period p, modulo a prime, at all queries: exact on p - 2r tokens, not on more.

    With the normalisers and a ring of r zero tokens. Combs for the taps, a uniform head and p more
    span all functions of period p. On the bare grid two tokens are too many for r > 0 (S.padding).
    """
    summary = []
    for period, reach, ring in ((3, 0, 0), (4, 0, 0), (5, 1, 1), (7, 1, 1), (7, 2, 2), (5, 1, 0)):
        heads = [run.rng(period, h).integers(1, 2**60, period).tolist() for h in range(period)]
        combs = [[1 + (k == d % period) for k in range(period)] for d in range(-reach, reach + 1)]
        heads += [*combs, [1] * period]
        able = [n for n in range(1, period + reach + 4) if is_expressed(heads, reach, ring, n)]
        most = period - 2 * reach if ring == reach else 1
        require(able == [*range(1, most + 1)], f"p = {period}, r = {reach}: exact on N = {able}")
        summary.append(f"p = {period}, r = {reach}, ring {ring}: N ≤ {most}")
    return "exact on " + "; ".join(summary)


def is_expressed(heads: list[list[int]], reach: int, ring: int, tokens: int) -> bool:
    """Whether some maps of these heads are the taps 2 + δ, |δ| ≤ r, on so many tokens."""
    rows: list[list[int]] = []
    targets: list[int] = []
    for query in range(tokens):
        keys = range(-ring, tokens + ring)
        table = [[head[(key - query) % len(head)] for head in heads] for key in keys]
        norms = [pow(sum(column) % PRIME, -1, PRIME) for column in zip(*table, strict=True)]
        for key, row in zip(keys, table, strict=True):
            if 0 <= key < tokens:
                rows.append([a * n % PRIME for a, n in zip(row, norms, strict=True)])
                targets.append((5 + key - query) * (abs(key - query) <= reach))
    both = [[*row, target] for row, target in zip(rows, targets, strict=True)]
    ranks = [
        int(nmod_mat(len(t), len(t[0]), [x for row in t for x in row], PRIME).rank())
        for t in (rows, both)
    ]
    return ranks[0] == ranks[1]


CLAIM = Claim(
    id="S.continuation",
    source="this project, on rotary encodings",
    verdict=Verdict.HOLDS,
    kinds=(Kind.LIMIT,),
    evidence=(
        proved(
            "sharpened/continuation.v",
            covers="(4) by contraposition, and (1) for heads that recur together, by position, "
            "without a bias; not: which encodings recur or have such combinations, images",
        ),
        proved(
            "sharpened/continuation_rotary.v",
            covers="(1) for rotary scores of any angles on one axis, by position, without a bias, "
            "over an Archimedean field such as the reals; not: sinusoids that are added",
        ),
        proved(
            "sharpened/continuation_two.v",
            covers="(3) at one query, that N ≥ m + 2F + 2 is too long, without a bias, for an "
            "exponential that is 1 at 0 alone; not: that it is sharp, and the mirror",
        ),
        Evidence(
            "nothing vanishes on H keys",
            Level.ENCLOSED,
            nothing_vanishes,
            assumes=BALLS,
            quick=False,
        ),
        Evidence("half of a tap", Level.ENCLOSED, half_of_a_tap, assumes=BALLS, quick=False),
        Evidence("two heads", Level.TESTED, two_heads),
        Evidence("weights of a period", Level.TESTED, periodic_heads),
        Evidence("the best maps", Level.BOUNDED, with_best_maps, assumes=EXP, quick=False),
        Evidence("rows of pixels", Level.BOUNDED, rows_of_pixels, assumes=EXP, quick=False),
    ),
)
