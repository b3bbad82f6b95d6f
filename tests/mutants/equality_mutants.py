"""Certificates of equality whose geometry is wrong. Each is consistent in its digests."""

from mutants import plants, subjects
from mutants.mutant import planted, text, wrong_certificate
from mutants.subjects import Make, amended, edited

from convattn.constructions import geometry
from convattn.constructions.geometry import ConvolutionGeometry


def rebuilt(original: Make, plant):
    """The certificate that the constructor writes after the slip was planted in the library."""
    return planted(text(original), plant)


def pattern_of(change):
    """An edit of the pattern, axis by axis."""

    def edit(body):
        body["pattern"] = [change(axis) for axis in body["pattern"]]

    return edit


def dilation_forgotten(monkeypatch):
    """Offsets and pattern of the undilated convolution under a dilation of 2."""
    right = ConvolutionGeometry.__dict__["tap_index"].func
    offsets = geometry.axis_token_offsets

    def tap_index(self):
        return right(ConvolutionGeometry.of(self.kernel_size, self.patch_size, self.stride))

    monkeypatch.setattr(ConvolutionGeometry, "tap_index", property(tap_index))
    monkeypatch.setattr(geometry, "axis_token_offsets", lambda k, p, d, *s: offsets(k, p, 1, *s))


MUTANTS = (
    wrong_certificate(
        "certificate-kernel-flipped",
        "The kernel is turned around.",
        subjects.LIMIT_PATCHES,
        rebuilt(subjects.LIMIT_PATCHES, plants.flipped_kernel),
        r"pattern: pattern\[0\]",
    ),
    wrong_certificate(
        "certificate-axes-swapped",
        "The pattern of the columns stands before that of the rows, for a 3 × 5 kernel.",
        subjects.LIMIT_RECTANGLE,
        edited(subjects.LIMIT_RECTANGLE, lambda body: body["pattern"].reverse()),
        r"pattern: pattern\[0\]",
    ),
    wrong_certificate(
        "certificate-targets-swapped",
        "The heads' targets are (column, row).",
        subjects.QUADRATIC,
        edited(
            subjects.QUADRATIC, lambda body: [t.reverse() for t in body["attention"]["targets"]]
        ),
        r"identity: sum over h of \(c at ",
    ),
    wrong_certificate(
        "certificate-query-minus-key",
        "The heads' targets are q - k.",
        subjects.LIMIT_PATCHES,
        edited(subjects.LIMIT_PATCHES, lambda body: body["attention"]["targets"].reverse()),
        r"identity: sum over h of \(c at \(-1, -1\) .* is 0, expected 1",
    ),
    wrong_certificate(
        "certificate-taps-from-zero",
        "The taps run over 0, …, K-1.",
        subjects.LIMIT_BIAS,
        rebuilt(subjects.LIMIT_BIAS, plants.taps_from_zero),
        r"offsets: offsets \[\[0, 0\], \[0, 1\]",
    ),
    wrong_certificate(
        "certificate-even-kernel-to-the-left",
        "The odd tap of an even kernel lies on the left.",
        subjects.EVEN,
        rebuilt(subjects.EVEN, plants.even_kernel_to_the_left),
        r"(offsets|pattern): ",
    ),
    wrong_certificate(
        "certificate-tap-off-by-one",
        "The pattern names the next tap.",
        subjects.LIMIT_PATCHES,
        rebuilt(subjects.LIMIT_PATCHES, plants.tap_off_by_one),
        r"pattern: pattern\[0\]",
    ),
    wrong_certificate(
        "certificate-map-transposed",
        "The pattern's axes are [offset][input pixel][output pixel].",
        subjects.LIMIT_PATCHES,
        edited(
            subjects.LIMIT_PATCHES,
            pattern_of(lambda axis: [[list(row) for row in zip(*m, strict=True)] for m in axis]),
        ),
        r"pattern: pattern\[0\]",
    ),
    wrong_certificate(
        "certificate-absent-is-centre",
        "'No tap' is written as the centre, after L21's remark on W^O.",
        subjects.LIMIT_PATCHES,
        rebuilt(subjects.LIMIT_PATCHES, plants.absent_is_centre),
        r"pattern: pattern\[0\]",
    ),
    wrong_certificate(
        "certificate-ring-missing",
        "'SAME' padding is taken to come by itself.",
        subjects.LIMIT_BIAS,
        rebuilt(subjects.LIMIT_BIAS, plants.no_ring),
        r"ring: axis 0 has 0 zero tokens before and 0 after",
    ),
    wrong_certificate(
        "certificate-ring-before-only",
        "Zero tokens stand before the image, none after it.",
        subjects.LIMIT_BIAS,
        rebuilt(subjects.LIMIT_BIAS, plants.ring_before_only),
        r"ring: axis 0 has 1 zero tokens before and 0 after",
    ),
    wrong_certificate(
        "certificate-ring-in-undilated-pixels",
        "The ring is (K-1)/2 wide although the dilation is 3.",
        subjects.FAR,
        amended(subjects.FAR, ring=[[1, 1], [1, 1]]),
        r"ring: axis 0 has 1 zero tokens before and 1 after, expected at least 3 and 3",
    ),
    wrong_certificate(
        "certificate-stride-phase",
        "Stride s keeps the pixels s-1, 2s-1, … of a patch.",
        subjects.STRIDED,
        rebuilt(subjects.STRIDED, plants.stride_phase),
        r"pattern: pattern\[0\]",
    ),
    wrong_certificate(
        "certificate-stride-to-tokens",
        "A stride of 3 is written to tokens of 2 pixels.",
        subjects.SUBSAMPLED,
        amended(subjects.SUBSAMPLED, stride_route="tokens"),
        r"stride: stride 3 straight to the tokens",
    ),
    wrong_certificate(
        "certificate-stride-not-written",
        "The route is the tokens', but the pattern still computes every pixel.",
        subjects.STRIDED,
        edited(
            subjects.STRIDED,
            lambda body: body.update(
                pattern=subjects.equality("L21.theorem1", "bias", (5, 5), 4)()["body"]["pattern"]
            ),
        ),
        r"pattern: pattern\[0\]",
    ),
    wrong_certificate(
        "certificate-dilation-in-tokens",
        "The dilation multiplies the offsets of patches, not of pixels.",
        subjects.DILATED,
        rebuilt(subjects.DILATED, plants.dilation_in_tokens),
        r"offsets: offsets \[\[-2, -2\]",
    ),
    wrong_certificate(
        "certificate-dilation-forgotten",
        "The taps lie side by side under a dilation of 2.",
        subjects.DILATED,
        rebuilt(subjects.DILATED, dilation_forgotten),
        r"pattern: pattern\[0\]",
    ),
)
