"""Corollary 3: on pixels, K² heads express every K × K convolution.

Claimed. On pixels, K² heads express every K × K convolution, as a special case of the theorem on
patches.
True. They do, for odd K, in the limit of sharp attention and with zero padding, but it is no
special case: the two statements assume different widths of the heads.

Printed. "In the pixel-input setting, a multi-head self-attention layer with N_H = K² heads of
dimension d_H, output dimension d_O and relative positional encodings can express any convolutional
layer of kernel size K × K and min{d_H, d_O} output channels." It is called "a natural corollary" of
Theorem 1, since "patches become pixels when patch resolution P = 1".

Verified. K odd, with a ring of (K-1)/2 zero pixels, in the limit M → ∞: K² heads with d_H ≥
min(D_in, D_out) and d_O ≥ D_out express every K × K convolution. For D_out ≤ min{d_H, d_O} that is
the printed conclusion. For d_H ≥ D_in it is Theorem 1 at P = 1, with up to d_O output channels.

Repair. (1) Limit, ring and odd K as in Theorem 1. (2) It is not a corollary. Theorem 1 at P = 1
assumes d_H ≥ d and d_O ≥ D_out, and asks nothing else of D_out; Corollary 3 assumes nothing of d_H
and bounds D_out by min{d_H, d_O}. Neither contains the other: with d_H = d = 3 and d_O = 64 Theorem
1 gives 64 output channels, Corollary 3 three; with d = 48 and d_H = d_O = 3 Corollary 3 gives three
output channels, and Theorem 1 says nothing, as d_H < d. The proof of Theorem 1, W^V = I, needs d_H
≥ d; for the second case W^V must carry the kernel. (3) min{d_H, d_O} output channels are
sufficient, not a limit: d_O ≥ D_out is needed, but of d_H only that the heads can hold the maps
W_δ. For any K² heads, one-hot or not, that takes K²·d_H ≥ max(rk_in, rk_out), the ranks of the two
matricisations of W by input and by output channels.

Errata.
- Corollary 3 | a corollary of Theorem 1 | not one: it does not assume d_H ≥ d

Proof. *The idea:* on pixels the blocks of Theorem 1 are the taps, and W^V or W^O can hold them.

Theorem 1 with P = 1 has m = (K-1)/2, (2m+1)² = K² and M_δ = W_δ, a D_in × D_out matrix of rank at
most min(D_in, D_out) ≤ d_H. If D_in ≤ d_H take W^V = I and W^O_δ = W_δ, otherwise D_out ≤ d_H,
W^V_δ = W_δ and W^O = I.

Conversely a layer with n heads of dimension d_H is W_δ = Σ_h a_h(δ) V_h O_h at an interior query.
Stacked side by side (D_in × K²·D_out) the W_δ have their columns in the sum of the images of the
V_h, so rk_in ≤ n·d_H; stacked one above the other, rk_out ≤ n·d_H by the O_h. ∎
"""

from convattn.bounds.flattened_kernel import exact_rank
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict, require
from convattn_ledger.evidence import (
    DTYPES,
    UNDERFLOW,
    applied,
    bias_saturation_enclosed,
    certified,
    converted,
    equals_convolution,
    exact_convolution,
    integer_kernel,
    proved,
    whole_images,
)
from convattn_ledger.evidence.exact_tokens import cut_tokens
from convattn_ledger.evidence.layer_runs import equal


