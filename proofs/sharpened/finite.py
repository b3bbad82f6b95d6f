"""S.finite: one head more makes the constructions exact at finite parameters.

Claimed. One head more than there are token offsets, K² + 1 on pixels, expresses every K × K
convolution exactly at every image size, at finite biases that depend on it, with zero tokens around
the image.
True. It does, with one set of value maps for all sizes; no fewer heads do if the offsets' maps are
independent and some token is out of reach.

Printed. Not from a paper: our own result. With a ring of m zero tokens (2m+1)² + 1 relative-bias
heads with finite parameters express every K × K convolution exactly, for any leak ε in (0, 1); one
set of value maps serves every image size, while the biases depend on the number of keys.

Verified. The same, with the bias log(1 + N(1/ε - 1)), N the number of keys; at every query whose
offsets are all keys, hence zero-padded with the ring; on the bare grid the same layer is the
convolution in which every missing token is replaced by the mean of all. m = ⌈(K-1)/(2P)⌉ for odd K
without dilation; in general as many heads as there are token offsets, and one more.

Something has to depend on N, unless the biases vary over the whole image: let H heads have biases
that are constant beyond some distance, not less than m, and let F ≠ 0. With the same biases and the
same value maps they are this convolution at no more than H numbers of keys, among images with a
query around which all positions within that distance are tokens. S.causal has the same under a
causal mask, where five heads for each tap with other fixed biases are exact at every length;
whether there are such without a mask is open.

Conversely, as many heads as offsets never are this convolution, if the maps M_δ are independent,
each δ joins two tokens of the image, and some token of the image lies outside the receptive field
of another; whatever they attend to at finite scores, content included if the weights are continuous
at the zero image. A key of the ring outside the receptive field is not enough, being zero: on 2 × 2
pixels with the ring, K = 3, nine biased heads are exact.

In Coq `finite_sizes` is the first statement, and `finite` the same for any finite bias with maps
that depend on N; the three `finite_necessary` are the converse, and `finite_small` is the case
where all tokens are in reach.

Nothing to repair.

Proof. *The idea:* a uniform head takes back what the others leak.

The softmax of M at one key and 0 at the N - 1 others is (1-ε)S_δ + εJ with ε = N/(e^M + N - 1), J
uniform, that is M = log(1 + N(1/ε - 1)). A head without bias is J. With the maps M_δ/(1-ε) and, for
the uniform head, -ε/(1-ε)·Σ_δ M_δ, the J terms cancel and Σ_δ S_δ X M_δ is left.

Where the key at q + δ is missing the row is J, and the same sum leaves J X M_δ in place of S_δ X
M_δ.

*The same parameters at many N:* let w ≠ 0 be an entry of some M_δ, w_h that entry of W_h. Head h
gives δ the weight u_h(δ)/(c_h + v_h N), with v_h > 0 for a key beyond that distance, before
normalisation, and c_h for the rest of the sum. Multiplied by Π_h (c_h + v_h N), Σ_h u_h(δ) w_h/(c_h
+ v_h N) = w says that a polynomial in N of degree H vanishes, as its leading term is -wΠ v_h.

*Conversely,* let a_h(q, k) be the weight of head h, W_h its map. At a query q whose offset δ joins
two tokens, M_δ = Σ_h a_h(q, q+δ) W_h. With no more heads than offsets, independent M_δ make the W_h
independent too. At a token k outside the receptive field of q the convolution reads nothing, 0 =
Σ_h a_h(q, k) W_h, so these weights are zero, which no softmax gives. ∎

A row is a multiple of one slice and of the mean, so it need not be formed: the back end `shift`
computes these, at the cost of the convolution.
"""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
from flint import fmpq, fmpq_mat

