"""S.polygon: two positional features of the smallest norm, and one-hot heads in half precision.

Claimed. Of two positional features the corners of a regular polygon need the smallest norm for
heads that attend to one offset each, for nine offsets about 150 times less than S.dp2's.
True. They do for three offsets or more; all heads can be one-hot for up to 56 offsets in bfloat16
and 120 in float16, where S.dp2's own numbering ends at 16 and 46.

Printed. Not from a paper: our own result. Cordonnier et al. 2020, Theorem 1, asks for D_p ≥ 3, and
S.dp2 takes (n, n²), whose scores span a range that grows like T². First stated like this: for T ≥ 4
offsets a score ahead of all others by γ at each takes ‖v‖·R ≥ γ/(1 - cos 2π/T), R the circumradius
of the features; the regular T-gon with all other shifts at its centre attains it. For T = 9 that is
about 4.3γ, where S.dp2 takes about 650γ.

Verified. Let each of T offsets have a feature and a query vector v in the plane, all other shifts
one further feature, R the radius of the smallest disc that holds the T + 1 features, and let each
offset's score be ahead of every other shift's by at least γ under its own v. (1) max ‖v‖·R ≥ γ/h,
with h = 2, 8/√27, 1 for T = 1, 2, 3 and h = 1 - cos 2π/T for T ≥ 4, and nothing larger holds. For T
≥ 4, R may be that of the T offsets' features alone. (2) The regular T-gon with the spare feature at
its centre and v = a times the corner is ahead by a·min(1, 1 - cos 2π/T), for T = 1 by a: it attains
(1) for T ≥ 3; the centre binds for T ≤ 3, both for T = 4, the neighbouring corner for T ≥ 5. T = 9:
4.274γ, where the features (n, n²) with v = γ(2n, -1) have √257·√6642/2·γ = 653.26γ, numbered from 0
as in S.dp2, and √65·√650/2·γ = 102.77γ, numbered from -4 to 5. (3) With α the lead the total
variation between a head's row and the one-hot row at its target is below (N - 1)e^-α (N ≥ 2), so
that T heads tend to the convolution, zero-padded with a ring. (4) Let features and query vectors be
rounded to a dtype, a be a power of two, the scores summed in float32 and rounded to the dtype, and
call a row one-hot if every other score is below its own by more than L (it may overflow to -∞):
then each other weight is below half the smallest number of the dtype, and is rounded to zero. L =
25·log 2 in float16, 134·log 2 in bfloat16. Some a makes all T rows one-hot for every T ≤ 56 in
bfloat16 and T ≤ 120 in float16; with (n, n²) some a does for every T ≤ 16 and T ≤ 46, numbered from
0, and for every T ≤ 32 and T ≤ 91, numbered from -⌊T/2⌋, and none does beyond, up to T = 128. So K
= 5 in bfloat16 and K = 7, 9 in float16 are out of reach of S.dp2's numbering, and K = 7 in bfloat16
of every numbering tried but the polygon's.

Nothing to repair. The library computes the scores in at least float32, and refuses so many corners
that rounding there takes a part of the lead: more than 804 in float32.

Proof. *The idea:* a lead at every corner makes the exterior angles of the convex hull large, and
they add up to 2π.

(1) Let R = 1, the disc be centred at 0, x_i be the offsets' features, H = γ/max ‖v‖ and u_i =
v_i/‖v_i‖: u_i·(x_i - x_j) ≥ H for every other feature x_j. *T = 1:* H ≤ 2, attained by opposite
points.

*T ≥ 4:* each x_i is a corner of the convex hull of them all. Number them around it, a_i = |x_i -
x_(i+1)|, with exterior angles θ_i. The angle between u_i and x_i - x_(i+1) is at most
arccos(H/a_i), that between u_i and x_i - x_(i-1) at most arccos(H/a_(i-1)); the inner angle π - θ_i
is at most their sum, so θ_i ≥ arcsin(H/a_(i-1)) + arcsin(H/a_i). Σ θ_i = 2π, hence Σ arcsin(H/a_i)
≤ π. As arcsin(H/a) is convex in a, H ≤ a·sin(π/T) with a the mean of the a_i.

Project the x_i from a point within their hull onto the circle: the hull of the images contains
theirs, so T·a is at most its perimeter; its sides are chords 2 sin(ψ_i/2) over arcs with Σ ψ_i =
2π, a concave function, so T·a ≤ 2T·sin(π/T). Together H ≤ 2 sin²(π/T).

*T = 3:* suppose H > 1. As u_i·x_i ≤ 1, all u_i·x_j < 0 for j ≠ i, the spare s included. So the
three u_i are in an open half-plane, and one of them, u_2 = αu_1 + βu_3 with α, β ≥ 0; then
u_2·x_2 = αu_1·x_2 + βu_3·x_2 ≤ 0, but u_2·x_2 ≥ H + u_2·x_1 ≥ H - 1 > 0.

*T = 2:* H is at most the distances of x_1 from the segment x_2 s and of x_2 from x_1 s. If the
triangle has an angle of at least 90° at s, 2H² ≤ |x_1 - x_2|² ≤ 4; if it has one at x_1 or x_2, the
distance from there is a height of at most half the side opposite, so H ≤ 1. Otherwise, with angles
A, B, C at x_1, x_2, s and circumradius at most 1, both distances are heights, 2 sin B sin C and 2
sin A sin C at most, and the smaller is at most 2 sin((A + B)/2)·sin C = 4 sin(C/2)·cos²(C/2) ≤
8/√27, attained at sin²(C/2) = 1/3, A = B, which is acute.

(2) Corners on the unit circle have scores a·cos(2πm/T), the centre 0.

(3) The N - 1 other keys have at most (N - 1)e^-α/(1 + (N - 1)e^-α) of the weight; Lemma 1 of C20
does the rest.

(4) is counted. Why: with unit roundoff u rounding a corner moves it by at most u, so a product of
two by 2u + u², and rounding the score adds u(1 + 3u); the lead is at least a(1 - cos 2π/T - 6u -
8u²), which is positive for T ≤ 28 in bfloat16 and T ≤ 82 in float16; larger T are counted alone.

With (n, n²) a number that occurs has a square of more bits than the dtype, 17² in bfloat16 from T =
17 and 33 on, 47² in float16 from T = 47 on, so that scores next to each other are rounded to one;
at T = 92, numbered from -46, the score 46²a overflows in float16 at a = 32, and at a = 16 the lead
is below L. ∎
"""

