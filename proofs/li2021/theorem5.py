"""Theorem 5: on pixels, too few heads cannot express some kernel.

Claimed. On pixels, a layer with fewer than K² heads, and fewer heads than input channels, cannot
express some K × K convolution.
True. It cannot for odd K, images of (K+1)/2 pixels a side or more, and attention without content or
continuous at zero; nor with fewer heads than K² and than pairs of channels, for almost all kernels.

Printed. "In the pixel-input setting, suppose N_H < min{K², d}. There exists a convolutional kernel
weight W^C ∈ R^(K×K×d×D_out) such that any MHSA layer with N_H heads and relative positional
encoding cannot express conv(·; W^C)."

Verified. Let K be odd and the image at least (K+1)/2 pixels a side, with or without a ring of
zeros. For some kernel, and for all but a null set of them, any layer with N_H < min{K², d·D_out}
heads differs from the convolution: whatever the attention, provided it does not depend on the
content, in the limit too; and with content scores if the weights are continuous in the image at
zero (finite scores are). On real images it stays above a floor that is computed.

Repair. The conclusion is sharpened from min{K², d} to min{K², d·D_out}: for an RGB first layer, d =
3, with three or more filters K = 3 takes nine heads, not three. The printed proof has D_out = 1,
and takes D_out > 1 to follow, which loses the factor. Two hypotheses are added. (1) The image side:
the printed one-query argument needs a pixel with its whole receptive field, K a side; as the values
are shared by all queries, (K+1)/2 suffice. On smaller images it can fail: one pixel takes one head
whatever K and d are. (2) The printed proof writes the attention a^k_δ(γ) as independent of the
input; eq. 4 has content scores, which the derivative at zero removes.

Errata.
- Theorem 5 | any image, any content scores | at least (K+1)/2 pixels a side, K odd, and attention
  without content or continuous in the image at zero, as at finite scores; the printed proof takes
  it as independent of the input | S.content
- Theorem 5 | min(K², d) | Sharper: min(K², D_in·D_out) | S.heads

Proof. *The idea:* the taps lie in the span of the heads' maps, so there are at least as many heads
as independent taps.

Let Σ_h A_h X W_h be the convolution. The coefficient of X_(γ+δ) in its output at γ is Σ_h a_h(γ,
γ+δ)W_h = W_δ, for every γ and δ with γ + δ in the image. With (K+1)/2 pixels a side every δ occurs.
So all W_δ lie in the span of W_1, …, W_(N_H): the matrix F with the columns vec(W_δ) has rank at
most N_H.

Its entries are d·D_out × K² independent numbers, so its rank is min{K², d·D_out} but on a null set.

Limits: matrices of rank at most N_H, with the columns vec of the coefficient at each (γ, k), are a
closed set.

Content: conv(tX)/t = Σ_h A_h(tX)X W_h tends to Σ_h A_h(0)X W_h as t → 0 and does not depend on t,
so the positional layer A_h(0) is the convolution too.

The floor is derived in `convattn_ledger.evidence.head_floor`. ∎
"""

import numpy as np
from flint import arb, ctx

from convattn.bounds.flattened_kernel import exact_rank
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict, require
from convattn_ledger.evidence import certified, exact_convolution, proved
from convattn_ledger.evidence.head_floor import fewer_heads_fail
from convattn_ledger.evidence.printed_output_map import flattened_blocks, output_blocks

SIZES = ((3, 1, 1), (3, 3, 1), (3, 3, 3), (3, 3, 64), (5, 3, 8), (5, 3, 9), (5, 25, 1), (7, 7, 8))


def generic_ranks(run: Run) -> str:
    """rank F = min{K², d·D_out} for random integer kernels, exactly."""
    summary = []
    for size, inputs, outputs in SIZES:
        kernel = run.rng(size, inputs, outputs).integers(-99, 100, (size, size, inputs, outputs))
        rank = exact_rank(flattened_blocks(output_blocks(kernel, 1)))
        require(
            rank == min(size**2, inputs * outputs),
            f"K = {size}, {inputs} → {outputs}: rank {rank}",
        )
        summary.append(f"K = {size}, {inputs} → {outputs}: {rank} (printed {min(size**2, inputs)})")
    return "; ".join(summary)