from convattn.bounds.majorant import majorant_of
from convattn.bounds.rounding import layer_error_bound
from convattn_ledger import Claim, Evidence, Kind, Level, Run, Verdict, require
from convattn_ledger.evidence import (
    DTYPES,
    applied,
    certified,
    converted,
    equals_convolution,
    exact_convolution,
    integer_kernel,
    proved,
    whole_images,
)
from convattn_ledger.evidence.fast_layers import finite_bound, gradients_within
from convattn_ledger.evidence.layer_runs import equal, within


def means_on_the_bare_grid(run: Run) -> str:
    """Without a ring: the convolution in which every missing pixel is the mean of all, P = 1.

    N times the mean is an integer, so N times the result is exactly Σ over the taps inside plus
    the sum of all pixels times the taps outside. The layer is the one with the ring taken off; its
    rounding bound is as derived, and the reference adds its one rounding, the division by N.
    """
    images = whole_images(run)
    kernel = integer_kernel(run.rng("kernel"), (3, 3), 3, 4)
    pixels = images.shape[1] * images.shape[2]
    total = images.sum(axis=(1, 2), keepdims=True)
    present = exact_convolution(images, kernel)
    missing = total @ kernel.sum(axis=(0, 1)) - exact_convolution(
        np.broadcast_to(total, images.shape), kernel
    )
    expected = (pixels * present + missing) / pixels
    comparisons = []
    for dtype in DTYPES:
        layer = converted(kernel, dtype)
        bare = replace(layer, ring=((0, 0), (0, 0)))
        result, typed = applied(bare, images, dtype), images.astype(dtype)
        bound = layer_error_bound(bare, typed, majorant_of(bare, kernel, None, images))
        comparisons.append(within(dtype, result, expected, bound + 2.0**-52 * np.abs(expected)))
    return f"{len(images)} images, {layer.heads} heads, no ring; " + "; ".join(comparisons)


def fast_back_end(run: Run) -> str:
    """Slices and a mean in place of rows of weights: the back end `shift` on whole images.

    Exact forms keep the derived bound, which covers this path too (`evidence/fast_layers.py`), and
    limit layers equal the convolution.
    """
    images = whole_images(run)
    kernel = integer_kernel(run.rng("kernel"), (3, 3), 3, 4)
    expected = exact_convolution(images, kernel)
    comparisons = []
    for dtype, patch, uniform_weight in (("float32", 1, 0.1), ("bfloat16", 4, 0.25)):
        layer = converted(kernel, dtype, patch_size=patch, uniform_weight=uniform_weight)
        bound = finite_bound(layer, kernel, images, dtype)
        name = f"{dtype}, P = {patch}, ε = {uniform_weight}"
        result = applied(layer, images, dtype, backend="shift")
        comparisons.append(within(name, result, expected, bound))
    for dtype, patch in (("float32", 1), ("float16", 4)):
        layer = converted(kernel, dtype, patch_size=patch, form="limit")
        same = equal(dtype, applied(layer, images, dtype, backend="shift"), expected)
        comparisons.append(f"limit, P = {patch}: {same}")
    return f"{len(images)} images, {layer.heads} heads; " + "; ".join(comparisons)


def fast_gradients(run: Run) -> str:
    """Gradients of `shift` against dense, in float64; some queries miss some offsets."""
    kernel = integer_kernel(run.rng("kernel"), (3, 3), 3, 4)
    layer = converted(kernel, "float64", uniform_weight=0.25)
    layer = replace(layer, ring=((1, 0), (1, 1)))
    crop = jnp.asarray(whole_images(run)[:1, 12:17, 11:17] - 128, float)
    cotangent = jnp.asarray(run.rng("cotangent").integers(-3, 4, (*crop.shape[:-1], 4)), float)
    return gradients_within("shift", layer, crop, cotangent)


def fixed_weight(tap: int, far: int, pole: int, keys: int) -> fmpq:
    """u/(c + vN) of a head, with c = v·pole."""
    return fmpq(tap, far * (pole + keys))


