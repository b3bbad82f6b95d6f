"""S.width: fewer narrow heads, in the limit and exactly.

Claimed. For K = 3, P = 16, three channels and heads of width 64, 16 heads suffice in the limit and
31 exactly, where one-hot heads take 20 and 32.
True. 16 do in the limit, with value maps that grow, and even 28 do exactly, for every kernel; some
kernel takes 14 in the limit, exactly 24 are necessary, and what lies between is open.

Printed. Not from a paper: our own result. S.headdim splits one-hot heads: 20 of dimension 64 for K
= 3, P = 16, three channels in the limit, 32 exactly. Our first form of this claim gave 16 and 31,
for an invertible M_0. Values that grow like 1/ε so that heads ever nearer to each other span more
are the limits of border rank (Bini et al. 1979); the commutator bound is Strassen's (1983), Koszul
flattenings are Landsberg and Ottaviani's (2013).

Verified. Let j be the n coordinates of a token, inputs or outputs, whichever are fewer; of them w_δ
are read at δ, and R at some δ ≠ 0. Let d = d_H, G = Σ_(δ≠0) ⌈w_δ/d⌉. (1) In the limit, with value
maps that grow, G + ⌈(n - s)/d⌉ heads are every convolution of these sizes, s = min(G·d - Σ_(δ≠0)
w_δ, n - R); the rows of attention do not depend on the kernel. (2) Exactly, at finite scores, with
values that serve every image size: H heads, if they fall into groups, g_δ ≥ ⌈w_δ/d⌉ for each δ ≠ 0
and g_0 ≥ max(2, ⌈2R/d⌉), with ⌊(g_0·d - 2R)/2⌋ + Σ_(g_δ≥2) ⌊(g_δ·d - w_δ)/2⌋ ≥ n - R. (3) For given
maps of any shape (1) holds with ranks: r_δ of M_δ for w_δ, the largest rank ρ of M_0 - tN for n and
the rank of N = Σ_(δ≠0) M_δ for R. (4) Where M_0 is invertible, N_H·d ≥ n + rank(X M_0⁻¹ Y - Y M_0⁻¹
X)/2 in every limit, for all combinations X, Y of the M_δ. For K = 3, P = 16, three channels, d = 64
that is 16 in the limit, where some kernel takes 14 by (4) and 20 if the value maps stay bounded
(S.headdim), and 28 exactly, where 24 are necessary (S.headdim); with one channel 9 in the limit,
which are necessary.

Repair. 31 exactly became 28: with two places in group 0 for a coordinate that other tokens read,
its offset 0 costs one place and not two. M_0 need not be invertible, nor square. Open: whether 14
do in the limit, as 15 do (S.overlap), and 24 to 27 exactly. (4) gives no more than 14, as X and Y
have R = 180 rows that are not zero, so at most 768 + 90. Koszul flattenings of 2p + 1 combinations
of the maps gave, modulo a prime, at K = 3, P = 6, two channels, n = 72, R = 40: 92, 93.3 and 92.4
for p = 1, 2, 3, where (1) has 128 places; n + 8R/15 at P = 16 would be 13.5 heads. A coordinate
alone takes as many places as it has offsets in the limit and one more exactly (S.kernel), 972 =
15.2·64 and 1740 = 27.2·64 in all, so fewer heads would have to mix coordinates. In small that is
possible: for K = 3, P = 2 on one axis, one channel, d = 1 and outer taps of one sign three heads
do, where (1) has four. They would: experiments/head_width_search.py, by alternating least squares,
finds heads with bounded maps within 10⁻¹¹ of a random kernel's at K = 3, P = 2, one channel: 10 of
dimension 1 where (1) has 16, and 9 of dimension 2 where (1) has 10, as many as S.heads makes
necessary. That is no proof.

Proof. *The idea:* give each coordinate places in heads that together are right for it.

(1), (2) x M = Σ_j x_j M[j, :], so it is enough for each j that Σ_h a_hδ W_h[j, :] = M_δ[j, :] over
the heads that hold j, for all δ, and nothing elsewhere. Let D_j be the δ ≠ 0 that read j.

(1) Heads of δ ≠ 0 have weights in the ratio 1 : ε at 0 and δ, base heads look at 0. j takes a place
with M_δ[j, :]/ε (times 1 + ε) at each δ ∈ D_j and one with M_0[j, :] - Σ M_δ[j, :]/ε in the base;
if D_j is empty, one with M_0[j, :] anywhere, wrong by ε M_0[j, :] at δ. The spare places of the G
heads take s of these.

(2) The heads of δ have the row (S_δ + x_h S_0 + J)/Z_h, those of group 0 (x_h S_0 + J)/Z_h, J
uniform, x_h ≥ 0, whatever N is (S.kernel). j takes a place with M_δ[j, :] at each δ ∈ D_j and two
in group 0, which add up to -Σ M_δ[j, :]; if D_j is empty, two in one group, which add up to zero.
So J and every δ ≠ 0 are right. The two have different x, so that their difference is fixed by
M_0[j, :].

Two places are in different heads if the list of a group's places, pairs first, is dealt to its g ≥
2 heads in turn; then no head has more than d, and x = 0, 1, 0, 1, …, the last 2 if g is odd, makes
neighbours differ.

(3) A = M_0 - N/ε has rank ρ for all but finitely many ε. Let Z be the sum of its s smallest
singular terms of the ρ. They are beyond the rank of N, so by Weyl's inequality no larger than the
norm of M_0: ‖Z‖ ≤ ‖M_0‖. Cut Z = Σ Z_δ into the spare ranks, give (M_δ + ε Z_δ)/ε to the heads of δ
and A - Z, of rank ρ - s, to the base: at 0 they add up to M_0, at δ to M_δ + ε Z_δ. If M_0 is
invertible ρ = n, and rank N ≤ the rank of the M_δ side by side.

(4) Write (M_0, X, Y) = lim Σ_h a_h ⊗ W_h with a_h in R³. The matrix of blocks (0, M_0, X; -M_0, 0,
Y; -X, -Y, 0) is the limit of Σ_h S(a_h) ⊗ W_h with S(a) skew, of rank 2 at most: its rank is at
most 2 N_H d. Eliminating with the invertible blocks M_0 and -M_0, it is 2n plus that of X M_0⁻¹ Y -
Y M_0⁻¹ X. ∎
"""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
from flint import nmod_mat

