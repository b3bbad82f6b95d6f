"""Lemma 1: hard attention through a bijection onto the shifts expresses every convolution.

Claimed. If each of K² heads attends to exactly one pixel of the K × K neighbourhood of a query, the
layer can express every K × K convolution.
True. It can, for odd K, if the output map may be chosen too and the image is padded with zeros,
since at its border some heads would have no pixel to attend to.

Printed. N_h = K² heads, D_h ≥ D_out, f : [N_h] → Δ_K bijective, and for every head softmax(A_q)_k
= 1 if f(h) = q - k and 0 otherwise (10). "Then, for any convolutional layer with a K × K kernel
and D_out output channels, there exists {W_val^(h)} such that MHSA(X) = Conv(X) for every X."

Verified. Let K be odd, N_h = K², g : [N_h] → Δ_K a bijection, and let head h attend with weight
one to the key at q + g(h), at every query q. If D_h ≥ min(D_in, D_out) there are W_val^(h) and
W_out with MHSA = Conv for every kernel: any with W_val^(h) W_out^(h) = W_(g(h)).

Repair. Five points. (1) For K ≥ 3 no finite image meets (10) at its border: where q + g(h) is
outside, the row of (10) is zero, while softmax rows sum to one. A ring of (K-1)/2 zero tokens
makes every query interior. (2) W_out must be free too: with D_h ≥ D_out and a fixed W_out^(h) of
rank below D_out no W_val^(h) gives a W_(g(h)) of rank D_out. (3) K is odd: for even K the Δ_K of
eq. 5 has (K+1)² shifts. (4) The paper's f counts q - k; g = -f, and so W^(h) = W_(-f(h)). That is
only a convention, but W^(h) = W_(f(h)) gives the convolution with the kernel turned by 180°. (5)
Eq. 11's slice [(h-1)D_h + 1 : hD_h + 1] has D_h entries if its end is left out, and one too many
if it is counted in.

Errata.
- Lemma 1 | equality | with a zero ring, K odd
- eq. 10 | for every q | impossible at the border of a finite image for K ≥ 3 | S.padding
- Lemma 1 | W_val only | W_out must be free too
- eq. 11 | (h-1)D_h + 1 : hD_h + 1 | Misprint: the end left out

Proof. *The idea:* each head brings one token of the receptive field, and its maps apply one tap.

The output at q is Σ_h X_(q+g(h)) W^(h) + b with W^(h) = W_val^(h) W_out^(h). With W^(h) = W_(g(h))
the sum runs once over Δ_K, as g is a bijection, and is Conv(X)_q.

If D_h ≥ D_out take W_val^(h) = (W_(g(h)), 0) and W_out^(h) = (I, 0)ᵀ; if D_h ≥ D_in take W_val^(h)
= (I, 0) and W_out^(h) = W_(g(h)) stacked on zeros.

For (1): the shift (1, 0) leads out of the image from its last row.

For (2): rank(W_val W_out) ≤ rank(W_out). ∎
"""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
from flint import fmpz_mat

from convattn.constructions.geometry import ConvolutionGeometry
from convattn.constructions.li_output_map import token_maps
from convattn.constructions.li_theorem1 import bias_construction
from convattn.encodings.layer import AttentionLayer
from convattn.fast.application import apply_attention
from convattn.operators.shifts import from_query_minus_key, kernel_shifts
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict, require
from convattn_ledger.evidence import (
    DTYPES,
    UNDERFLOW,
    certified,
    exact_convolution,
    integer_kernel,
    proved,
    whole_images,
)
from convattn_ledger.evidence.layer_runs import equal


def random_bijection(run: Run) -> str:
    """Nine one-hot heads in random order; W_val = W, W_out = I, or W_val = I, W_out = W.

    The weights are exactly zero and one, and sums of integers below 2²⁴ are exact in float32, so
    the result equals the exact convolution, rounded once to the dtype.
    """
    images = whole_images(run)
    kernel = integer_kernel(run.rng("kernel"), (3, 3), 3, 4)
    expected = exact_convolution(images, kernel)
    geometry = ConvolutionGeometry.of((3, 3))
    order = run.rng("bijection").permutation(geometry.heads).tolist()
    looks_at = [geometry.offsets[head] for head in order]
    comparisons = []
    for dtype, in_value in zip(DTYPES, (True, False, True, False), strict=True):
        maps = token_maps(jnp.asarray(kernel, dtype), geometry)
        heads = bias_construction(maps, geometry)[0].take_heads(order)
        maps = maps[np.array(order)]  # W^(h) = W_(f'(h))
        placed = (maps, None) if in_value else (None, maps)
        layer = AttentionLayer(heads, *placed, ring=geometry.ring)
        result = jax.jit(apply_attention)(layer, jnp.asarray(images, dtype))
        comparisons.append(
            f"{equal(dtype, result, expected)}, W in W_{'val' if in_value else 'out'}"
        )
    return f"{len(images)} images, heads look at {looks_at[0]}, {looks_at[1]}, …; " + "; ".join(
        comparisons
    )


