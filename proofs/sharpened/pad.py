"""S.pad: on a filled ring the heads of S.finite are the convolution with any padding.

Claimed. With the tokens around the image filled to match, the heads of S.finite are the convolution
with zero, edge, circular or reflected padding, and also the valid and the causal one.
True. They are, for any filling whatever and at every size, without one head more; on patches,
pixels have to be filled in before patches are cut.

Printed. Not from a paper: our own result. Cordonnier et al. 2020, §3, and Li et al. 2021 speak of
zeros alone. Fill the ring that the heads reach into with zeros, copies of the edge, the opposite
side (circular) or a reflection. Then (2m+1)² + 1 relative heads are the convolution with that
padding, at every size; "valid" keeps the queries whose field lies inside the image, and a causal
sequence shifts its taps.

Verified. The same, for any filling whatever, also by the mean of all pixels, and for "SAME" as XLA,
Flax and Keras mean it, whose widths depend on the size and the stride: no head is needed for an
offset. Pixels are filled before patches are cut. The limit forms do it as well. On a causal
sequence heads at finite scores attend to what follows too, and the uniform head takes it back;
one-hot heads look back alone.

Nothing to repair.

Proof. *The idea:* the heads are the convolution of the filled image, whatever it holds.

Let Z be the filled image, its tokens all keys, and let q be a token of it whose offsets are all
keys: those behind a ring as wide as the offsets reach are. By S.finite, Σ_δ S_δ Z M_δ is what the
layer computes at q, and that is the convolution of Z, read there, whatever Z holds.

A padding is a Z, and a place in it where the outputs begin: with b pixels before the image and c
from the first tap to the centre, output 0 has its centre at pixel c - b of the image, and output i
at pixel c - b + s·i.

Patches are cut so that the first of these begins one; then the pixels that a stride keeps are the
same in every patch, and the maps of the zero-padded layer serve.

For "valid" b = 0, for a causal sequence b is the whole reach, for XLA's "SAME" it is ⌊p/2⌋ of the p
pixels that make ⌈n/s⌉ outputs; the heads see nothing of all that. ∎
"""

import numpy as np
from jax import lax

from convattn.bounds.majorant import majorant_of
from convattn.bounds.rounding import layer_error_bound
from convattn_ledger import Claim, Evidence, Kind, Level, Run, Verdict, require
from convattn_ledger.evidence import (
    EXP_AND_LOG1P,
    UNDERFLOW,
    applied,
    certified,
    converted,
    exact_convolution,
    integer_kernel,
    proved,
    whole_images,
)
from convattn_ledger.evidence.layer_runs import equal, within

FILLS = {"CIRCULAR": "wrap", "REFLECT": "reflect", "EDGE": "edge"}


def fills_on_images(run: Run) -> str:
    """5 × 5 kernels, on pixels and on patches that do not divide the image: NumPy's pads."""
    images = whole_images(run)[:, :, :30]
    kernel = integer_kernel(run.rng("kernel"), (5, 5), 3, 4)
    zeros, comparisons = exact_convolution(images, kernel), []
    for padding, mode in FILLS.items():
        expected = exact_convolution(images, kernel, mode=mode)
        require((expected != zeros).any(), f"{padding}: nothing differs from zeros")
        for dtype, patch in (("float32", 1), ("float16", 4)):
            limit = converted(kernel, dtype, patch_size=patch, padding=padding, form="limit")
            equal(dtype, applied(limit, images, dtype), expected)
        layer = converted(kernel, "float32", patch_size=4, padding=padding)
        typed = images.astype(np.float32)
        bound = layer_error_bound(layer, typed, majorant_of(layer, kernel, None, images))
        line = within("float32", applied(layer, images, "float32"), expected, bound)
        comparisons.append(f"{padding} equal in the limit, {layer.heads} heads at finite M: {line}")
    return f"{len(images)} images of 32 × 30; " + "; ".join(comparisons)


