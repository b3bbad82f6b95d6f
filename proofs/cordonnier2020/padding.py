"""§3, padding: a ring of zeros makes the layer the zero-padded convolution; without it it is not.

Claimed. Attention pads as "SAME" by default, and if the image is padded with zeros by half the
kernel size on each side, it gives the same result as a convolution.
True. With the zeros it does, for odd K and in the limit of sharp attention; without them the output
has the same size, but is the convolution with the edge pixels repeated.

Printed. "A multi-head self-attention layer uses by default the "SAME" padding while a
convolutional layer would decrease the image size by K - 1 pixels. The correct way to alleviate
these boundary effects is to pad the input image with ⌊K/2⌋ zeros on each side. In this case, the
cropped output of a MHSA and a convolutional layer are the same."

Verified. K odd, r = (K-1)/2. Pad the image with r zeros on each side, apply the layer of Theorem
1 (in the limit) to all pixels, and crop r pixels on each side: the result is the zero-padded
convolution of the image, for every kernel. Without the zeros the layer's output has the size of
the image, but it is the convolution with the edge repeated. For K ≥ 3, on an image of more than one
pixel, no softmax layer computes every zero-padded convolution without them. (K₁ × K₂ kernels: for
K₁ ≥ 3 with a second row, or K₂ ≥ 3 with a second column. On one pixel the zero-padded convolution
is the centre tap, which one head with the row 1 applies.)

Repair. "SAME" by default is true of the shape, not of the values: zero padding is what the zeros
bring, not what the layer does by itself.

Errata.
- after Theorem 1 | "uses by default the 'SAME' padding" | true of the shape, not of the values

Proof. *The idea:* a query of the image has all its targets q + δ among the pixels of the padded
image.

So Lemmas 1 and 2 apply to it, and what they read outside of the image are the zeros of the
zero-padded convolution. The outputs at the padding's own pixels are cropped; a layer need not
compute them.

Without zeros the head of shift δ attends to the pixel nearest to q + δ (Lemma 2), which is the
pixel that repeating the edge puts at q + δ.

And a constant image has a constant output under every softmax layer on the bare grid, rows summing
to one, while the zero-padded convolution with the one tap (1, 0) gives 0 in the last row and 1 in
the others for the image of ones; with one row, take (0, 1) and the last column. ∎
"""

import numpy as np

from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict
from convattn_ledger.evidence import (
    DTYPES,
    UNDERFLOW,
    applied,
    certified,
    converted,
    equals_convolution,
    exact_convolution,
    integer_kernel,
    proved,
    total_variation_enclosed,
    whole_images,
)
from convattn_ledger.evidence.layer_runs import equal


def pad_apply_crop(run: Run) -> str:
    """The remark to the letter: zeros in the image itself, no ring of the layer's, crop."""
    images = whole_images(run)
    kernel = integer_kernel(run.rng("kernel"), (3, 3), 3, 4)
    expected = exact_convolution(images, kernel)
    padded = np.pad(images, [(0, 0), (1, 1), (1, 1), (0, 0)])
    comparisons = []
    for dtype in DTYPES:
        result = applied(
            converted(kernel, dtype, encoding="quadratic"), padded, dtype, border="none"
        )
        comparisons.append(equal(dtype, result[:, 1:-1, 1:-1], expected))
    return f"{len(images)} images; " + "; ".join(comparisons)


def bare_grid(run: Run) -> str:
    """Without zeros: equal to the convolution with repeated edges, unlike the zero-padded one."""
    images = whole_images(run)
    kernel = integer_kernel(run.rng("kernel"), (3, 3), 3, 4)
    edge = exact_convolution(images, kernel, mode="edge")
    differ = (edge != exact_convolution(images, kernel)).any(axis=(0, 3))
    inside = np.zeros_like(differ)
    inside[1:-1, 1:-1] = True
    if differ[inside].any() or not differ[~inside].all():
        raise EvidenceFailed("edge and zero padding should differ exactly at the border pixels")
    comparisons = []
    for dtype in DTYPES:
        result = applied(
            converted(kernel, dtype, encoding="quadratic"), images, dtype, border="none"
        )
        comparisons.append(equal(dtype, result, edge))
    border = int((~inside).sum())
    return f"{len(images)} images, edge repeated; off from zero padding at {border} pixels; " + (
        "; ".join(comparisons)
    )


CLAIM = Claim(
    id="C20.padding",
    source="Cordonnier, Loukas, Jaggi 2020, §3, remark on padding",
    verdict=Verdict.AMENDED,
    kinds=(Kind.LAYER_EQUALITY, Kind.LIMIT),
    evidence=(
        proved(
            "cordonnier2020/padding.v",
            covers="all, the layer given by the weights x^(|k - (q + δ)|²), x = e^-α, and the "
            "taps as its maps, the limits at each pixel of each image as x → 0; not: the remark "
            "on one pixel",
        ),
        total_variation_enclosed("distance to hard attention", alphas=(1.0, 16.0, 104.0)),
        certified("C20.padding", "K*", name="with the ring, every kernel"),
        certified("C20.padding", "border", name="fails on the bare grid"),
        equals_convolution("3 × 3 with the ring", (3, 3), encoding="quadratic"),
        Evidence("pad, apply, crop", Level.BOUNDED, pad_apply_crop, assumes=UNDERFLOW, quick=False),
        Evidence("edge on the bare grid", Level.BOUNDED, bare_grid, assumes=UNDERFLOW, quick=False),
    ),
)