def border_rows(run: Run) -> str:
    """Rows of (10) that are zero on images of up to 6 × 6 pixels, counted and by formula.

    On one axis of n pixels the shift s has its target inside for max(0, n - |s|) of them. With the
    library's own ring no row is zero.
    """
    bare = 0
    for kernel, height, width in product((1, 3, 5), range(1, 7), range(1, 7)):
        geometry = ConvolutionGeometry.of((kernel, kernel))
        axis = range(-(kernel // 2), kernel // 2 + 1)
        inside = [sum(max(0, n - abs(s)) for s in axis) for n in (height, width)]
        for ring, expected in (
            (((0, 0), (0, 0)), kernel**2 * height * width - inside[0] * inside[1]),
            (geometry.ring, 0),
        ):
            empty = sum(
                not all(
                    -before <= position + step < side + after
                    for position, step, side, (before, after) in zip(
                        query, shift, (height, width), ring, strict=True
                    )
                )
                for shift in product(axis, axis)
                for query in product(range(height), range(width))
            )
            if empty != expected:
                raise EvidenceFailed(
                    f"K = {kernel}, {height} × {width}, ring {ring}: {empty} rows of (10) are "
                    f"zero, expected {expected}"
                )
            bare += empty > 0
    require(bare == 72, f"{bare} of the 72 bare grids with K ≥ 3 have zero rows")
    return "72 bare grids with K ≥ 3 all have zero rows; with K = 1 or with the ring there are none"


def fixed_output_map(run: Run) -> str:
    """Exact ranks: which W are of the form W_val W_out for a fixed W_out."""
    cases, deficient = 40, 0
    for case in range(cases):
        rng = run.rng(case)
        output = rng.integers(-4, 5, (5, 1 + case % 4)) @ rng.integers(-4, 5, (1 + case % 4, 4))
        maps = np.concatenate([np.eye(4, dtype=int), rng.integers(-4, 5, (2, 4))])  # rank 4
        rank = fmpz_mat(output.tolist()).rank()
        reached = fmpz_mat([*output.tolist(), *maps.tolist()]).rank() == rank
        if reached != (rank == 4):
            raise EvidenceFailed(
                f"case {case}: rank(W_out) = {rank}, W of rank 4 reached: {reached}"
            )
        deficient += rank < 4
    if not 0 < deficient < cases:
        raise EvidenceFailed(f"{deficient} of {cases} W_out were rank-deficient, expected some")
    return (
        f"W of rank 4: {deficient} W_out of less rank miss it, {cases - deficient} others reach it"
    )


def sign_of_the_bijection(run: Run) -> str:
    """Σ_h X_(q - f(h)) W^(h), the paper's eq. 13, with W^(h) = W_(-f(h)) and with W_(f(h))."""
    cases = 3 if run.quick else 10
    for case in range(cases):
        rng = run.rng(case)
        kernel, image = rng.integers(-9, 10, (3, 3, 2, 2)), rng.integers(0, 256, (1, 5, 6, 2))
        shifts = kernel_shifts((3, 3), (1, 1))
        order = [shifts[i] for i in rng.permutation(9)]  # f(h) = q - k
        padded = np.pad(image, [(0, 0), (1, 1), (1, 1), (0, 0)])

        def layer(at_minus: bool, heads=order, padded=padded, kernel=kernel) -> np.ndarray:
            total = 0
            for f in heads:
                down, right = from_query_minus_key(f)
                tap = from_query_minus_key(f) if at_minus else f
                window = padded[:, 1 + down : 6 + down, 1 + right : 7 + right]
                total = total + window @ kernel[tap[0] + 1, tap[1] + 1]
            return total

        if (layer(True) != exact_convolution(image, kernel)).any():
            raise EvidenceFailed(f"case {case}: W^(h) = W_(-f(h)) is not the convolution")
        if (layer(False) != exact_convolution(image, kernel[::-1, ::-1])).any():
            raise EvidenceFailed(f"case {case}: W^(h) = W_(f(h)) is not the turned kernel's")
        if (layer(False) == layer(True)).all():
            raise EvidenceFailed(f"case {case}: the sign makes no difference")
    return f"{cases} bijections: -f gives the convolution, f that of the kernel turned by 180°"


CLAIM = Claim(
    id="C20.lemma1",
    source="Cordonnier, Loukas, Jaggi 2020, Lemma 1, eqs. 10 to 13",
    verdict=Verdict.AMENDED,
    kinds=(Kind.LAYER_EQUALITY,),
    evidence=(
        proved(
            "cordonnier2020/lemma1.v",
            covers="the layer without bias, in a ring of (K-1)/2 zeros, for some maps with that "
            "product, and that no attention on the bare grid whose rows sum to one meets (10) if "
            "K ≥ 3; not: that W_out must be free, (3) to (5)",
        ),
        certified("C20.lemma1"),
        Evidence(
            "a random bijection on images",
            Level.BOUNDED,
            random_bijection,
            assumes=UNDERFLOW,
            quick=False,
        ),
        Evidence("(10) at the border", Level.TESTED, border_rows),
        Evidence("a fixed W_out", Level.TESTED, fixed_output_map),
        Evidence("sign of f", Level.TESTED, sign_of_the_bijection),
    ),
)
