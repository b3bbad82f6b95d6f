"""Falsehoods about the tokens that a convolution reads, the taps between them, and its ring."""

import certificate_builder as build
from certificate_cases import changed, drop, put

from corpora.entry import falsehoods, swap, update


def leaky_on(offsets, pattern, ring, **sizes):
    """S.finite on one axis, right in all but its geometry."""
    certificate = build.leaky_equality(**sizes)
    body, count = certificate["body"], len(offsets)
    body |= {
        "offsets": [[offset] for offset in offsets],
        "pattern": [pattern],
        "ring": [ring],
        "heads": count + 1,
    }
    body["attention"]["targets"] = [*body["offsets"], None]
    entries = [(h, h, 2) for h in range(count)] + [(count, h, -1) for h in range(count)]
    body["values"] = build.sparse(entries)
    return build.sealed(certificate)


def transposed(body):
    for rows in body["pattern"][0]:
        rows[0][1], rows[1][0] = rows[1][0], rows[0][1]


def flipped(body):
    """As a convolution in the strict sense: tap t is where -t belongs."""
    size = body["kernel_size"][0]
    body["pattern"][0] = [
        [[tap if tap < 0 else size - 1 - tap for tap in row] for row in rows]
        for rows in body["pattern"][0]
    ]


def odd_outputs(body):
    body["pattern"][0] = [rows[1::2] for rows in build.axis_pattern(3, 4)]


