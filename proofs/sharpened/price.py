"""S.price: where ρ heads reach a kernel only in a limit, error times value maps has a floor.

Claimed. Where as many heads as the kernel's rank reach it only with value maps that diverge, the
error times the size of the maps has a floor, so that rounding costs half of the digits.
True. It has, for heads by position that are near enough to the kernel; the loss is one in the worst
case of rounding, a given layer can be lucky, and one head more avoids it.

Printed. Not from a paper: our own result, of a kernel that ρ = rank F heads reach in the limit, but
only with value maps that diverge (S.kernel). For all layers of ρ heads that are near enough, the
error times the norm of the maps is at least some c(F) > 0, and S.kernel's layers attain the order.
So, in the worst case of maps rounded with roundoff u, no ε is better than about √u: half of the
digits are lost, where ρ + 1 heads lose none.

Verified. Let R be the row space of F, σ its least singular value that is not 0, and let the
nonnegative vectors of R not span R. Let ρ heads without content have at one query, all of whose
offsets are tokens, the weights A [ρ, T] at the offsets and the flattened value maps V, one column a
head; E = VA - F is what is wrong; norms are Frobenius'.

(1) If |E| < σ/2, then |E|·|V| ≥ σ²/(4κ√ρ), where κ depends on R alone (below). The condition is
needed: no maps at all have the product 0. In the other direction, if R holds a nonnegative vector
that is not 0, there are layers with |E| → 0 and bounded |E|·|V| (S.kernel).

(2) For F = (1, 0, 0; 0, 1, -1), at the centre, the left and the right neighbour, with B the largest
entry of V and e ≤ 1 that of E in absolute value, 2eB ≥ (1 - e)(1 - 4e), and √2|E|B ≥
(1 - |E|/√2)(1 - (1 + √2)|E|) if |E| < 1/(1 + √2). Layers reach eB → 1/2 and |E|B → 1/√2 as e → 0:
0.9554, 0.7818, 0.7312, 0.7142 and 0.7095 for B = 3, 10, 30, 100, 300.

(3) Let all keys be tokens of the image, and let an image's pixels lie between -1 and 1. If entries
of the maps may be off by u of themselves, some two-head layer within that of a given one is off the
convolution of (2) by at least min(1/16, √(u/6)) at some output, however B is chosen. With three
heads, whose maps do not depend on u, it is off by at most u·Σ|V|. Both at queries all of whose
offsets are tokens. A given layer can be lucky: with
powers of two and integers nothing is rounded, and its error falls below √u. For other kernels of
(1) and small u the same holds with c√u, c > 0 a number of the kernel.

For S.width's limits, in which coordinates of a token share heads, the exponent is open. Those
layers are off by at most about ε, and κu from rounding, κ = 1 + 2/ε, both of max|X|·Σ|W|.

Nothing to repair.

Proof. *The idea:* the weights are close to nonnegative vectors of R, which miss a direction of R,
and only large maps make up for it.

(1) By Hoffman (1952) there is κ such that each a ≥ 0 has a nonnegative c in R with |a - c| ≤
κ·dist(a, R). As |E| < σ/2, VA has the rank ρ, with singular values of at least σ - |E| > σ/2. Rows
of A are nonnegative with a sum up to one, so |A| ≤ √ρ, and those of V are at least σ/(2√ρ). So V
has a left inverse V⁺ of norm up to 2√ρ/σ, A = V⁺F + V⁺E, and the rows of V⁺F lie in R. Hence A =
C + D with nonnegative rows of R in C and |D| ≤ 2κ√ρ|E|/σ.

Let P be the projection onto a direction w of R that is orthogonal to all nonnegative vectors of R;
there is one. CP = 0, so FP = VDP - EP, and σ ≤ |Fw| ≤ |V||D| + |E| ≤ 2κ√ρ|V||E|/σ + σ/2.

(2) Let a_h, b_h, c_h be the weights of head h at the three keys, s_h = b_h + c_h, and (v_h, w_h)
its map. Row 2 of V has Σw_h(b_h - c_h) = 2 + E_22 - E_23, so B(s_1 + s_2) ≥ 2 - 2e. Let D = (a, b),
G = VD = 1 + (first two columns of E), η = Vs = the sum of the other two columns of VA, entries up
to 2e, as those of F cancel. If 4e < 1, G is invertible, so is V, and s = Dx with Gx = η, so that
|x| ≤ 2e + 2e|x| for the larger entry. Now s_h = a_h x_1 + b_h x_2 ≤ |x| + s_h|x| gives s_h(1 - 4e)
≤ 2e. Together 2 - 2e ≤ 4eB/(1 - 4e).

For |E| the same with |η| ≤ √2|E| and |G⁻¹| ≤ 1/(1 - |E|).

*The layers:* rows (1 - s, s, 0) and (1 - s, 0, s), V = (v, v; y, -y); s = 1/B, v = 1/(2 - 2s), y =
B have e = s/(2 - 2s), and other v, s the numbers above.

(3) Unless e ≥ 1/16, eB ≥ (15/16)(3/4)/2 > 1/3. Scaling the largest entry by 1 + u moves an output
of the image of ones by uB, so that one of both layers is off by at least max(e, uB/2) ≥ max(e,
u/(6e)) ≥ √(u/6).

For other kernels (1) takes the place of (2), as the largest entries of E and V are |E| and |V| but
for factors of their sizes, and the image has ones in one coordinate. ∎
"""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
from flint import arb, ctx, fmpq