def mean_on_images(run: Run) -> str:
    """Filled with the mean of the image's pixels, within the derived bound."""
    images = whole_images(run)[:, :30, :]
    kernel, pixels = integer_kernel(run.rng("kernel"), (3, 3), 3, 4), 30 * 32
    total = images.sum(axis=(1, 2), keepdims=True)
    ring = np.broadcast_to(total, (len(images), 32, 34, 3)).copy()
    ring[:, 1:-1, 1:-1] = pixels * images
    expected = exact_convolution(ring, kernel)[:, 1:-1, 1:-1] / pixels
    comparisons = []
    for dtype, patch in (("float32", 1), ("bfloat16", 4)):
        layer = converted(kernel, dtype, patch_size=patch, padding="MEAN")
        typed = images.astype(dtype)
        bound = layer_error_bound(layer, typed, majorant_of(layer, kernel, None, images))
        bound = bound + 2.0**-52 * np.abs(expected)
        comparisons.append(within(dtype, applied(layer, images, dtype), expected, bound))
    return f"{len(images)} images of 30 × 32; " + "; ".join(comparisons)


def xlas_own_paddings(run: Run) -> str:
    """One layer at four sizes, strides 2 and 3: XLA's convolution with its "SAME" and "VALID"."""
    images = whole_images(run)
    kernel = integer_kernel(run.rng("kernel"), (3, 3), 3, 4)
    differ = 0
    for ours, theirs in (("SAME", "SAME"), ("VALID", "VALID")):
        for stride, patch in ((2, 1), (2, 4), (3, 2)):
            options = {"stride": stride, "patch_size": patch, "padding": ours}
            layer = converted(kernel, "float32", form="limit", **options)
            for rows, columns in ((32, 32), (31, 32), (17, 30), (9, 8)):
                crop = images[:, :rows, :columns]
                wide = crop.astype(float), kernel.astype(float)
                names = ("NHWC", "HWIO", "NHWC")
                expected = np.asarray(
                    lax.conv_general_dilated(
                        *wide,
                        (stride, stride),
                        theirs,
                        dimension_numbers=names,
                        precision="highest",
                    )
                ).astype(np.int64)
                equal("float32", applied(layer, crop, "float32"), expected)
                same = exact_convolution(crop, kernel, stride=stride)
                differ += same.shape != expected.shape or bool((same != expected).any())
    require(differ > 0, "nowhere another result than with symmetric zeros")
    return (
        f"{len(images)} images, 24 cases, of which {differ} differ from symmetric zeros: equal to "
        "XLA's convolution in float32"
    )


def causal_rows(run: Run) -> str:
    """Rows of images as sequences: each output reads itself and what comes before."""
    rows = whole_images(run)[:, 16]
    kernel = integer_kernel(run.rng("kernel"), (4,), 3, 4)
    expected = np.zeros((*rows.shape[:-1], 4), np.int64)
    for tap in range(4):
        back = 2 * (3 - tap)
        expected[:, back:] += rows[:, : rows.shape[1] - back] @ kernel[tap]
    comparisons = []
    for patch in (1, 3):
        options = {"patch_size": patch, "dilation": 2, "padding": "CAUSAL"}
        layer = converted(kernel, "float32", form="limit", **options)
        same = equal("float32", applied(layer, rows, "float32"), expected)
        comparisons.append(f"P = {patch}: {same}")
    return f"{len(rows)} rows, K = 4, d = 2; " + "; ".join(comparisons)


CLAIM = Claim(
    id="S.pad",
    source="this project, sharpening S.finite and C20 §3 at the border",
    verdict=Verdict.HOLDS,
    kinds=(Kind.LAYER_EQUALITY,),
    evidence=(
        proved(
            "sharpened/pad.v",
            covers="the form at finite scores: any filling of the ring, odd K, stride 1, any bias "
            "but zero, with value maps that depend on the size, at the image's own tokens; not: "
            "limit forms, causal sequences, where each padding's outputs begin, strides, dilation "
            "and even K",
        ),
        certified("S.pad", covers="ε = 1/2"),
        Evidence("fills on images", Level.BOUNDED, fills_on_images, assumes=EXP_AND_LOG1P),
        Evidence(
            "filled with the mean",
            Level.BOUNDED,
            mean_on_images,
            assumes=EXP_AND_LOG1P,
            quick=False,
        ),
        Evidence(
            "XLA's own paddings", Level.BOUNDED, xlas_own_paddings, assumes=UNDERFLOW, quick=False
        ),
        Evidence("causal sequences", Level.BOUNDED, causal_rows, assumes=UNDERFLOW, quick=False),
    ),
)