import jax
import jax.numpy as jnp
import numpy as np
from flint import arb, ctx

from convattn.encodings.polygon import polygon_corners
from convattn_ledger import Claim, Evidence, Kind, Level, Run, Verdict, require
from convattn_ledger.bounds.saturation import PRECISION, upper
from convattn_ledger.evidence import certified, equals_convolution
from convattn_ledger.evidence.enclosures import ASSUMES as BALLS

LARGEST = {1: 2.0, 2: 8 / 27**0.5, 3: 1.0}  # h for few offsets
# dtype: bits of half its smallest number; the largest T of the polygon, and of (n, n²) numbered
# from 0 and from -⌊T/2⌋.
HALVES = {"bfloat16": (134, 56, 16, 32), "float16": (25, 120, 46, 91)}


def lead(count: int) -> arb:
    """The least of 1 (the centre) and 1 - cos(2πm/T) (the other corners); a ball."""
    least = arb(1)
    for corner in range(1, count):
        least = least.min(1 - (arb(2 * corner) / count).cos_pi())
    return least


def norms(run: Run) -> str:
    """max ‖v‖·R/γ of the polygon against 1/h, and of (n, n²), whose disc is found exactly."""
    with ctx.workprec(PRECISION):
        for count in range(3, 62):
            neighbour = 1 - (arb(2) / count).cos_pi()
            expected = arb(LARGEST[3]) if count == 3 else neighbour
            gap = abs(lead(count) - expected)
            require(gap < arb(2) ** (20 - PRECISION), f"T = {count}: the lead is {lead(count)}")
            binds = bool(neighbour < 1 - arb(2) ** (20 - PRECISION))
            require(binds == (count >= 5), f"T = {count}: the neighbour is {neighbour} behind")
        polygon = 1 / lead(9)
        require(bool(abs(polygon - arb("4.274")) < arb("0.0005")), f"T = 9: {polygon}")
        summary = [f"T = 3 to 61: 1/h; T = 9: {upper(polygon):.4g}"]
        for first, expected in ((0, "653.26"), (-4, "102.77")):
            squares = square_norm(range(first, first + 10))
            near = bool(abs(squares - arb(expected)) < arb("0.005"))
            require(near, f"T = 9, (n, n²) from {first}: {squares}")
            summary.append(f"(n, n²) from {first}: {upper(squares):.5g}")
    return ", ".join(summary)