from convattn.bounds.heads import count_heads
from convattn.constructions.conversion import conv_to_attention
from convattn.constructions.geometry import ConvolutionGeometry
from convattn.constructions.li_output_map import token_maps
from convattn.constructions.narrow_heads import (
    NarrowHeads,
    counted,
    exact_layout,
    head_maps,
    limit_layout,
)
from convattn.encodings.layer import AttentionLayer
from convattn.fast.application import apply_attention
from convattn.operators.head_places import limit_heads
from convattn_ledger import Claim, Evidence, Kind, Level, Run, Verdict, require
from convattn_ledger.bounds.mixture_error import mixture_error_bound
from convattn_ledger.evidence import certified, exact_convolution, proved
from convattn_ledger.evidence.layer_runs import EXP_AND_LOG1P, integer_kernel
from convattn_ledger.evidence.printed_output_map import output_blocks, patch_offsets
from convattn_ledger.evidence.real_images import whole_images

PRIME = 2**31 - 1
EPSILON = 2.0**-20


def what_is_put(heads: NarrowHeads, j: int) -> dict[tuple[int, int], Fraction]:
    """By the place (an offset, or one more for all other keys) and the map, what the heads put."""
    total: dict[tuple[int, int], Fraction] = {}
    for head, index in np.argwhere(heads.coordinates == j):
        weights = [Fraction(w) for w in [*heads.weights[head], 1]]
        for at, weight in enumerate(weights):
            for of, number in enumerate(heads.coefficients[head, index]):
                total[at, of] = total.get((at, of), Fraction(0)) + weight * Fraction(number)
    return total


