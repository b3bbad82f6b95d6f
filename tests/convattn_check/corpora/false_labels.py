"""True statements under a claim that says more: each demand of each claim has one that lacks it.

The mathematics of those with the fault "label" is right: without the demands of `claims.py` they
would be accepted.
"""

from itertools import product
from math import prod

import certificate_builder as build
from certificate_cases import CASES, all_at_once, changed, put, swap, update
from kernel_cases import (
    border,
    lower_bound,
    narrow_heads,
    one_channel,
    taps_to_channels,
    triangular,
    turned_box,
    turned_tap,
)

from corpora.entry import named


def one_tap(claim, size):
    """One channel, the kernel of ones: one head is necessary."""
    axes = len(size)
    row, column = [0] * (2 * axes + 2), [0] * axes
    return lower_bound(claim, size, (1,) * axes, (1, 1), [1] * prod(size), [row], [column])


def relabelled(name, claim):
    return build.sealed(CASES[name] | {"claim": claim})


def without_the_last(body):
    """A minor of one order less, for one head less."""
    del body["rows"][-1], body["columns"][-1]
    body["heads"] -= 1


def tiles_in_a_wider_kernel(body):
    """K = 11 and P = 2: the 9 x 9 taps, with zeros around them."""
    body["kernel_size"], taps = [11, 11], body["kernel"]
    body["kernel"] = [0] * (11 * 11 * 2)
    for row in range(9):
        start = ((row + 1) * 11 + 1) * 2
        body["kernel"][start : start + 18] = taps[row * 18 : row * 18 + 18]


def tiles_of_one_channel():
    """K = 9 and P = 2: what the first of the two channels reads."""
    body = CASES["tile_bound"]["body"]
    rows, columns = body["rows"][:9], body["columns"][:9]
    return lower_bound("S.tiles", (9, 9), (2, 2), (1, 1), body["kernel"][::2], rows, columns)


def box_beside_an_empty_channel(body):
    """K = 5 and P = 2: K = 2Pm + 1 with m = 1."""
    body["kernel"] = [entry for tap in body["kernel"] for entry in (tap, 0)]
    body["in_channels"] = 2


def middles_of_tokens():
    """K = 13 and P = 3: K = 2Pm + 1 with m = 2; a channel for each offset, read without a shift."""
    columns = list(product((-2, -1, 0, 1, 2), repeat=2))
    kernel = [0] * (13 * 13 * 25)
    for channel, (a, b) in enumerate(columns):
        kernel[((3 * a + 6) * 13 + 3 * b + 6) * 25 + channel] = 1
    rows = [[0, 0, 0, 0, channel, 0] for channel in range(25)]
    return lower_bound("S.tiles", (13, 13), (3, 3), (25, 1), kernel, rows, columns)


def one_layer_that_copies(body):
    """Layer 1 passes on, and layer 2 has a head for each of the nine offsets."""
    body["blocks"], body["leak"] = 1, "0"
    body["first"] = {"ring": [[0, 0], [0, 0]], "targets": [[0, 0]], "maps": [["1"]]}
    body["second"] = {
        "targets": [list(offset) for offset in product((-1, 0, 1), repeat=2)],
        "maps": [[head, 0, head, "1"] for head in range(9)],
    }


def uniform_head_alone(body):
    """One head that errs by all of the kernel, and by no more than it must."""
    thresholds = ["8999999/1000000", "3999999/1000000", "999999/1000000"]
    body.update(heads=1, attention=[["0", "0", "0", "1"]], error="14", thresholds=thresholds)
    body["values"]["entries"] = []


def even_dimension():
    """K = 2: one offset but 0, so one head and those for the rank."""
    certificate = triangular(size=2)
    body = certificate["body"]
    body |= {"rows": [[1, 0, 0, 1]], "columns": [[1]], "determinant": 4, "necessary": 3}
    return build.sealed(certificate)


def pixel_heads_of(size, claim="C20.lemma3"):
    """Two pixels and two heads that attend to one each: they span what K = 2 and K = 3 read."""
    unit = [["1", "0"], ["0", "1"]]
    inclusion = [unit, unit[1:] if size == 2 else unit]
    change = update(kernel_size=[size], inclusion=inclusion)
    return build.sealed(changed(CASES["pixel_heads"], change) | {"claim": claim})


def in_the_limit(size, dimension, *heads):
    """S.width, one channel in and out."""
    return narrow_heads(size, (1, 1), dimension, "limit", *heads)