def square_norm(numbers: range) -> arb:
    """max ‖(2n, -1)‖·R of the points (n, n²), the last one spare; a ball.

    No disc that holds two points is smaller than that on the segment between them, and the disc
    from the vertex or the lowest number to the highest holds all.
    """
    points = [(n, n * n) for n in numbers]
    (left, low), (right, high) = points[min(numbers.index(0), len(points) - 1)], points[-1]
    for x, y in points:
        inside = (x - left) * (x - right) + (y - low) * (y - high) <= 0
        require(inside, f"({x}, {y}) is outside the disc")
    radius = arb((right - left) ** 2 + (high - low) ** 2).sqrt() / 2
    return max(4 * n * n + 1 for n in numbers[:-1]) ** arb("0.5") * radius


def head_distance(alpha: int, target: int, count: int, keys: int) -> arb:
    """TV of the head of one corner, with N keys of which N - T are at the centre; a ball."""
    scale, others = arb(alpha) / lead(count), arb(0)
    for corner in range(count):
        if corner != target:
            others += (scale * ((arb(2 * (corner - target)) / count).cos_pi() - 1)).exp()
    others += (keys - count) * (-scale).exp()
    return others / (1 + others)


def distance_enclosed(run: Run) -> str:
    """0 < TV < (N - 1)e^-α for every head."""
    summary = []
    for count, keys in ((1, 9), (3, 34), (4, 25), (9, 100), (9, 1156), (25, 144)):
        for alpha in (1, 8, 46, 104, 128):
            worst = 0.0
            with ctx.workprec(PRECISION):
                vanishing = (keys - 1) * (-arb(alpha)).exp() * (1 + arb(2) ** (20 - PRECISION))
                for target in range(count):
                    distance = head_distance(alpha, target, count, keys)
                    require(
                        bool(distance > 0 and distance < vanishing),
                        f"T = {count}, N = {keys}, α = {alpha}, corner {target}: TV = {distance}, "
                        f"not between 0 and {vanishing}",
                    )
                    worst = max(worst, upper(distance))
        summary.append(f"T = {count}, N = {keys}: TV < {worst:.2g} at α = {alpha}")
    return "; ".join(summary)


def leads(points: np.ndarray, count: int) -> np.ndarray:
    """max over unit u of min_j u·(x_i - x_j), for the first `count` of some points in a batch.

    It is the distance from x_i to the hull of the others, so u is the normal of a segment between
    two points or points from one to another; where x_i is in that hull, at most zero.
    """
    first, second = np.triu_indices(points.shape[1], 1)
    sides = points[:, first] - points[:, second]
    normals = np.stack([-sides[..., 1], sides[..., 0]], axis=-1)
    directions = np.concatenate([normals, -normals, sides, -sides], axis=1)
    directions /= np.maximum(np.linalg.norm(directions, axis=-1, keepdims=True), 1e-300)
    heights = np.einsum("bud,bnd->bun", directions, points)
    others = [np.delete(heights, i, axis=2).max(axis=2) for i in range(count)]
    return (heights[:, :, :count] - np.stack(others, axis=2)).max(axis=1)


def largest_margin(count: int, rng: np.random.Generator, steps: int, batch: int = 40) -> float:
    """The largest min lead that a climb from random features in the unit disc finds."""

    def in_disc(points: np.ndarray) -> np.ndarray:
        return points / np.maximum(np.linalg.norm(points, axis=-1, keepdims=True), 1)

    points = in_disc(rng.normal(size=(batch, count + 1, 2)))
    best, scale = leads(points, count).min(axis=1), np.full(batch, 0.5)
    for _ in range(steps):
        moved = rng.random((batch, count + 1, 1)) < rng.choice([0.3, 1.0])
        tried = in_disc(points + scale[:, None, None] * rng.normal(size=points.shape) * moved)
        margins = leads(tried, count).min(axis=1)
        better = margins > best
        points[better], best[better] = tried[better], margins[better]
        scale = np.clip(np.where(better, 1.3, 0.97) * scale, 1e-7, 0.5)
    return float(best.max())


