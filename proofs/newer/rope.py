"""N.rope: rotary heads that look at one distance, and their price.

Claimed. With rotary position encodings (RoPE), a head can attend most to any given relative
distance.
True. It can for every query but zero, at that distance alone, but no size of queries and keys
serves every length: the lead over other distances vanishes as sequences grow.

Printed. Barbero et al. 2024, Proposition 3.1: "Given any query q and any relative distance r ∈ ℤ,
we can find a key k such that the attention value is maximal at distance r with RoPE." Theorem 5.3,
in substance: for d = 2 a head with RoPE can attend to its own position, or to the one before, with
more than 1 - ε: all queries and keys equal to ψ, say, give the scores ‖ψ‖² cos((j - i)g), largest
at j = i alone, as ng is a multiple of 2π for n = 0 alone (Lemma A.1), and ‖ψ‖ → ∞. A head without
positional encoding cannot (Proposition 5.2). Angles are g_k = θ^(-2(k-1)/d), θ = 10000.

Verified. (1) For q ≠ 0 there is such a key, and the maximum is at that distance alone, at every
length; for q = 0 all distances are alike. With c_k the product of the norms of the k-th pairs of
query and key and C = Σ c_k, the score is Σ c_k cos(g_k·d), d the distance from the target, and the
target is ahead of the other tokens by the least Σ c_k(1 - cos(g_k·d)), its lead. (2) At which norm:
with p pairs of any angles and N tokens from the target onwards that lead is at most 2π²C/M², M =
⌊(N - 1)^(1/p)⌋, and that of any other query and key with these c_k at most 2πC/M. A weight of 1 - ε
takes a lead of log((1 - ε)/ε), so no norm serves every length: the ε of the theorem is bought for
one length at a time. For its d = 2 and g = 1 the scores at the distances 0 and 710 differ by less
than 1.9·10⁻⁹C, which float32 does not tell apart. (3) With half a turn, a quarter, …, 2^-n of a
turn per token as angles, on each of D axes, and all c_k = c, the lead is at least 2c on every grid
of up to 2^n keys a side, and 2c at 2^n: a lead of γ costs ‖q‖‖k‖ = nDγ/2 and 2nD coordinates. On 16
× 16 keys that is 4γ with 16 coordinates; 64 coordinates of axial RoPE (Heo et al. 2024:
100^(-j/16), j < 16) with all c_k alike take 29.5γ. (4) On images T such heads, one for each token
offset, K² on pixels, tend to the convolution as γ → ∞, zero-padded with a ring, on all images of up
to 2^n keys a side with the ring; the total variation between a row and the one-hot row at its
target is below (N - 1)e^-γ, N ≥ 2 the number of keys. On the bare grid the border is that of no
convolution: of six tokens in a row the head for offset -1 sends the first to the fourth, which is
four away from its target.

Nothing to repair. The proposition says neither that the maximum is at no other distance, which q ≠
0 gives, nor by how much it is ahead; with the angles of (3) the price grows with the logarithm of
the number of tokens.

Proof. *The idea:* every pair of coordinates turns at its own rate, and all have made whole turns at
the target alone.

(1) k = R^(-r)q, up to the direction in which distances are counted, turns each pair back, so the
score is Σ‖q^(k)‖² cos(g_k·d). The g_k are algebraic and not zero and π is transcendental: g_k·d is
a multiple of 2π for d = 0 alone, so each pair with q^(k) ≠ 0 loses something at every other d.

(2) Count d·g_k/2π modulo 1: of the p numbers for each of d = 0, …, M^p two lie in the same of M^p
boxes of side 1/M; their difference is a d ≤ N - 1 at which every angle is within 2π/M of a whole
turn. There 1 - cos x ≤ x²/2; with phases, cos φ - cos(x + φ) ≤ |x|. A weight of at least 1 - ε
leaves at most ε to a key that is behind by the lead: e^(-lead) ≤ ε/(1 - ε).

(3) Where d ≠ 0 on some axis, with |d| < 2^n there, let 2^s be the largest power of two that divides
it; the pair that turns 2^(-s-1) per token has made an odd number of half turns and contributes -c
in place of c. At d = 2^(n-1) all other pairs of the axis have made whole turns.

(4) Softmax: the N - 1 other keys have at most (N - 1)e^-γ/(1 + (N - 1)e^-γ) of the weight; Lemma 1
of C20 does the rest. ∎
"""