def narrow_heads_equal(run: Run, patch: int, out_channels: int, head_dim: int) -> str:
    """Nine heads of dimension d_H on real images, equal to the convolution in four dtypes.

    With `patch` > 1 the pixels are those of the image folded into channels, 3·patch² of them. The
    images are whole either way.
    """
    pixels = cut_tokens(whole_images(run), patch)
    kernel = integer_kernel(run.rng("kernel"), (3, 3), pixels.shape[-1], out_channels)
    expected = exact_convolution(pixels, kernel)
    comparisons = []
    for dtype in DTYPES:
        layer = converted(kernel, dtype, encoding="bias", form="limit", head_dim=head_dim)
        shapes = (layer.value.shape, layer.output.shape)  # type: ignore[union-attr]
        if shapes != ((9, pixels.shape[-1], head_dim), (9, head_dim, out_channels)):
            raise EvidenceFailed(f"W^V and W^O have the shapes {shapes}")
        comparisons.append(equal(dtype, applied(layer, pixels, dtype), expected))
    return (
        f"{len(pixels)} images of {pixels.shape[1]} × {pixels.shape[2]} pixels, d = "
        f"{pixels.shape[-1]}, d_H = {head_dim}, D_out = {out_channels}, 9 heads: "
        + "; ".join(comparisons)
    )


def sixty_four_channels(run: Run) -> str:
    """d_H = d = 3 and d_O = 64: Theorem 1's case, beyond Corollary 3's three channels."""
    return narrow_heads_equal(run, 1, 64, 3)


def narrower_than_the_pixels(run: Run) -> str:
    """d = 48, d_H = d_O = 3: Corollary 3's case, outside of Theorem 1's hypothesis."""
    return narrow_heads_equal(run, 4, 3, 3)


def ranks_of_the_maps(run: Run) -> str:
    """What d_H must be: exact ranks of generic kernels and of the maps of single taps."""
    summary = []
    for number, (size, inputs, outputs) in enumerate(
        ((3, 3, 64), (3, 48, 3), (3, 12, 12), (3, 30, 30))
    ):
        kernel = run.rng(number).integers(-9, 10, (size**2, inputs, outputs))
        widest = max(exact_rank(tap) for tap in kernel)
        require(widest <= min(inputs, outputs), f"a {inputs} × {outputs} map has rank {widest}")
        by_input = exact_rank(kernel.transpose(1, 0, 2).reshape(inputs, -1))
        by_output = exact_rank(kernel.reshape(-1, outputs))
        least = -(-max(by_input, by_output) // size**2)
        if (by_input, by_output) != (
            min(inputs, size**2 * outputs),
            min(outputs, size**2 * inputs),
        ):
            raise EvidenceFailed(f"generic ranks {by_input}, {by_output} for {inputs} × {outputs}")
        summary.append(f"{inputs} → {outputs}: d_H ≥ {least} necessary, {widest} sufficient")
    if "12 → 12: d_H ≥ 2 necessary, 12 sufficient" not in summary:
        raise EvidenceFailed(f"nine heads of dimension one were not excluded: {summary}")
    return "K = 3, nine heads; " + "; ".join(summary)


CLAIM = Claim(
    id="L21.cor3",
    source="Li et al. 2021, Corollary 3",
    verdict=Verdict.AMENDED,
    kinds=(Kind.LAYER_EQUALITY, Kind.LIMIT),
    evidence=(
        proved(
            "li2021/cor3.v",
            covers="the limit at each pixel of each image, for d_H ≥ min(D_in, D_out) and d_O = "
            "D_out, without bias; not: d_O > D_out, (2), nor what (3) says is needed of d_H",
        ),
        certified("L21.cor3"),
        bias_saturation_enclosed(
            "distance to hard attention", logits=(8.0, 40.0), keys=(100, 1156)
        ),
        Evidence("ranks of the maps", Level.TESTED, ranks_of_the_maps),
        equals_convolution("3 × 3 on pixels", (3, 3)),
        Evidence(
            "64 output channels with d_H = 3",
            Level.BOUNDED,
            sixty_four_channels,
            assumes=UNDERFLOW,
            quick=False,
        ),
        Evidence(
            "d_H = 3 on pixels of 48 channels",
            Level.BOUNDED,
            narrower_than_the_pixels,
            assumes=UNDERFLOW,
            quick=False,
        ),
    ),
)