def no_other_features(run: Run) -> str:
    """A search for features with a larger lead ends just below h; the polygon has h."""
    summary = []
    for count in range(1, 7):
        bound = LARGEST.get(count, 2 * np.sin(np.pi / count) ** 2)
        margin = largest_margin(count, run.rng(count), 250 if run.quick else 1000)
        require(margin <= bound + 1e-12, f"T = {count}: features with {margin}, above {bound}")
        require(margin > 0.75 * bound, f"T = {count}: the search found no more than {margin}")
        summary.append(f"T = {count}: {margin:.4f} ≤ {bound:.4f}")
        if count >= 3:
            polygon = np.vstack([polygon_corners(count), np.zeros((1, 2))])
            attained = float(leads(polygon[None], count).min())
            require(abs(attained - bound) < 1e-12, f"T = {count}: the polygon has {attained}")
    return "; ".join(summary)


def corner_features(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Features of the shifts, the spare last, and query vectors for a = 1."""
    corners = polygon_corners(count)
    return np.vstack([corners, np.zeros((1, 2))]), corners


def square_features(count: int, first: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """(n, n²) and (2n, -1), the first number given."""
    numbers = np.arange(count + 1.0) + first
    vectors = np.stack([2 * numbers[:-1], -np.ones(count)], axis=-1)
    return np.stack([numbers, numbers**2], axis=-1), vectors


def half_scores(features: np.ndarray, vectors: np.ndarray, scale: float, dtype: str) -> np.ndarray:
    """Rounded features and query vectors, products and sum in float32, rounded to the dtype.

    The products are exact in float32, so it does not matter whether the sum is fused with one.
    """
    half = jnp.dtype(dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        x, v = (array.astype(half).astype(np.float32) for array in (features, scale * vectors))
        scores = v[:, None, 0] * x[None, :, 0] + v[:, None, 1] * x[None, :, 1]
        return scores.astype(half)


def one_hot_scale(features: np.ndarray, vectors: np.ndarray, dtype: str) -> float | None:
    """The least power of two a at which each row's own score leads by more than L, if any."""
    count, limit = len(vectors), HALVES[dtype][0] * np.log(2)
    for power in range(40):
        scores = half_scores(features, vectors, 2.0**power, dtype).astype(np.float64)
        own = scores[np.arange(count), np.arange(count)]
        if not np.isfinite(own).all():
            return None
        scores[np.arange(count), np.arange(count)] = -np.inf
        if (own - scores.max(axis=1)).min() > limit:
            return 2.0**power
    return None


def half_precision(run: Run) -> str:
    """For each T which features have a one-hot scale; then softmax itself, in that dtype."""
    summary = []
    for dtype, (_, polygon, squares, centred) in HALVES.items():
        chosen = (9, 16, 17, 25, 32, 33, 46, 47, 49, 56, 81, 91, 92, 120)
        counts = chosen if run.quick else range(1, 129)
        for count in counts:
            for name, features, last in (
                ("polygon", corner_features(count), polygon),
                ("(n, n²)", square_features(count), squares),
                ("centred (n, n²)", square_features(count, -(count // 2)), centred),
            ):
                scale = one_hot_scale(*features, dtype)
                if name == "polygon" and count > polygon:
                    continue
                require(
                    (scale is not None) == (count <= last),
                    f"{dtype}, T = {count}: {name} is one-hot at a = {scale}",
                )
                if scale is not None and count == last:
                    scores = jnp.asarray(half_scores(*features, scale, dtype))
                    weights = jax.nn.softmax(scores, axis=-1)
                    require(
                        weights.dtype == dtype
                        and bool((weights == jnp.eye(count, count + 1)).all()),
                        f"{dtype}, T = {count}: {name} at a = {scale} has other weights",
                    )
                    summary.append(f"{name} to T = {last} (a = {scale:g})")
        summary[-3:] = [f"{dtype}: {', '.join(summary[-3:])}"]
    return "; ".join(summary)


CLAIM = Claim(
    id="S.polygon",
    source="this project, sharpening S.dp2",
    verdict=Verdict.HOLDS,
    kinds=(Kind.LAYER_EQUALITY, Kind.LIMIT),
    evidence=(
        certified("S.polygon"),
        Evidence("norms", Level.ENCLOSED, norms, assumes=BALLS),
        Evidence("distance to hard attention", Level.ENCLOSED, distance_enclosed, assumes=BALLS),
        Evidence("no other features", Level.TESTED, no_other_features),
        Evidence("half precision", Level.TESTED, half_precision),
        equals_convolution("3 × 3, pixels", (3, 3), encoding="polygon"),
        equals_convolution("5 × 5, P = 4", (5, 5), patch_size=4, encoding="polygon"),
    ),
)