def one_head_more(body):
    body["heads"].append(body["heads"][0])
    body["count"] += 1


def eight_of_nine(body):
    """The minor of the first eight rows and columns is singular; two others change places first."""
    swap(["columns"], 2, 8)(body)
    swap(["rows"], 0, 8)(body)
    without_the_last(body)


TWO = [(0, 0), (1, 1)]
LONG = (1, 1, 1, 2)  # the minor of its three offsets with P = 2 is 1
LACKING = {
    ("L21.theorem5", "image"): taps_to_channels("L21.theorem5", (9,)),
    ("L21.theorem5", "pixels"): taps_to_channels("L21.theorem5", (3, 3), (1, 2)),
    ("L21.theorem5", "odd"): taps_to_channels("L21.theorem5", (2, 3)),
    ("L21.theorem5", "full"): taps_to_channels("L21.theorem5", (3, 3), count=8),
    ("L21.theorem5", "several"): one_tap("L21.theorem5", (3, 3)),
    ("L21.theorem6", "image"): one_channel("L21.theorem6", (1, 1, 1), (2,)),
    ("L21.theorem6", "square"): one_channel("L21.theorem6", (1, 1, 1), (3, 2)),
    ("L21.theorem6", "patches"): taps_to_channels("L21.theorem6", (3, 3)),
    ("L21.theorem6", "odd"): one_channel("L21.theorem6", LONG, (2, 2)),
    ("L21.theorem6", "small"): one_channel("L21.theorem6", (1, 1, 1), (2, 2), size=(7, 7)),
    ("L21.theorem6", "nine"): one_channel("L21.theorem6", (1, 2, 3), (2, 2), chosen=range(1, 9)),
    ("S.content", "several"): one_tap("S.content", (3, 3)),
    ("S.heads", "square"): taps_to_channels("S.heads", (3, 1)),
    ("S.heads", "odd"): taps_to_channels("S.heads", (2,)),
    ("S.heads", "generic"): taps_to_channels("S.heads", (3,), count=2),
    ("S.heads", "several"): one_tap("S.heads", (1,)),
    ("S.depth", "square"): taps_to_channels("S.depth", (3, 3), (1, 2)),
    ("S.depth", "odd"): taps_to_channels("S.depth", (2, 2)),
    ("S.depth", "generic"): taps_to_channels("S.depth", (3, 3), count=8),
    ("S.depth", "several"): one_tap("S.depth", (3, 3)),
    ("S.depth", "wide"): one_tap("S.depth", (1, 1)),
    ("S.tiles", "image"): relabelled("line_bound", "S.tiles"),
    ("S.tiles", "square"): one_channel("S.tiles", (1, 1, 1), (2, 4)),
    ("S.tiles", "odd"): one_channel("S.tiles", LONG, (2, 2)),
    ("S.tiles", "tiles"): one_channel("S.tiles", (1, 1, 1), (2, 2)),
    ("S.tiles", "tiles", "K11"): changed(CASES["tile_bound"], tiles_in_a_wider_kernel),
    ("S.tiles", "tiles", "one-channel"): tiles_of_one_channel(),
    ("S.tiles", "tiles", "pixels"): taps_to_channels("S.tiles", (3, 3)),
    ("S.tiles", "tiles", "m-below-P"): changed(
        one_channel("S.tiles", (1, 1, 1), (2, 2), size=(5, 5)), box_beside_an_empty_channel
    ),
    ("S.tiles", "tiles", "m2-P3"): middles_of_tokens(),
    ("S.tiles", "generic"): changed(CASES["tile_bound"], without_the_last),
    ("S.depth", "composed"): changed(
        CASES["two_layers"], lambda body: body["second"]["targets"].append(None)
    ),
    ("S.depth", "composed", "behind-one"): changed(CASES["two_layers"], one_layer_that_copies),
    ("S.depth", "room"): build.two_layers(image=(1, 4)),
    ("S.depth", "room", "by-far"): build.two_layers((1, 5), (1, 1), (1, 1), "0"),
    ("S.depth", "wide", "of-two-layers"): build.two_layers((1, 1)),
    ("S.barrier", "odd"): build.exponentials(2),
    ("S.barrier", "below"): changed(CASES["exponentials"], put(["heads"], 2)),
    ("S.headdim", "odd"): even_dimension(),
    ("S.headdim", "narrow"): triangular(dimension=4),
    ("S.headdim", "narrow", "wider"): triangular(dimension=5),
    ("S.width", "odd"): in_the_limit(2, 2, (["0", "1"], [0, 1]), (["0", "0"], [0, 2])),
    ("S.width", "wide"): in_the_limit(1, 2, (["0"], [0, 1]), (["0"], [2])),
    ("S.width", "narrow"): in_the_limit(
        3, 3, *((list(w), [0, 1, 2]) for w in ("100", "001", "000"))
    ),
    ("S.width", "shared"): changed(CASES["places"], one_head_more),
    ("S.width", "shared", "seven"): changed(CASES["places"], all_at_once(*[one_head_more] * 2)),
    ("S.group", "lifted"): turned_tap([(0, 0), (0, 1), (1, 0), (1, 1)]),
    ("S.group", "orbits"): turned_box(),
    ("S.approx", "several"): changed(CASES["two_of_three"], uniform_head_alone),
    ("S.lemma3", "odd"): pixel_heads_of(2, "S.lemma3"),
    ("S.lemma3", "spanning"): pixel_heads_of(3, "S.lemma3"),
    ("C20.lemma3", "odd"): pixel_heads_of(2),
    ("C20.lemma3", "spanning"): pixel_heads_of(3),
    ("C20.alpha46", "float32"): build.saturation(45, -126),
    ("C20.padding", "image"): border("C20.padding", (3,), (5,), [(0,), (2,)]),
    ("C20.padding", "odd"): border("C20.padding", (3, 2), (4, 4), TWO),
    ("C20.padding", "pixels"): border("C20.padding", (3, 3), (4, 4), TWO, patch=(2, 1)),
    ("C20.theorem1", "image"): border("C20.theorem1", (3,), (5,), [(0,), (2,)]),
    ("C20.theorem1", "odd"): border("C20.theorem1", (2, 1), (4, 4), [(0, 0), (3, 0)]),
    ("C20.theorem1", "pixels"): border(
        "C20.theorem1", (3, 3), (4, 4), [(0, 0), (0, 1)], patch=(2, 2)
    ),
    ("L21.theorem1", "image"): border("L21.theorem1", (3,), (6,), [(0,), (1,)], patch=(2,)),
    ("L21.theorem1", "odd"): border("L21.theorem1", (3, 2), (4, 4), TWO),
    ("A19.equivariance", "several-nodes"): build.commutant((1,)),
    ("A19.equivariance", "unit-shifts"): build.commutant((3,), "torus", [[1]]),
    ("A19.equivariance", "commutant"): build.commutant((3,), "bare", [[1]]),
    ("C20.alpha46", "float32", "below-149"): build.saturation(46, -150),
    ("C20.alpha46", "float32", "alpha-two"): build.saturation(2, -126),
    ("C20.alpha46", "float32", "vanishes"): build.saturation(90, -125, "vanishes"),
    ("A19.equivariance", "unit-shifts", "and-more"): build.commutant(
        (3,), "bare", [[1], [-1], [2]]
    ),
    ("A19.equivariance", "commutant", "of-an-axis"): build.commutant(
        (2, 3), "bare", [[0, 1], [0, -1]]
    ),
    # What cannot even be written for the demand to decide: nothing follows.
    ("S.kernel", "several"): changed(CASES["mixed_sign"], put(["heads"], 1)),
    ("S.headdim", "wide"): changed(
        CASES["narrow_heads"], update(kernel_size=[1], kernel=[1, 4, 0, 2])
    ),
    **{
        (claim, "wide"): border(claim, (1, 1), (4, 4), TWO)
        for claim in ("C20.padding", "C20.theorem1", "L21.theorem1")
    },
}
# Certificates of kinds that do not bear on the claim.
STRANGERS = {
    "pixel_bound": "C20.theorem1",
    "theorem1": "L21.theorem5",
    "survives": "S.saturation",
    "border": "C20.stride",
    "rank": "C20.lemma3",
    "pixel_heads": "C20.lemma1",
    "two_of_three": "S.kernel",
    "two_masks": "S.approx",
    "places": "S.headdim",
    "narrow_heads": "S.width",
    "two_layers": "S.barrier",
    "exponentials": "S.depth",
    "quadratic_variation": "C20.alpha46",
    "commutant_line": "A19.mixed",
    "A19.orders-orders": "A19.equivariance",
}
RELABELLED = {
    f"{CASES[name]['claim']}-as-{claim}": relabelled(name, claim)
    for name, claim in STRANGERS.items()
}
CERTIFICATES = named(LACKING, RELABELLED)
