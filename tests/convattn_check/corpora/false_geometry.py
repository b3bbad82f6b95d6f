"""Falsehoods about the tokens that a convolution reads, the taps between them, and its ring."""

import certificate_builder as build
from certificate_builder import axis_pattern
from certificate_cases import changed, drop, put, swap, update

from corpora.entry import altered, named


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
    body["pattern"][0] = [rows[1::2] for rows in axis_pattern(3, 4)]


FIVE, NONE = [-2, -1, 0, 1, 2], [[-1, -1]] * 2
GAPS_FILLED = [[[0]], [[-1]], [[1]], [[-1]], [[2]]]
FULL_PATTERN = [[[0]], [[1]], [[2]]]
GEOMETRY = {
    "even-kernel-mirrored": leaky_on([-1, 0], [[[0]], [[1]]], [1, 0], kernel=(2,)),
    "offsets-truncated": leaky_on([0, 1], axis_pattern(5, 3)[1:], [0, 1], kernel=(5,), patch=(3,)),
    "reach-rounded-down": leaky_on(
        [-1, 0, 1], axis_pattern(9, 3)[1:-1], [1, 1], kernel=(9,), patch=(3,)
    ),
    "offsets-of-pixels": leaky_on(
        FIVE, [NONE, *axis_pattern(5, 2), NONE], [2, 2], kernel=(5,), patch=(2,)
    ),
    "dilation-forgotten": leaky_on([-1, 0, 1], FULL_PATTERN, [1, 1], kernel=(3,), dilation=(2,)),
    "dilation-gaps-filled": leaky_on(FIVE, GAPS_FILLED, [2, 2], kernel=(3,), dilation=(2,)),
    "ring-undilated": leaky_on([-4, 0, 4], FULL_PATTERN, [1, 1], kernel=(3,), dilation=(4,)),
    "ring-mirrored": leaky_on([0, 1], [[[0]], [[1]]], [1, 0], kernel=(2,)),
}
THREE = build.leaky_equality(kernel=(3,))
POINTS = {
    # K = 1 where the offsets say three: what is left of a layer when its kernel is a point.
    "point-with-the-heads-of-three": changed(THREE, update(kernel_size=[1])),
    "kernel-larger-than-its-offsets": changed(THREE, update(kernel_size=[5])),
}
CHANGES = {
    "wo": {
        "offset-missing": drop(["offsets", 0]),
        "offset-off-by-one": put(["offsets", 0], [-1, -2]),
        "offset-repeated": put(["offsets", 1], [-1, -1]),
        "offsets-column-major": swap(["offsets"], 1, 3),
        "tap-swapped": swap(["pattern", 0, 0, 0], 0, 1),
        "tap-missing": put(["pattern", 1, 1, 1, 1], -1),
        "tap-too-many": put(["pattern", 0, 0, 1, 0], 0),
        "pattern-transposed": transposed,
        "kernel-flipped": flipped,
        "axes-exchanged": swap(["pattern"], 0, 1),
        "ring-short-before": put(["ring", 0], [0, 1]),
        "ring-short-after": put(["ring", 1], [1, 0]),
        "ring-negative": put(["ring", 1], [1, -1]),
        "kernel-of-no-taps": put(["kernel_size"], [5, 0]),
        "patch-of-another-layer": put(["patch_size"], [2, 2]),
    },
    "stride_tokens": {
        "stride-wrong-phase": odd_outputs,
        "stride-keeps-all": put(["pattern", 0], axis_pattern(3, 4)),
        "route-exchanged": put(["stride_route"], "subsample"),
        "stride-does-not-divide": put(["stride"], [3, 2]),
    },
}
CERTIFICATES = altered(CHANGES) | named(GEOMETRY, POINTS)