from convattn.constructions.conversion import conv_to_attention
from convattn.constructions.geometry import ConvolutionGeometry
from convattn.constructions.given_kernel import given_kernel_layer, mixture_layer
from convattn.constructions.li_output_map import token_maps
from convattn.constructions.narrow_heads import amplification_of
from convattn.encodings.layer import AttentionLayer
from convattn.fast.application import apply_attention
from convattn.operators.convolution import conv
from convattn.operators.roundoff import ASSUMPTION
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict, require
from convattn_ledger.bounds.mixture_error import mixture_error_bound
from convattn_ledger.certificates.given_kernel import named_kernel
from convattn_ledger.evidence import proved, whole_images

F = np.array([[1, 0, 0], [0, 1, -1]])
PRODUCTS = {3: 0.956, 10: 0.782, 30: 0.732, 100: 0.715, 300: 0.710}  # |E|B, rounded up


def two_heads(s: Fraction, v: Fraction, y: Fraction) -> tuple[np.ndarray, np.ndarray]:
    """The weights (1 - s, s, 0), (1 - s, 0, s), and the maps (v, v; y, -y)."""
    return np.array([[1 - s, s, 0 * s], [1 - s, 0 * s, s]]), np.array([[v, v], [y, -y]])


def floor_of_largest(e: Fraction) -> Fraction:
    """(2): what the largest error times the largest entry of the maps is at least."""
    return (1 - e) * (1 - 4 * e) / 2 if 4 * e < 1 else Fraction(0)


def layers_in_fractions(run: Run) -> str:
    """(2) for the layers that attain it, for layers near them, and for any."""
    attained = []
    for size in (3, 10, 100, 10**6):
        s = Fraction(1, size)
        weights, maps = two_heads(s, 1 / (2 - 2 * s), Fraction(size))
        e = abs(maps @ weights - F).max()
        require(e * size == 1 / (2 - 2 * s), f"B = {size}: eB is {e * size}")
        attained.append(e * size)
    cases, least = 200 if run.quick else 2000, Fraction(9)
    for case in range(cases):
        rng = run.rng(case)
        s = Fraction(1, int(rng.integers(2, 400)))
        weights, maps = two_heads(s, 1 / (2 - 2 * s), 1 / s)
        if case % 4 == 0:
            weights, maps = np.array(rng.integers(1, 50, (2, 3)), object), 4 * maps
        moved = np.array(rng.integers(0, 9, (2, 3)), object) * s**2 / 10 ** (case % 5)
        weights = weights + moved
        weights = weights / weights.sum(axis=1, keepdims=True)
        maps = maps * (1 + np.array(rng.integers(-9, 10, (2, 2)), object) * s / 10 ** (case % 3))
        e, most = abs(maps @ weights - F).max(), abs(maps).max()
        if e <= 1 and e * most < floor_of_largest(e):
            raise EvidenceFailed(f"case {case}: eB = {e * most} for e = {e}")
        least = min(least, e * most if e < Fraction(1, 16) else least)
    return (
        f"eB = {', '.join(f'{float(product):.4f}' for product in attained)}; none of {cases} "
        f"layers below the floor, the least product with e < 1/16 is {float(least):.3f}"
    )


def kappa(p: int, q: int) -> float:
    """κ of the row space of (1, 0, 0; 0, p, -q), whose nonnegative vectors are a ray.

    x ≥ 0 is |(x_2, x_3)| from the ray, and |q·x_2 + p·x_3|/√(p² + q²) from R, which is at least
    min(p, q)/√(p² + q²) of that.
    """
    return float(np.hypot(p, q) / min(p, q))


