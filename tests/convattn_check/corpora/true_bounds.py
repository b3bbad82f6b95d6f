"""Truths at the edge about numbers of heads, one kernel, two layers and quadratic heads."""

from fractions import Fraction

import certificate_builder as build
from certificate_cases import CASES, changed, put, update
from kernel_cases import (
    approximation,
    convolution,
    dimensioned,
    kernel_heads,
    lower_bound,
    minor,
    one_channel,
    shared_places,
    taps_to_channels,
    triangular,
)

from corpora.entry import altered, named

LARGEST = 10**18
PRIME = 2**127 - 1


def one_tap_heads(weight, size=1):
    """S.kernel: one tap that is not zero, so one head and the uniform one."""
    centre = (size - 1) // 2
    unit = [int(at == centre) for at in range(size)]
    fields = minor((size,), (1,), (1, 1), [weight * x for x in unit], [[0, 0, 0, 0]], [[0]])
    attention, values = [[*unit, 1], [0] * size + [1]], [(0, centre, 1), (1, centre, -1)]
    sign = 1 if weight > 0 else -1
    return kernel_heads("S.kernel", fields, attention, values, [1], [2], combination=[sign])


def scaled_heads(body):
    """Each head's weights times a factor of its own, its values by the inverse."""
    factors = [Fraction(PRIME, 3), Fraction(1, PRIME), Fraction(7)]
    for head, factor in zip(body["attention"], factors, strict=True):
        head[:] = [str(Fraction(weight) * factor) for weight in head]
    for item in body["values"]["entries"]:
        item[2] = str(Fraction(item[2]) / factors[item[0]])


def near(first, second, threshold):
    """S.approx: two taps, each into its own channel; one direction and the uniform head."""
    fields = convolution((2,), (1,), (1, 2), [first, 0, 0, second])
    attention, values = [(1, 0, 1), (0, 0, 1)], [(0, 0, 1), (1, 0, -1)]
    return approximation(fields, attention, values, [threshold], second**2)


def double_eigenvalue(*thresholds):
    """S.approx: G = diag(9, 1, 1)."""
    change = update(kernel=[3, 0, 0, 0, 1, 0, 0, 0, 1], thresholds=[*thresholds], error="2")
    return changed(CASES["two_of_three"], change)


def one_far_map():
    """The taps (0, -2), …, (0, 2) of a row; one of those beside the middle is needed."""
    kernel = [n for tap in range(5) for n in ([1, 0, 0, -2] if tap == 2 else [0, 3, 0, 0])]
    fields = minor((1, 5), (1, 1), (2, 2), kernel, [[0, 0, 0, 0, 0, 1]], [[0, -2]])
    return dimensioned(fields, 1, "finite", [2, 3], 4, 12)


def more_channels_in():
    """Two channels in, one out, patches of three; each tap but the middle reads one."""
    rows = [[0, 2, 1, 0], [2, 0, 1, 0]]
    fields = minor((3,), (3,), (2, 1), [0, 3, 1, 4, 0, 5], rows, [[-1], [1]])
    return dimensioned(fields, 1, "limit", [2], 5, 5)


def positive_places():
    """With a 1 for all other keys, the last three rows are independent of each of the first two.

    Those differ at the offset 0 alone.
    """
    weights = [(1, 1, 1), (1, 2, 1), (1, 1, 2), (2, 1, 1), (1, 3, 1)]
    coordinates = [[1, 2], [1, 0], [0, 2], [0, 2], [0, 2]]
    return [
        {"weights": list(map(str, row)), "coordinates": places}
        for row, places in zip(weights, coordinates, strict=True)
    ]