def shifts_between(side: int, reach: int) -> set[tuple[int, ...]]:
    """The shifts up to `reach` on each axis that join two pixels of a side × side image."""
    pixels = np.stack(np.meshgrid(range(side), range(side), indexing="ij"), -1).reshape(-1, 2)
    shifts = (pixels[None] - pixels[:, None]).reshape(-1, 2).tolist()
    return {tuple(shift) for shift in shifts if max(map(abs, shift)) <= reach}


def offsets_that_occur(run: Run) -> str:
    """How many offsets of a K × K kernel join two pixels of an n × n image: all iff n ≥ (K+1)/2."""
    for size in (1, 3, 5, 7, 9):
        for side in range(1, size + 2):
            count = len(shifts_between(side, size // 2))
            if (count == size**2) != (2 * side >= size + 1):
                raise EvidenceFailed(f"K = {size}, {side} a side: {count} offsets occur")
    return "K ≤ 9: all K² offsets occur iff the image has at least (K+1)/2 pixels a side"


def one_pixel_takes_one_head(run: Run) -> str:
    """An image of one pixel: the zero-padded convolution is X·W_0, one head, for K = 3 and d =
    9."""
    kernel = run.rng("kernel").integers(-9, 10, (3, 3, 9, 9))
    images = run.rng("images").integers(-9, 10, (5, 1, 1, 9))
    if (exact_convolution(images, kernel) != images @ kernel[1, 1]).any():
        raise EvidenceFailed("one pixel reads more than the centre tap")
    return "K = 3, d = D_out = 9, one pixel: a single head equals it, where the print asks for nine"


def allowed_change(most: int, factor):
    """e^(2cf) - 1: how far softmax moves, in relative terms, if scores move by at most cf."""
    return (2 * most * factor).exp() - 1


def content_scores_do_not_help(run: Run) -> str:
    """At X = 0 the derivative of a layer with content scores is its positional layer's.

    conv(tX)/t does not depend on t. Content scores are quadratic in X, so at t = 2^-n they are at
    most c·4^-n, the weights differ from the positional ones by at most e^(2c·4^-n) - 1 in relative
    terms, and so does the layer, relative to Σ a|X||W|. Enclosed with balls: the distance at t
    falls below any bound.
    """
    rng = run.rng("content")
    tokens = rng.integers(-9, 10, (4, 3))
    form, scores = rng.integers(-3, 4, (3, 3)), rng.integers(-3, 4, (4, 4))
    content = tokens @ form @ tokens.T
    most = int(np.abs(content).max())
    require(most, "the content scores vanish, so nothing was seen")
    summary = []
    with ctx.workprec(256):

        def row(query: int, factor: arb) -> list[arb]:
            powers = [
                (int(scores[query, k]) + int(content[query, k]) * factor).exp() for k in range(4)
            ]
            return [power / sum(powers, arb(0)) for power in powers]

        for exponent in (5, 10, 20, 40):
            factor = arb(4) ** -exponent
            allowed = allowed_change(most, factor)
            for query in range(4):
                pairs = zip(row(query, factor), row(query, arb(0)), strict=True)
                if not all(abs(near / far - 1) <= allowed for near, far in pairs):
                    raise EvidenceFailed(f"t = 2^-{exponent}: the weights differ by more")
            summary.append(f"2^-{exponent}: {float(allowed.mid()):.2g}")
    return "weights at tX off the positional ones by at most, t = " + ", ".join(summary)


CLAIM = Claim(
    id="L21.theorem5",
    source="Li et al. 2021, Theorem 5, eqs. 6 to 9",
    verdict=Verdict.AMENDED,
    kinds=(Kind.LOWER_BOUND,),
    evidence=(
        proved(
            "li2021/theorem5.v",
            covers="attention without content, for some kernel and layers that are exact; not: "
            "almost every kernel, limits (S.heads), smaller images, the floor on images",
        ),
        proved(
            "li2021/theorem5_content.v",
            covers="content, for some kernel and layers that are exact, if the weights are "
            "continuous at the zero image; not: that finite scores are so, almost every kernel, "
            "limits",
        ),
        certified("L21.theorem5"),
        Evidence("ranks of generic kernels", Level.TESTED, generic_ranks),
        Evidence("offsets that occur", Level.TESTED, offsets_that_occur),
        Evidence("one pixel takes one head", Level.TESTED, one_pixel_takes_one_head),
        Evidence("content scores do not help", Level.TESTED, content_scores_do_not_help),
        fewer_heads_fail("eight of nine heads on images", 3),
    ),
)