def of_other_kernels(run: Run) -> str:
    """(1) for the kernels Q·(1, 0, 0; 0, p, -q).

    Both sides are computed to 1e-12 of their size, less than is allowed for.
    """
    closest = np.inf
    for case in range(100 if run.quick else 1000):
        rng = run.rng("kernels", case)
        p, q = rng.integers(1, 9, 2)
        kernel = rng.integers(-4, 5, (3, 2)) @ np.array([[1, 0, 0], [0, p, -q]])
        singular = np.linalg.svd(kernel, compute_uv=False)[1]
        if singular < 1e-9:
            continue
        s = 10.0 ** -rng.uniform(0, 6)
        weights = np.array([[1 - s, s, 0], [1 - s, 0, s]]) + s**2 * rng.random((2, 3))
        weights /= weights.sum(axis=1, keepdims=True)
        maps = kernel @ np.linalg.pinv(weights) if case % 3 else 9 * rng.standard_normal((3, 2))
        error, norm = np.linalg.norm(maps @ weights - kernel), np.linalg.norm(maps)
        floor = singular**2 / (4 * kappa(p, q) * np.sqrt(2))
        if error < singular / 2 and error * norm * (1 + 1e-9) < floor:
            raise EvidenceFailed(f"{kernel.tolist()}: product {error * norm}, floor {floor}")
        closest = min(closest, error * norm / floor if error < singular / 2 else closest)
    return f"the product is at least {closest:.3g} times its floor"


def ball(number: Fraction) -> arb:
    """A fraction as a ball."""
    return arb(fmpq(number.numerator, number.denominator))


def products_enclosed(run: Run) -> str:
    """(2): the least |E|B of all layers with entries up to B lies between two balls, B = 3 to 300.

    The floor falls with |E|, so that a layer's |E| bounds that of all better ones. Both tend to
    1/√2: products within 1/B, floors within 2/B from B = 10 on.
    """
    summary = []
    with ctx.workprec(128):
        root = arb(2).sqrt()
        for size in (3, 10, 30, 100, 300, 10**4, 10**6):
            steps = (Fraction(step, 5000 * size) for step in range(4500, 5001))
            error = ball(min(squared_error(s, Fraction(size)) for s in steps)).sqrt()
            product = error * size
            floor = (1 - error / root) * (1 - (1 + root) * error) / root
            near = floor < product < 1 / root + arb(1) / size
            if not near or (size >= 10 and not floor > 1 / root - arb(2) / size):
                raise EvidenceFailed(f"B = {size}: the product is {product}, the floor {floor}")
            if size in PRODUCTS and not PRODUCTS[size] - 0.0011 < product < PRODUCTS[size]:
                raise EvidenceFailed(f"B = {size}: the product {product}, not {PRODUCTS[size]}")
            summary.append(f"B = {size}: {float(floor):.4f} to {float(product):.4f}")
    return "; ".join(summary)


def squared_error(s: Fraction, size: Fraction) -> Fraction:
    """|E|² of the layer with s, the best v and y = B, exactly."""
    v = (1 - s) / (2 * (1 - s) ** 2 + s**2)
    weights, maps = two_heads(s, v, size)
    return sum(((maps @ weights - F) ** 2).ravel(), Fraction(0))


def limit_layer(epsilon: float, dtype: str, sign: int = 1) -> AttentionLayer:
    """S.kernel's two heads for 'cross'; with the sign -1 all maps are positive, as in a majorant.

    The heads have w = S_0/ε + S_left and S_0/ε + S_right, and by turns half of εM_0 and ±M_left as
    maps, before normalisation. Left and right cancel in the first channel but for ε.
    """
    weights = np.zeros((2, 9))
    weights[:, 4], weights[0, 3], weights[1, 5] = 1 / epsilon, 1, 1
    totals = 1 + weights.sum(axis=1)
    own = np.array([[epsilon / 2, 1], [epsilon / 2, -sign]]) * totals[:, None]
    geometry = ConvolutionGeometry.of((3, 3), 1)
    maps = token_maps(jnp.asarray(named_kernel("cross"), dtype), geometry)
    maps = jnp.abs(maps) if sign < 0 else maps
    return mixture_layer(weights, own, maps[np.array([4, 3])], geometry)