def fixed_at_many_sizes(run: Run) -> str:
    """One tap by H heads with fixed biases and values: they can meet H numbers of keys, no others.

    At the first H squares N the values are solved for in fractions; the polynomial of the proof
    leaves no other N.
    """
    others = 0
    for heads in (1, 2, 3, 5):
        rng = run.rng(heads)
        tap, far = (rng.integers(1, 20, heads).tolist() for _ in range(2))
        poles = rng.permutation(20)[:heads].tolist()  # distinct, so that values can be solved for

        weights = {
            side**2: [fixed_weight(*head, side**2) for head in zip(tap, far, poles, strict=True)]
            for side in range(9, 60)
        }
        sizes = list(weights)[:heads]
        matrix = fmpq_mat(heads, heads, [entry for keys in sizes for entry in weights[keys]])
        values = matrix.solve(fmpq_mat(heads, 1, [1] * heads))
        for keys, row in weights.items():
            put = sum((one * values[index, 0] for index, one in enumerate(row)), fmpq(0))
            require((put == 1) == (keys in sizes), f"{heads} heads, N = {keys}: {put}")
            others += keys not in sizes
    return f"1, 2, 3 and 5 heads meet as many numbers of keys, and none of {others} others"


CLAIM = Claim(
    id="S.finite",
    source="this project, sharpening L21 Theorem 1 and C20 Theorem 1",
    verdict=Verdict.HOLDS,
    kinds=(Kind.LAYER_EQUALITY,),
    evidence=(
        proved(
            "sharpened/finite_sizes.v",
            covers="for odd K with a ring and 0 < ε < 1 one set of value maps for every image "
            "size, the bias log(1 + N(1/ε - 1))",
        ),
        proved(
            "sharpened/finite.v",
            covers="(2m+1)² + 1 heads with a ring are the convolution for odd K and any finite "
            "bias but zero, with maps that depend on N; not: the bare grid (S.boundary), other "
            "sets of offsets",
        ),
        proved(
            "sharpened/finite_necessary.v",
            covers="the converse for (2m+1)² independent maps, with a ring, for positional "
            "attention that is nowhere zero, without a bias",
        ),
        proved(
            "sharpened/finite_necessary_content.v",
            covers="the converse for (2m+1)² independent maps, with a ring, without a bias, for "
            "weights that depend on content and have limits at the zero image that are nowhere "
            "zero; not: that continuous finite scores give such weights",
        ),
        proved(
            "sharpened/finite_necessary_interior.v",
            covers="the converse for (2m+1)² independent maps at one interior query of the bare "
            "grid, for positional attention that is not zero at a key out of reach, without a bias",
        ),
        proved(
            "sharpened/finite_small.v",
            covers="where all tokens are in reach, (2m+1)² heads with a ring are exact for odd K "
            "and any finite bias but zero, with maps that depend on N",
        ),
        certified("S.finite", covers="ε = 1/2"),
        equals_convolution("3 × 3, pixels", (3, 3), form="exact", quick=True),
        equals_convolution("5 × 5, P = 4", (5, 5), patch_size=4, form="exact"),
        equals_convolution(
            "3 × 3, P = 16, ε = 1/4", (3, 3), patch_size=16, form="exact", uniform_weight=0.25
        ),
        Evidence("fixed biases and maps", Level.TESTED, fixed_at_many_sizes),
        Evidence("means on the bare grid", Level.BOUNDED, means_on_the_bare_grid, quick=False),
        Evidence(
            "fast back end",
            Level.BOUNDED,
            fast_back_end,
            assumes="exp, expm1, log and log1p are within 4 units in the last place; exp "
            "underflows to zero; matrix products are sums of products in the pinned precision",
            quick=False,
        ),
        Evidence(
            "gradients of the fast back end",
            Level.BOUNDED,
            fast_gradients,
            assumes="exp, expm1, log and log1p are within 4 units in the last place",
            quick=False,
        ),
    ),
)