def places(run: Run) -> str:
    """Each coordinate's heads put M_δ[j, :] at δ and nothing elsewhere; in the limit but for ε."""
    summary = []
    for size, patch, channels, width in ((3, 16, 3, 64), (5, 2, 2, 3), (3, 1, 3, 2), (5, 4, 1, 5)):
        geometry = ConvolutionGeometry.of((size, size), patch)
        ones = jnp.ones((size, size, channels, channels))
        supports = np.asarray(token_maps(ones, geometry)).any(axis=2)
        centre = geometry.offsets.index((0, 0))
        exact = exact_layout(supports, centre, width)
        limit = limit_layout(supports, centre, width, EPSILON)
        classes = np.unique(supports, axis=1, return_index=True)[1]
        for j in [*classes, *run.rng(size, patch).integers(0, supports.shape[1], 20)]:
            reads = np.flatnonzero(supports[:, j])
            wrong = 0 if len(reads) > 1 else Fraction(EPSILON)
            for heads, most in ((exact, 0), (limit, wrong)):
                entries = what_is_put(heads, int(j))
                at_keys = range(len(supports) + (heads is exact))
                error = max(
                    abs(entries.get((at, of), 0) - (at == of)) for at in at_keys for of in reads
                )
                require(error <= most, f"K = {size}, P = {patch}, coordinate {j}: off by {error}")
        counts = len(limit.weights), len(exact.weights)
        summary.append(f"K = {size}, P = {patch}: {counts[0]} and {counts[1]}")
    require(summary[0].endswith("16 and 28"), f"expected 16 and 28 heads: {summary[0]}")
    return "; ".join(summary)


def commutator_rank(kernel: np.ndarray, patch: int, x: np.ndarray, y: np.ndarray) -> int:
    """Of X M_0⁻¹ Y - Y M_0⁻¹ X modulo a prime, so at most that over the rationals."""
    blocks = output_blocks(kernel, patch)
    centre = patch_offsets(kernel.shape[0], patch).index((0, 0))
    away = np.delete(blocks, centre, axis=0)
    rows, columns = np.flatnonzero(away.any((0, 2))), np.flatnonzero(away.any((0, 1)))
    n = blocks.shape[1]
    inverse = nmod_mat(n, n, [int(e) for e in blocks[centre].ravel()], PRIME).inv().tolist()
    middle = nmod_mat(
        len(columns), len(rows), [int(inverse[i][j]) for i in columns for j in rows], PRIME
    )
    left, right = (
        nmod_mat(
            len(rows),
            len(columns),
            [int(e) for e in np.tensordot(numbers, away, 1)[np.ix_(rows, columns)].ravel()],
            PRIME,
        )
        for numbers in (x, y)
    )
    return int((left * middle * right - right * middle * left).rank())