def in_float32(run: Run) -> str:
    """Two heads against three on real images, in float32 with maps that are rounded.

    In exact arithmetic the first channel is off by ε/2 of left + right, and by ε of the mean over
    all keys, so by 2ε at most of pixels up to 1, the second by nothing.
    """
    with jax.enable_x64(True):
        kernel, apply = named_kernel("cross"), jax.jit(apply_attention)
        images = (whole_images(run, 2)[..., :1] / 255).astype(np.float32)
        expected = np.asarray(conv(images.astype(np.float64), kernel.astype(np.float64)))
        errors = {}
        for place in (6, 9, 11, 12, 13, 15, 18):
            epsilon = 1.1 * 2.0**-place
            layer = limit_layer(epsilon, "float32")
            wide = limit_layer(epsilon, "float64", -1)
            typed = jnp.asarray(images)
            bound = mixture_error_bound(layer, typed, np.asarray(apply(wide, images.astype(float))))
            error = np.abs(np.asarray(apply(layer, typed), np.float64) - expected)
            if (error > bound + 2 * epsilon).any():
                raise EvidenceFailed(f"ε = {epsilon:.1e}: off by {error.max():.2g}")
            errors[epsilon] = float(error.max())
        three = given_kernel_layer(jnp.asarray(kernel, jnp.float32))
        other = float(np.abs(np.asarray(apply(three, jnp.asarray(images))) - expected).max())
    best, root = min(errors.values()), 2.0**-12
    require(root / 8 < best < 8 * root, f"two heads: {best:.2g} at best, √u is {root:.2g}")
    require(64 * other < best, f"three heads are off by {other:.2g}, two by {best:.2g}")
    at = min(errors, key=lambda epsilon: errors[epsilon])
    return f"two heads: {best:.2g} at best, for ε = {at:.1e}; √u = {root:.2g}; three: {other:.2g}"


def narrow_heads_in_float32(run: Run) -> str:
    """S.width's ε-layers of the library, whose exponent is open: seen, not proved.

    The terms of a sum are at most κ times the largest pixel times Σ|W| (`narrow_heads`), which is
    the majorant here; beside rounding there is ε, and the uniform row of weights that are not 0.
    """
    unit, options = 2.0**-24, {"patch_size": 4, "head_dim": 6, "num_heads": "min"}
    images = (whole_images(run, 2)[..., :1] / 255).astype(np.float32)
    kernel = run.rng("kernel").uniform(-1, 1, (3, 3, 1, 1)).astype(np.float32)
    apply, size, errors = jax.jit(apply_attention), float(np.abs(kernel).sum()), {}
    with jax.enable_x64(True):
        expected = np.asarray(conv(images.astype(np.float64), kernel.astype(np.float64)))
        for epsilon in ((2 * unit) ** 0.5, *(1.1 * 2.0**-place for place in (6, 9, 12, 15))):
            layer = conv_to_attention(kernel, form="limit", epsilon=epsilon, **options)
            majorant = np.full(expected.shape, amplification_of(epsilon) * size)
            bound = mixture_error_bound(layer, jnp.asarray(images), majorant) + epsilon * size
            bound += float(jnp.abs(layer.output).sum() / layer.encoding.weights.max())
            error = np.abs(np.asarray(apply(layer, images), np.float64) - expected)
            if (error > bound).any():
                raise EvidenceFailed(f"ε = {epsilon:.1e}: off by {error.max():.2g}, bound {bound}")
            errors[epsilon] = float(error.max())
        exact = conv_to_attention(kernel, form="exact", **options)
        other = np.abs(np.asarray(apply(exact, images), np.float64) - expected).max()
    best = min(errors.values())
    require(16 * other < best, f"exact heads are off by {other:.2g}, those of the limit {best:.2g}")
    return (
        f"{layer.heads} heads in the limit: {best:.2g} at best, {next(iter(errors.values())):.2g} "
        f"for the usual ε; {exact.heads} exact ones: {other:.2g}"
    )


CLAIM = Claim(
    id="S.price",
    source="this project, sharpening S.kernel; Hoffman 1952",
    verdict=Verdict.HOLDS,
    kinds=(Kind.LIMIT,),
    evidence=(
        proved(
            "sharpened/price.v",
            covers="(2), the floor under the largest error, for layers without a bias, with e that "
            "of the outputs at all queries of all images with pixels in [-1, 1]; not: the "
            "Frobenius norm, the layers that attain it, (1), (3)",
        ),
        Evidence("layers in fractions", Level.TESTED, layers_in_fractions),
        Evidence("other kernels", Level.TESTED, of_other_kernels),
        Evidence(
            "error times maps",
            Level.ENCLOSED,
            products_enclosed,
            assumes="ball arithmetic (python-flint)",
        ),
        Evidence(
            "two heads in float32", Level.BOUNDED, in_float32, assumes=ASSUMPTION, quick=False
        ),
        Evidence(
            "narrow heads in float32",
            Level.BOUNDED,
            narrow_heads_in_float32,
            assumes=ASSUMPTION,
            quick=False,
        ),
    ),
)