FULL_PATTERN = [[[0]], [[1]], [[2]]]
GEOMETRY = [
    ("offset-missing", "wo", drop(["offsets", 0]), "offsets", "offsets [[-1, 0], [-1, 1]",
     "the offset (-1, -1) is read and not listed"),
    ("offset-off-by-one", "wo", put(["offsets", 0], [-1, -2]), "offsets",
     "offsets [[-1, -2], [-1, 0]", "the first offset is (-1, -1)"),
    ("offset-repeated", "wo", put(["offsets", 1], [-1, -1]), "offsets",
     "offsets [[-1, -1], [-1, -1]", "(-1, -1) twice, (-1, 0) never: nine offsets all the same"),
    ("offsets-column-major", "wo", swap(["offsets"], 1, 3), "offsets",
     "offsets [[-1, -1], [0, -1]", "two offsets have changed places: they are row-major"),
    ("even-kernel-mirrored", leaky_on([-1, 0], [[[0]], [[1]]], [1, 0], kernel=(2,)), None,
     "offsets", "offsets [[-1], [0]], expected [(0,), (1,)]",
     "for K = 2 the taps are 0 and 1, not -1 and 0"),
    ("offsets-truncated", leaky_on([0, 1], build.axis_pattern(5, 3)[1:], [0, 1], kernel=(5,),
     patch=(3,)), None, "offsets", "expected [(-1,), (0,), (1,)]",
     "(p + t)/P was rounded towards 0 instead of down, and the offset -1 is lost"),
    ("reach-rounded-down", leaky_on([-1, 0, 1], build.axis_pattern(9, 3)[1:-1], [1, 1],
     kernel=(9,), patch=(3,)), None, "offsets", "expected [(-2,), (-1,), (0,), (1,), (2,)]",
     "m is (K-1)/(2P) = 4/3 rounded up, not down"),
    ("offsets-of-pixels", leaky_on([-2, -1, 0, 1, 2], [[[-1, -1]] * 2, *build.axis_pattern(5, 2),
     [[-1, -1]] * 2], [2, 2], kernel=(5,), patch=(2,)), None, "offsets",
     "expected [(-1,), (0,), (1,)]", "these are the pixels that a pixel reads, not the tokens"),
    ("dilation-forgotten", leaky_on([-1, 0, 1], FULL_PATTERN, [1, 1], kernel=(3,), dilation=(2,)),
     None, "offsets", "expected [(-2,), (0,), (2,)]",
     "with dilation 2 the taps are 2 pixels apart"),
    ("dilation-gaps-filled", leaky_on([-2, -1, 0, 1, 2], [[[0]], [[-1]], [[1]], [[-1]], [[2]]],
     [2, 2], kernel=(3,), dilation=(2,)), None, "offsets", "expected [(-2,), (0,), (2,)]",
     "nothing is read at the offsets -1 and 1: the layer has two heads too many"),
    ("tap-swapped", "wo", swap(["pattern", 0, 0, 0], 0, 1), "pattern", "pattern[0] is [[[1, 0]",
     "two pixels of the token before are read through each other's taps"),
    ("tap-missing", "wo", put(["pattern", 1, 1, 1, 1], -1), "pattern", "pattern[1] is",
     "the tap 0 between a pixel and itself is lost"),
    ("tap-too-many", "wo", put(["pattern", 0, 0, 1, 0], 0), "pattern", "pattern[0] is",
     "pixel 1 does not reach pixel 0 of the token before: that would be tap -3"),
    ("pattern-transposed", "wo", transposed, "pattern", "pattern[0] is",
     "output and input pixels have changed places"),
    ("kernel-flipped", "wo", flipped, "pattern", "pattern[0] is [[[4, 3]",
     "each tap is where its opposite belongs: the kernel is flipped"),
    ("axes-exchanged", "wo", swap(["pattern"], 0, 1), "pattern", "pattern[0] is",
     "the patterns of the two axes have changed places"),
    ("stride-wrong-phase", "stride_tokens", odd_outputs, "pattern", "skip=2",
     "stride 2 keeps the output pixels 0 and 2, not 1 and 3"),
    ("stride-keeps-all", "stride_tokens", put(["pattern", 0], build.axis_pattern(3, 4)), "pattern",
     "skip=2", "a stride straight to the tokens computes every other output pixel alone"),
    ("route-exchanged", "stride_tokens", put(["stride_route"], "subsample"), "pattern", "skip=1",
     "a layer that subsamples computes all output pixels first"),
    ("stride-does-not-divide", "stride_tokens", put(["stride"], [3, 2]), "stride",
     "stride 3 straight to the tokens, expected a divisor of the patch size 4",
     "3 does not divide the patch 4: the outputs of a token would depend on where it is"),
    ("ring-short-before", "wo", put(["ring", 0], [0, 1]), "ring",
     "axis 0 has 0 zero tokens before and 1 after, expected at least 1 and 1",
     "one zero token too few: the first tokens see no offset -1"),
    ("ring-short-after", "wo", put(["ring", 1], [1, 0]), "ring",
     "axis 1 has 1 zero tokens before and 0 after", "the last tokens see no offset 1"),
    ("ring-undilated", leaky_on([-4, 0, 4], FULL_PATTERN, [1, 1], kernel=(3,), dilation=(4,)),
     None, "ring", "expected at least 4 and 4", "the ring fits dilation 1; with 4 it is too short"),
    ("ring-mirrored", leaky_on([0, 1], [[[0]], [[1]]], [1, 0], kernel=(2,)), None, "ring",
     "expected at least 0 and 1", "K = 2 reads the pixel after; the zero token stands before"),
    ("ring-negative", "wo", put(["ring", 1], [1, -1]), "range", "ring[1][1] is -1",
     "a ring of -1 tokens would cut the image"),
    ("kernel-of-no-taps", "wo", put(["kernel_size"], [5, 0]), "range", "kernel_size[1] is 0",
     "a kernel of size 0 has no taps"),
]  # fmt: skip
# K = 1 where the offsets say three: all that is left of a layer when its kernel is a point.
POINTS = [
    ("point-with-the-heads-of-three", changed(build.leaky_equality(kernel=(3,)),
     update(kernel_size=[1])), None, "offsets", "expected [(0,)]",
     "a kernel of one tap reads one token"),
    ("kernel-larger-than-its-offsets", changed(build.leaky_equality(kernel=(3,)),
     update(kernel_size=[5])), None, "offsets", "expected [(-2,), (-1,), (0,), (1,), (2,)]",
     "the layer of K = 3 under the name of K = 5"),
    ("patch-of-another-layer", "wo", put(["patch_size"], [2, 2]), "pattern", "patch=2",
     "the tokens are 2 × 3 pixels, not 2 × 2"),
]  # fmt: skip
ENTRIES = falsehoods(GEOMETRY + POINTS)