def two_outputs(size, kernel):
    """S.content: two outputs, of which the first reads the first tap, and the second the last."""
    taps = [[-((size - 1) // 2)], [size // 2]]
    rows = [[0, 0, 0, 0], [0, 0, 0, 1]]
    return lower_bound("S.content", (size,), (1,), (1, 2), kernel, rows, taps)


LOWER = {
    "content-two-heads": two_outputs(2, [1, 0, 0, 1]),
    "content-one-image-channel": one_channel("S.content", (1, 1, 1), (2,)),
    "content-determinant-negative": two_outputs(2, [0, 1, 1, 0]),
    "content-largest-entries": taps_to_channels("S.content", (3,), scale=LARGEST),
    "content-far-column": two_outputs(64, [1, 0] + [0] * 124 + [0, 1]),
    "content-fewer-than-rank": taps_to_channels("S.content", (3, 3), count=2),
    "theorem5-two-channels": lower_bound(
        "L21.theorem5",
        (3, 3),
        (1, 1),
        (2, 1),
        [int(at in (0, 17)) for at in range(18)],
        [[0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 1, 0]],
        [[-1, -1], [1, 1]],
    ),
    "theorem5-K1x3": taps_to_channels("L21.theorem5", (1, 3)),
    "theorem6-P2": one_channel("L21.theorem6", (1, 1, 1), (2, 2)),
    "theorem6-K-is-2P-and-1": one_channel("L21.theorem6", (1, 1, 1), (2, 2), size=(5, 5)),
    "theorem6-P64": one_channel("L21.theorem6", (1, 1, 1), (64, 64)),
    "heads-K3": taps_to_channels("S.heads", (3,)),
    "heads-one-axis-patches": one_channel("S.heads", (2, 3, 5), (3,)),
    "depth-K3-line": taps_to_channels("S.depth", (3,)),
    "rows-in-another-order": changed(
        taps_to_channels("S.content", (3,)),
        lambda body: (body["rows"].reverse(), body.update(determinant=-1)),
    ),
}
DIMENSION = {
    "limit-d1": triangular(dimension=1),
    "limit-d2": triangular(dimension=2),
    "finite-d1": triangular("finite", dimension=1),
    "limit-P64": triangular(patch=64, dimension=127),
    "finite-K5-P2": triangular("finite", dimension=3, patch=2, size=3),
    "finite-K1x5": one_far_map(),
    "limit-more-channels-in": more_channels_in(),
}
NARROW = {
    "limit": shared_places("limit"),
    "limit-by-output": shared_places("limit", channels=(2, 1)),
}
HEADS = {
    "one-tap": one_tap_heads(5),
    "one-tap-negative": one_tap_heads(-5),
    "one-tap-largest": one_tap_heads(LARGEST),
    "zeros-around-a-tap": one_tap_heads(3, 5),
}
NEAR = {
    "smallest": near(2, 1, "9999999/10000000"),
    "threshold-at-the-slack": near(2, 1, "1000000/1000001"),
    "equal-eigenvalues": near(1, 1, "9999999/10000000"),
    "unequal-thresholds": double_eigenvalue("9999999/10000000", "4999999/5000000"),
    "equal-thresholds": double_eigenvalue("9999999/10000000", "9999999/10000000"),
    "large-error": near(10**9, 10**8, f"{10**16 - 1}"),
}
LAYERS = {
    "K1x2-limit": build.two_layers((1, 2), (1, 1), (1, 2), "0"),
    "K1x2": build.two_layers((1, 2), (1, 1), (1, 2), "1/2"),
    "K2x1": build.two_layers((2, 1), (1, 1), (2, 1), "1/2"),
    "K3x1-one-column": build.two_layers((3, 1), (1, 1), (2, 1), "1/3"),
    "K3x3-P5": build.two_layers((3, 3), (5, 5), (2, 2), "0"),
    "leak-near-one": build.two_layers((1, 2), (1, 1), (1, 2), f"{PRIME - 1}/{PRIME}"),
    "leak-tiny": build.two_layers((2, 2), (1, 1), (2, 2), f"1/{PRIME}"),
    "margin-narrow": build.two_layers((2, 2), (1, 1), (2, 2), "1/2", narrow=True),
}
BARRIER = {
    "one-head": build.exponentials(1, 1, 2),
    "one-head-patches": build.exponentials(3, 64, 3),
    "four-heads": build.exponentials(3, 1, 6),
    "K63": build.exponentials(63, 1, 33),
}
CHANGES = {
    "places": {
        "finite-denominators": put(["heads", 2, "weights", 2], f"{PRIME}/{PRIME + 1}"),
        "finite-tiny-weight": put(["heads", 2, "weights", 2], f"1/{10**100}"),
        "finite-positive-weights": put(["heads"], positive_places()),
        "one-channel": update(in_channels=1, out_channels=1),
    },
    "two_masks": {
        "scaled-heads": scaled_heads,
        "unread-far-away": update(unread=[-4096], tokens_per_side=[4097]),
        "combination-scaled": put(["limit", "combination"], [f"1/{PRIME}", "0"]),
    },
    "mixed_sign": {
        "positive-scaled": put(["limit", "positive"], [f"1/{PRIME}", "9", f"1/{PRIME}"])
    },
}
CERTIFICATES = altered(CHANGES) | named(LOWER, DIMENSION, NARROW, HEADS, NEAR, LAYERS, BARRIER)