def commutators(run: Run) -> str:
    """n + half the rank, in heads: 14 for K = 3, P = 16; a cube of identities gives no more."""
    summary = []
    for patch, channels, width, least in ((3, 1, 2, 7), (4, 2, 8, 6), (16, 3, 64, 14)):
        if run.quick and patch == 16:
            continue
        rng = run.rng(patch, channels)
        kernel = rng.integers(1, 1000, (3, 3, channels, channels))
        x, y = rng.integers(1, 100, (2, 8))
        rank = commutator_rank(kernel, patch, x, y)
        n = patch**2 * channels
        heads = -(-(2 * n + rank) // (2 * width))
        require(heads >= least, f"P = {patch}: rank {rank}, so {heads} heads, expected {least}")
        summary.append(
            f"P = {patch}, {channels} channels, d_H = {width}: rank {rank}, {heads} heads"
        )
    return "; ".join(summary)


def three_heads(w: tuple[int, int, int]) -> list[tuple[list[Fraction], np.ndarray]]:
    """For outer taps of one sign: weights at -1, 0 and 1 that add up to one, and maps of rank one.

    M_0 = w_0 (1 t; 1/t 1) + (w_(-1) - w_0 t) E_01 + (w_1 - w_0/t) E_10 with t = ±1 of the sign that
    makes both differences of the sign of the outer taps.
    """
    before, centre, after = map(Fraction, w)
    t = -1 if centre * after > 0 else 1
    upper, lower = np.array([[0, 1], [0, 0]]), np.array([[0, 0], [1, 0]])
    sums = before - centre * t + after, before + after - centre * t
    zero = Fraction(0)
    return [
        ([zero, (before - centre * t) / sums[0], after / sums[0]], sums[0] * upper),
        ([before / sums[1], (after - centre * t) / sums[1], zero], sums[1] * lower),
        ([zero, Fraction(1), zero], centre * np.array([[1, t], [t, 1]])),
    ]


def mixed_coordinates(run: Run) -> str:
    """One axis, K = 3, P = 2, one channel, d_H = 1: (1) has four heads, and three do, bounded."""
    require(limit_heads({1: 2}, 2, 2, 1) == 4, "(1) does not have four heads")
    for w in ((2, 3, 5), (-1, 4, -7), (3, -2, 1), (-5, -3, -2)):
        expected = [[[0, 0], [w[0], 0]], [[w[1], w[0]], [w[2], w[1]]], [[0, w[2]], [0, 0]]]
        heads = three_heads(w)
        require(all(min(row) >= 0 and sum(row) == 1 for row, _ in heads), f"{w}: no attention")
        singular = all(m[0, 0] * m[1, 1] == m[0, 1] * m[1, 0] for _, m in heads)
        require(singular, f"{w}: a head's map has rank two")
        value_maps = [sum(row[at] * m for row, m in heads) for at in range(3)]
        require(np.array_equal(value_maps, expected), f"{w}: the maps are {value_maps}")
    return "three heads of dimension one are the convolution for 4 kernels, in fractions"


def small_terms(matrix: np.ndarray, rank: int, spare: int) -> np.ndarray:
    """The sum of the last `spare` of the first `rank` singular terms."""
    left, singular, right = np.linalg.svd(matrix)
    chosen = slice(rank - spare, rank)
    return np.asarray(left[:, chosen] * singular[chosen] @ right[chosen])


def maps_of_any_shape(run: Run) -> str:
    """(3): singular and rectangular M_0; Z is no larger than M_0, and the base has rank ρ - s."""
    summary = []
    for inputs, outputs, rank_0, ranks in (
        (6, 6, 6, (1, 2)),
        (5, 8, 3, (1, 1, 2)),
        (9, 6, 6, (2, 0)),
    ):
        rng = run.rng(inputs, outputs)

        drawn = [
            rng.integers(-3, 4, (inputs, rank)) @ rng.integers(-3, 4, (rank, outputs))
            for rank in (rank_0, *ranks)
        ]
        centre, *away = [array.astype(float) for array in drawn]
        total = np.sum(away, axis=0)
        pencil = centre - total * 2.0**14
        most = int(np.linalg.matrix_rank(centre - total * 3.0))
        spare = most - int(np.linalg.matrix_rank(total))
        term = small_terms(pencil, most, spare)
        norms = np.linalg.norm(term, 2), np.linalg.norm(centre, 2)
        require(norms[0] <= norms[1] * (1 + 1e-9), f"{inputs} by {outputs}: norms {norms}")
        left = np.linalg.svd(pencil - term, compute_uv=False)[most - spare :].max(initial=0.0)
        # Each entry of the two SVDs is off by a small multiple of u·‖A‖.
        bound = 2.0**-52 * 100 * np.linalg.norm(pencil, 2)
        require(left <= bound, f"{inputs} by {outputs}: the base has the singular value {left:.1e}")
        summary.append(f"{inputs} by {outputs}: base of rank {most - spare} for {most}")
    return "; ".join(summary)


def majorant(
    layer: AttentionLayer, heads: NarrowHeads, kernel: np.ndarray, images: np.ndarray, unit: float
) -> np.ndarray:
    """Σ_h A_h |X| Σ_δ |c_hδ||M_δ|, in float64, under `jax.enable_x64(True)`."""
    geometry = ConvolutionGeometry.of(kernel.shape[:2], layer.patch_size)
    maps = token_maps(jnp.asarray(np.abs(kernel), jnp.float64), geometry)
    positive = NarrowHeads(heads.weights, heads.coordinates, np.abs(heads.coefficients))
    picked, rows = head_maps(positive, maps, unit)
    weights = jnp.asarray(unit * heads.weights)
    wide = AttentionLayer(
        type(layer.encoding)(weights, geometry.offsets),  # type: ignore[call-arg]
        picked,
        rows,
        patch_size=layer.patch_size,
        ring=layer.ring,
    )
    return np.asarray(jax.jit(apply_attention)(wide, jnp.abs(jnp.asarray(images, jnp.float64))))


def on_images(run: Run, dtype: str, exact: bool) -> str:
    """K = 3, P = 16, d_H = 64 on whole images, within the bound derived for rounding and for ε."""
    with jax.enable_x64(True):
        images = whole_images(run, 4)
        kernel = integer_kernel(run.rng("kernel"), (3, 3), 3, 3)
        layer = conv_to_attention(
            jnp.asarray(kernel, dtype),
            patch_size=16,
            head_dim=64,
            num_heads="min",
            form="exact" if exact else "limit",
            epsilon=None if exact else EPSILON,
        )
        geometry = ConvolutionGeometry.of((3, 3), 16)
        supports = np.asarray(token_maps(jnp.asarray(kernel), geometry)).any(axis=2)
        heads = exact_layout(supports, 4, 64) if exact else limit_layout(supports, 4, 64, EPSILON)
        require(layer.heads == len(heads.weights), f"{layer.heads} heads, {len(heads.weights)}")
        counts = count_heads(3, patch_size=16, in_channels=3, out_channels=3, head_dim=64)
        said = int((counts.exact if exact else counts.limit).sufficient)
        require(layer.heads == said, f"{layer.heads} heads, but convattn.heads says {said}")
        unit = 1.0 if exact else float(jnp.finfo(dtype).tiny) ** -0.5
        wide = majorant(layer, heads, kernel, images, unit)
        typed = jnp.asarray(images, dtype)
        bound = mixture_error_bound(layer, typed, wide)
        if not exact:
            bound += EPSILON * 255 * np.abs(kernel).sum(axis=(0, 1, 2))
            bound += 255 * float(jnp.abs(layer.output).sum()) / unit
        result = np.asarray(jax.jit(apply_attention)(layer, typed), np.float64)
    error = np.abs(result - exact_convolution(images, kernel))
    require((error <= bound).all(), f"{dtype}: off by {error.max():.2g}, bound {bound.min():.2g}")
    widths = counted(supports, 4)
    return (
        f"{layer.heads} heads, widths {dict(widths[0])}: off by {error.max():.2g}, "
        f"bound up to {bound.max():.2g}"
    )


CLAIM = Claim(
    id="S.width",
    source="this project, sharpening S.headdim",
    verdict=Verdict.SHARPENED,
    kinds=(Kind.LAYER_EQUALITY,),
    evidence=(
        proved(
            "sharpened/width.v",
            covers="(3), for odd K with a ring, within any error above zero on images with pixels "
            "in [-1, 1], with the inputs of a token for ρ and the rank of the M_δ side by side for "
            "R, and so (1) with ranks of the maps for w_δ and no fewer outputs than inputs; not: "
            "rows of attention that do not depend on the kernel, (2), (4)",
        ),
        proved(
            "sharpened/width_sixteen.v",
            covers="(1) for K = 3, P = 16, three channels, d = 64: 16 heads with a ring, within "
            "any error above zero on images with pixels in [-1, 1], for every kernel, with rows "
            "that may depend on it",
        ),
        proved(
            "sharpened/width_necessary.v",
            covers="N_H·d ≥ rank M_0 in limits, for odd K and attention free of content on more "
            "than m tokens a side, so at least 12 heads of dimension 64 where M_0 is invertible on "
            "768 features; not: (4), 14",
        ),
        certified("S.width"),
        Evidence("places", Level.TESTED, places),
        Evidence("commutators", Level.TESTED, commutators),
        Evidence("mixed coordinates", Level.TESTED, mixed_coordinates),
        Evidence("maps of any shape", Level.TESTED, maps_of_any_shape),
        *(
            Evidence(
                f"K = 3, P = 16, d_H = 64, {name}, {dtype}",
                Level.BOUNDED,
                lambda run, dtype=dtype, exact=exact: on_images(run, dtype, exact),
                assumes=EXP_AND_LOG1P,
                quick=False,
            )
            for name, exact, dtype in (
                ("exactly", True, "float64"),
                ("exactly", True, "float32"),
                ("in the limit", False, "float64"),
            )
        ),
    ),
)