from itertools import product

import jax.numpy as jnp
import numpy as np
from flint import arb, ctx

from convattn.encodings.rotary import axial_turns, rotary_heads
from convattn.operators.shifts import TokenGrid
from convattn_ledger import Claim, Evidence, Kind, Level, Run, Verdict, require
from convattn_ledger.bounds.saturation import PRECISION, upper
from convattn_ledger.evidence import equals_convolution
from convattn_ledger.evidence.enclosures import ASSUMES as BALLS
from convattn_ledger.evidence.enclosures import distance_to_one_hot

BITS = 128
ONCE_AROUND = 710  # 710 radians are 113 turns and 6·10⁻⁵


def angles(pairs: int, base: int) -> list[arb]:
    """base^(-k/pairs) radians, k = 0, …, pairs - 1."""
    return [arb(base) ** (-arb(k) / pairs) for k in range(pairs)]


def dyadic_angles(pairs: int) -> list[arb]:
    """Half a turn, a quarter, …, in radians."""
    return [arb.pi() / 2**k for k in range(pairs)]


def loss(rotations: list[arb], steps: int) -> arb:
    """Σ (1 - cos(g_k·d)): by how much a key at d from the target is behind, with c_k = 1."""
    return sum((1 - (rotation * steps).cos() for rotation in rotations), arb(0))


def lead(rotations: list[arb], keys: int) -> tuple[arb, int]:
    """The least loss among the first N keys, and a distance that has it; a ball."""
    losses = [(loss(rotations, steps), steps) for steps in range(1, keys)]
    least, where = min(losses, key=lambda pair: float(pair[0].mid()))
    for other, _ in losses:
        least = least.min(other)
    return least, where


def norm_needed(run: Run) -> str:
    """Leads of RoFormer's angles against the bound by boxes, and where a single pair repeats."""
    summary = []
    with ctx.workprec(BITS):
        for pairs in (1, 2, 3, 4):
            for keys in (17, 82, 257, 1297):
                size = next(m for m in range(keys, 0, -1) if m**pairs <= keys - 1)
                value, _ = lead(angles(pairs, 10000), keys)
                allowed = 2 * arb.pi() ** 2 * pairs / size**2
                require(
                    bool(value > 0 and value < allowed),
                    f"{pairs} pairs, {keys} keys: the lead is {value}, not between 0 and {allowed}",
                )
            summary.append(f"{pairs} pairs, {keys} keys: {upper(value):.2g} < {upper(allowed):.2g}")
        single, where = lead(angles(1, 10000), 2048)
        require(where == ONCE_AROUND, f"one pair comes closest at {where} of 2047")
        unseen = arb(2) ** -25  # half the spacing of float32 below one
        inside = bool(single < arb("1.9e-9") and single > arb("1.8e-9") and single < unseen)
        require(inside, f"at {where} the loss is {single}")
    return "; ".join(summary) + f"; one pair at {where}: {upper(single):.3g}"


def dyadic_leads(run: Run) -> str:
    """Exactly 2 with n pairs on 2^n keys, and 0 one key further."""
    with ctx.workprec(BITS):
        tiny = arb(2) ** (20 - BITS)
        for pairs in range(1, 11):
            rotations = dyadic_angles(pairs)
            value, _ = lead(rotations, 2**pairs)
            require(bool(abs(value - 2) < tiny), f"{pairs} pairs: the lead is {value}")
            repeated = loss(rotations, 2**pairs)
            require(
                bool(abs(repeated) < tiny), f"{pairs} pairs repeat after {2**pairs}: {repeated}"
            )
    return "n = 1 to 10: 2c on 2^n keys in a row, 0 beyond"


def price_on_images(run: Run) -> str:
    """C/γ on 16 × 16 keys: 4 with dyadic angles, 29.5 with those of axial RoPE."""
    summary = []
    with ctx.workprec(BITS):
        for name, rotations, expected in (
            ("dyadic", dyadic_angles(4), "4"),
            ("axial, base 100", angles(16, 100), "29.55"),
        ):
            alone = [loss(rotations, steps) for steps in range(16)]
            least = None
            for first, second in product(range(16), repeat=2):
                if first or second:
                    both = alone[first] + alone[second]
                    least = both if least is None else least.min(both)
            price = 2 * len(rotations) / least
            near = bool(abs(price - arb(expected)) < arb("0.05"))
            require(near, f"{name}: {price}, expected {expected}")
            summary.append(f"{name}: {4 * len(rotations)} coordinates, {upper(price):.3g}γ")
    return "16 × 16 keys, " + "; ".join(summary)


