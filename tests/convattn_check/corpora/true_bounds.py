"""Truths at the edge about numbers of heads, one kernel, two layers and quadratic heads."""

from fractions import Fraction

import certificate_builder as build
from certificate_cases import CASES, changed, put
from head_cases import shared_places, triangular

from corpora.entry import truths, update
from corpora.kernels import lower_bound, one_channel, taps_to_channels

LARGEST = 10**18
PRIME = 2**127 - 1


def one_tap_heads(weight, size=1):
    """S.kernel: one tap that is not zero, so one head and the uniform one."""
    centre = (size - 1) // 2
    unit = [str(int(at == centre)) for at in range(size)]
    body = {
        "kernel_size": [size],
        "patch_size": [1],
        "in_channels": 1,
        "out_channels": 1,
        "kernel": [weight * int(at == centre) for at in range(size)],
        "heads": 2,
        "attention": [[*unit, "1"], ["0"] * size + ["1"]],
        "values": build.sparse([(0, centre, 1), (1, centre, -1)]),
        "rows": [[0, 0, 0, 0]],
        "columns": [[0]],
        "determinant": weight,
        "unread": [1],
        "tokens_per_side": [2],
        "limit": {"combination": ["1" if weight > 0 else "-1"]},
    }
    return build.certificate("S.kernel", "kernel_heads", body)


def scaled_heads(body):
    """Each head's weights times a factor of its own, its values by the inverse."""
    factors = [Fraction(PRIME, 3), Fraction(1, PRIME), Fraction(7)]
    for head, factor in zip(body["attention"], factors, strict=True):
        head[:] = [str(Fraction(weight) * factor) for weight in head]
    for item in body["values"]["entries"]:
        item[2] = str(Fraction(item[2]) / factors[item[0]])


def near(first, second, threshold):
    """S.approx: two taps, each into its own channel; one direction and the uniform head."""
    body = {
        "kernel_size": [2],
        "patch_size": [1],
        "in_channels": 1,
        "out_channels": 2,
        "kernel": [first, 0, 0, second],
        "heads": 2,
        "attention": [["1", "0", "1"], ["0", "0", "1"]],
        "values": build.sparse([(0, 0, 1), (1, 0, -1)]),
        "thresholds": [threshold],
        "error": str(second**2),
    }
    return build.certificate("S.approx", "approximation", body)


def double_eigenvalue(*thresholds):
    """S.approx: G = diag(9, 1, 1)."""
    change = update(kernel=[3, 0, 0, 0, 1, 0, 0, 0, 1], thresholds=[*thresholds], error="2")
    return changed(CASES["two_of_three"], change)


def one_far_map():
    """S.headdim: the taps (0, -2), …, (0, 2) of a row; one of those beside the middle is needed."""
    body = {
        "kernel_size": [1, 5],
        "patch_size": [1, 1],
        "in_channels": 2,
        "out_channels": 2,
        "kernel": [n for tap in range(5) for n in ([1, 0, 0, -2] if tap == 2 else [0, 3, 0, 0])],
        "head_dimension": 1,
        "regime": "finite",
        "rows": [[0, 0, 0, 0, 0, 1]],
        "columns": [[0, -2]],
        "determinant": 3,
        "tokens_per_side": [2, 3],
        "necessary": 4,
        "sufficient": 12,
    }
    return build.certificate("S.headdim", "head_dimension", body)


def more_channels_in():
    """S.headdim: two channels in, one out, patches of three; each tap but the middle reads one."""
    body = {
        "kernel_size": [3],
        "patch_size": [3],
        "in_channels": 2,
        "out_channels": 1,
        "kernel": [0, 3, 1, 4, 0, 5],
        "head_dimension": 1,
        "regime": "limit",
        "rows": [[0, 2, 1, 0], [2, 0, 1, 0]],
        "columns": [[-1], [1]],
        "determinant": 15,
        "tokens_per_side": [2],
        "necessary": 5,
        "sufficient": 5,
    }
    return build.certificate("S.headdim", "head_dimension", body)


def positive_places():
    """With a 1 for all other keys, the last three rows are independent of each of the first two.

    Those differ at the offset 0 alone.
    """
    weights = [(1, 1, 1), (1, 2, 1), (1, 1, 2), (2, 1, 1), (1, 3, 1)]
    held = [[1, 2], [1, 0], [0, 2], [0, 2], [0, 2]]
    return [
        {"weights": list(map(str, row)), "coordinates": places}
        for row, places in zip(weights, held, strict=True)
    ]


