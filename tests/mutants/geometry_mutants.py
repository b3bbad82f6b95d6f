"""Slips about which pixel a tap reads: signs, centres, strides, dilations. Judged on images."""

import pytest
from mutants import plants, subjects
from mutants.mutant import wrong_layer
from mutants.plants import DIFFER, trace_afresh

from convattn.constructions import geometry
from convattn.constructions.geometry import ConvolutionGeometry
from convattn.encodings.layer import AttentionLayer


def stride_to_tokens_always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep pixels 0, s, … of every patch, whether s divides P or not."""
    trace_afresh(monkeypatch)
    monkeypatch.setattr(geometry, "strided_output_pixels", lambda p, s: range(0, p, s))
    yes = property(lambda self: True)
    for owner in (ConvolutionGeometry, AttentionLayer):
        monkeypatch.setattr(owner, "writes_stride_to_tokens", yes)
    kept = property(
        lambda self: tuple(-(-p // s) for p, s in zip(self.patch_size, self.stride, strict=True))
    )
    monkeypatch.setattr(AttentionLayer, "output_patch_size", kept)


MUTANTS = (
    wrong_layer(
        "kernel-flipped",
        "The kernel is turned around, a convolution as signal processing defines it.",
        subjects.PATCH_LAYER,
        plants.flipped_kernel,
        DIFFER,
    ),
    wrong_layer(
        "axes-swapped",
        "Rows and columns of the kernel are exchanged.",
        subjects.PATCH_LAYER,
        plants.swapped_axes,
        DIFFER,
    ),
    wrong_layer(
        "query-minus-key",
        "The heads' shift is q - k, as L21 Lemma 2 writes it, while the maps are for k - q.",
        subjects.PATCH_LAYER,
        plants.query_minus_key,
        DIFFER,
    ),
    wrong_layer(
        "taps-from-zero",
        "The taps run over 0, …, K-1, so that the result is shifted by the radius.",
        subjects.PATCH_LAYER,
        plants.taps_from_zero,
        DIFFER,
    ),
    wrong_layer(
        "even-kernel-to-the-left",
        "The odd tap of an even kernel lies on the left.",
        subjects.EVEN_LAYER,
        plants.even_kernel_to_the_left,
        DIFFER,
    ),
    wrong_layer(
        "tap-off-by-one",
        "The map takes the weight of the next tap.",
        subjects.PATCH_LAYER,
        plants.tap_off_by_one,
        DIFFER,
    ),
    wrong_layer(
        "map-transposed",
        "Input and output pixels of the map between two patches are exchanged.",
        subjects.PATCH_LAYER,
        plants.transposed_map,
        DIFFER,
    ),
    wrong_layer(
        "absent-is-centre",
        "L21's (0, 0) for 'no tap' is read as the centre tap, which its eq. 1 calls (0, 0) too.",
        subjects.PATCH_LAYER,
        plants.absent_is_centre,
        DIFFER,
    ),
    wrong_layer(
        "stride-phase",
        "Stride s keeps the pixels s-1, 2s-1, … of a patch.",
        subjects.STRIDED_LAYER,
        plants.stride_phase,
        DIFFER,
    ),
    wrong_layer(
        "stride-to-tokens-always",
        "The stride is written to the tokens although s does not divide P.",
        subjects.SUBSAMPLED_LAYER,
        stride_to_tokens_always,
        r"float32: shape \(16, 16, 16, 4\), expected \(16, 11, 11, 4\)",
    ),
    wrong_layer(
        "dilation-in-tokens",
        "The dilation multiplies the offsets of patches, not of pixels.",
        subjects.DILATED_LAYER,
        plants.dilation_in_tokens,
        DIFFER,
    ),
    wrong_layer(
        "dilation-counts-gaps",
        "A dilation d is read as d pixels left out between two taps.",
        subjects.DILATED_LAYER,
        plants.dilation_counts_gaps,
        DIFFER,
    ),
)