def row_distance(sharpness: float, target: tuple[int, ...], keys: tuple[int, ...]) -> arb:
    """TV of a row with three dyadic pairs an axis: softmax is a product over the axes; a ball."""
    weight, rotations = arb(1), dyadic_angles(3)
    for position, count in zip(target, keys, strict=True):
        terms = [(-arb(sharpness) / 2 * loss(rotations, k - position)).exp() for k in range(count)]
        weight /= sum(terms, arb(0))
    return 1 - weight


def distances_enclosed(run: Run) -> str:
    """Rows of the library's own scores on a ringed grid, as by the axes: 0 < TV < (N - 1)e^-γ."""
    grid, offsets = TokenGrid((4, 5), ((1, 1), (1, 1))), list(product((-1, 0, 1), repeat=2))
    summary = []
    for sharpness in (1.0, 8.0, 46.0, 104.0):
        heads = rotary_heads(axial_turns(3, 2), offsets, jnp.asarray(sharpness / 2, float))
        scores, worst = np.asarray(heads.positional_scores(grid), np.float64), 0.0
        with ctx.workprec(PRECISION):
            # Scores are off by less than 100 units of roundoff of their sum of six terms.
            slack = arb(2 * sharpness * 6 * 100 * 2.0**-53).exp()
            vanishing = (grid.number_of_keys - 1) * (-arb(sharpness)).exp()
        queries = range(0, 20, 9) if run.quick else range(20)
        for head, offset in enumerate(offsets):
            for query in queries:
                target = tuple(map(int, np.add(grid.query_positions[query], offset)))
                key = int(np.ravel_multi_index(target, grid.keys))
                distance = distance_to_one_hot(scores[head, query], key)
                with ctx.workprec(PRECISION):
                    by_axes = row_distance(sharpness, target, grid.keys)
                    agree = abs(distance - by_axes) < by_axes * (slack - 1)
                    require(
                        bool(agree and by_axes > 0 and by_axes < vanishing),
                        f"γ = {sharpness}, offset {offset}, query {query}: {distance}, by the axes "
                        f"{by_axes}",
                    )
                worst = max(worst, upper(distance))
        summary.append(f"γ = {sharpness:g}: {worst:.2g} < {upper(vanishing):.2g}")
    return "4 × 5 tokens and a ring, 9 heads; " + ", ".join(summary)


def bare_border(run: Run) -> str:
    """Of six tokens in a row the head for -1 sends the first to the fourth, four too far."""
    with ctx.workprec(BITS):
        for pairs in (3, 4, 10):
            losses = [loss(dyadic_angles(pairs), steps) for steps in range(1, 7)]
            others = [other for key, other in enumerate(losses) if key != 3]
            require(
                all(bool(losses[3] < other) for other in others),
                f"{pairs} pairs: the losses of the six keys are {losses}",
            )
    return "n = 3, 4, 10: of six keys the fourth has the largest score"


CLAIM = Claim(
    id="N.rope",
    source="Barbero et al. 2024 (arXiv:2410.06205), Proposition 3.1",
    verdict=Verdict.SHARPENED,
    kinds=(Kind.LIMIT,),
    evidence=(
        Evidence("the norm needed", Level.ENCLOSED, norm_needed, assumes=BALLS),
        Evidence("dyadic angles", Level.ENCLOSED, dyadic_leads, assumes=BALLS),
        Evidence("the price on images", Level.ENCLOSED, price_on_images, assumes=BALLS),
        Evidence("distance to hard attention", Level.ENCLOSED, distances_enclosed, assumes=BALLS),
        Evidence("the border of a bare grid", Level.ENCLOSED, bare_border, assumes=BALLS),
        equals_convolution("3 × 3, pixels", (3, 3), encoding="rotary"),
        equals_convolution("5 × 5, P = 4", (5, 5), patch_size=4, encoding="rotary"),
    ),
)