LOWER = [
    ("content-two-heads", lower_bound("S.content", (2,), (1,), (1, 2), [1, 0, 0, 1],
     [[0, 0, 0, 0], [0, 0, 0, 1]], [[0], [1]]), "fewer than 2 heads", "the smallest bound"),
    ("content-one-image-channel", one_channel("S.content", (1, 1, 1), (2,)), "fewer than 3 heads",
     "one channel in and out: patches make the rank"),
    ("content-determinant-negative", lower_bound("S.content", (2,), (1,), (1, 2), [0, 1, 1, 0],
     [[0, 0, 0, 0], [0, 0, 0, 1]], [[0], [1]]), "fewer than 2 heads", "the minor is -1"),
    ("content-largest-entries", taps_to_channels("S.content", (3,), scale=LARGEST),
     "fewer than 3 heads", "entries of 10^18: a determinant of 10^54"),
    ("content-far-column", lower_bound("S.content", (64,), (1,), (1, 2), [1, 0] + [0] * 124
     + [0, 1], [[0, 0, 0, 0], [0, 0, 0, 1]], [[-31], [32]]), "on [33] tokens",
     "two taps as far apart as may be"),
    ("content-fewer-than-rank", taps_to_channels("S.content", (3, 3), count=2),
     "fewer than 2 heads", "a bound below the rank is a bound"),
    ("theorem5-two-channels", lower_bound("L21.theorem5", (3, 3), (1, 1), (2, 1), [int(at in (0,
     17)) for at in range(18)], [[0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 1, 0]], [[-1, -1], [1, 1]]),
     "fewer than 2 heads", "D_in·D_out = 2, far below K²"),
    ("theorem5-K1x3", taps_to_channels("L21.theorem5", (1, 3)), "fewer than 3 heads",
     "a row of three taps"),
    ("theorem6-P2", one_channel("L21.theorem6", (1, 1, 1), (2, 2)), "fewer than 9 heads",
     "the smallest patches"),
    ("theorem6-K-is-2P-and-1", one_channel("L21.theorem6", (1, 1, 1), (2, 2), size=(5, 5)),
     "5x5 kernel", "K = 2P + 1, with zeros around a box"),
    ("theorem6-P64", one_channel("L21.theorem6", (1, 1, 1), (64, 64)), "patch (64, 64)",
     "the largest patches"),
    ("heads-K3", taps_to_channels("S.heads", (3,)), "fewer than 3 heads", "a line of three taps"),
    ("heads-one-axis-patches", one_channel("S.heads", (2, 3, 5), (3,)), "fewer than 3 heads",
     "one channel on patches of three"),
    ("depth-K3-line", taps_to_channels("S.depth", (3,)), "fewer than 3 heads", "on a line"),
    ("rows-in-another-order", changed(taps_to_channels("S.content", (3,)), lambda body: (
     body["rows"].reverse(), body.update(determinant=-1))), "fewer than 3 heads",
     "rows in falling order, the sign with them"),
]  # fmt: skip
DIMENSION = [
    ("limit-d1", triangular(dimension=1),
     "limits of layers with bounded value maps, of heads of dimension 1 take at least 6",
     "heads of dimension 1"),
    ("limit-d2", triangular(dimension=2), "4 suffice", "necessary and sufficient alike"),
    ("finite-d1", triangular("finite", dimension=1),
     "layers with finite scores of heads of dimension 1 take", "where 2R/d_H is the larger bound"),
    ("limit-P64", triangular(patch=64, dimension=127), "patch (64,)",
     "the widest patch, one dimension below its width"),
    ("finite-K5-P2", triangular("finite", dimension=3, patch=2, size=3), "on [3] tokens",
     "the smallest image with a token out of reach"),
    ("finite-K1x5", one_far_map(), "on [2, 3] tokens", "a token out of reach on the first axis"),
    ("limit-more-channels-in", more_channels_in(), "5 suffice",
     "a map that is wider in what it reads than in what it writes"),
]  # fmt: skip
NARROW = [
    ("finite-denominators", changed(CASES["places"], put(["heads", 2, "weights", 2],
     f"{PRIME}/{PRIME + 1}")), "5 heads of dimension 2", "a weight of 39 digits above and below"),
    ("finite-tiny-weight", changed(CASES["places"], put(["heads", 2, "weights", 2],
     f"1/{10**100}")), "exactly", "a weight of 10^-100 is a weight"),
    ("finite-positive-weights", changed(CASES["places"], put(["heads"], positive_places())),
     "5 heads of dimension 2", "every head has a weight of its own on every offset"),
    ("limit", shared_places("limit"), "to any accuracy", "the limit, whose values grow"),
    ("limit-by-output", shared_places("limit", channels=(2, 1)), "2 channels in and 1 out",
     "fewer channels out than in"),
    ("one-channel", changed(CASES["places"], update(in_channels=1, out_channels=1)),
     "1 channels in and 1 out", "one channel"),
]  # fmt: skip
HEADS = [
    ("one-tap", one_tap_heads(5), "2 heads at finite scores", "K = 1: rank 1"),
    ("one-tap-negative", one_tap_heads(-5), "exactly 1, with value maps",
     "a negative tap: the combination is -1"),
    ("one-tap-largest", one_tap_heads(LARGEST), "2 heads", "an entry of 10^18"),
    ("zeros-around-a-tap", one_tap_heads(3, 5), "on [2] tokens",
     "K = 5 with one tap: the unread shift is among the offsets, and not the furthest"),
    ("scaled-heads", changed(CASES["two_masks"], scaled_heads), "3 heads",
     "weights and values with the factors (2^127 - 1)/3 and its like"),
    ("unread-far-away", changed(CASES["two_masks"], update(unread=[-4096],
     tokens_per_side=[4097])), "on [4097] tokens", "the unread shift may be far away"),
    ("combination-scaled", changed(CASES["two_masks"], put(["limit", "combination"],
     [f"1/{PRIME}", "0"])), "exactly 2", "a multiple of 1/(2^127 - 1)"),
    ("positive-scaled", changed(CASES["mixed_sign"], put(["limit", "positive"],
     [f"1/{PRIME}", "9", f"1/{PRIME}"])), "exactly 2", "z = (1, 9·p, 1)/p"),
]  # fmt: skip
NEAR = [
    ("smallest", near(2, 1, "9999999/10000000"), "no 1 heads without content come nearer than",
     "two offsets, two heads"),
    ("threshold-at-the-slack", near(2, 1, "1000000/1000001"), "within 1.000000",
     "the bound is one part in a million below the error, exactly"),
    ("equal-eigenvalues", near(1, 1, "9999999/10000000"), "within 1.000000",
     "G = I: its two eigenvalues are equal"),
    ("unequal-thresholds", double_eigenvalue("9999999/10000000", "4999999/5000000"),
     "within 2.000000", "two thresholds below one double eigenvalue"),
    ("equal-thresholds", double_eigenvalue("9999999/10000000", "9999999/10000000"),
     "within 2.000000", "the same threshold twice, below a double eigenvalue"),
    ("large-error", near(10**9, 10**8, f"{10**16 - 1}"), f"within {10**16}.000000",
     "an error of 10^16"),
]  # fmt: skip
LAYERS = [
    ("K1x2-limit", build.two_layers((1, 2), (1, 1), (1, 2), "0"), "1 and 2 heads",
     "one head, then two"),
    ("K1x2", build.two_layers((1, 2), (1, 1), (1, 2), "1/2"), "1 and 3 heads", "at finite scores"),
    ("K2x1", build.two_layers((2, 1), (1, 1), (2, 1), "1/2"), "2 and 2 heads",
     "an even kernel along the first axis"),
    ("K3x1-one-column", build.two_layers((3, 1), (1, 1), (2, 1), "1/3"), "2 x 1 tokens",
     "the smallest image that the offsets fit into"),
    ("K3x3-P5", build.two_layers((3, 3), (5, 5), (2, 2), "0"), "patch (5, 5)", "patches"),
    ("leak-near-one", build.two_layers((1, 2), (1, 1), (1, 2), f"{PRIME - 1}/{PRIME}"),
     "finite scores", "a leak of 1 - 2^-127"),
    ("leak-tiny", build.two_layers((2, 2), (1, 1), (2, 2), f"1/{PRIME}"), "finite scores",
     "a leak of 2^-127"),
    ("margin-narrow", build.two_layers((2, 2), (1, 1), (2, 2), "1/2", narrow=True), "2 x 2 tokens",
     "a margin as narrow as the reach"),
]  # fmt: skip
BARRIER = [
    ("one-head", build.exponentials(1, 1, 2), "no 1 quadratic heads", "two tokens, K = 1"),
    ("one-head-patches", build.exponentials(3, 64, 3), "patch 64", "the largest patch"),
    ("four-heads", build.exponentials(3, 1, 6), "no 4 quadratic heads", "six tokens"),
    ("K63", build.exponentials(63, 1, 33), "no 1 quadratic heads", "one key out of reach"),
]  # fmt: skip
ENTRIES = truths(LOWER + DIMENSION + NARROW + HEADS + NEAR + LAYERS + BARRIER)
