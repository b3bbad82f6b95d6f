"""Truths at the edge about maps, ranks, weights, borders, what commutes, and identities."""

from fractions import Fraction
from math import factorial

import certificate_builder as build
from certificate_cases import CASES, changed, put
from identity_cases import IDENTITIES

from corpora.entry import truths, update
from corpora.false_identities import LINE, grid, image, of
from corpora.kernels import border

LARGEST = 10**18
PRIME = 2**127 - 1


def same_heads(count):
    """Repeating heads changes neither the spans nor that there is no map."""

    def change(body):
        body["heads"] += [body["heads"][0]] * count
        body["inclusion"] = [[[*row, *["0"] * count] for row in rows] for rows in body["inclusion"]]

    return change


def long_head(body):
    body["heads"].append({"rows": [[f"1/{PRIME}", f"{PRIME - 1}/{PRIME}"]] * 2})
    body["inclusion"] = [[[*row, "0"] for row in rows] for rows in body["inclusion"]]


def other_tap(body):
    """The tap 1 of the heads that attend to the nearest pixel: the mirror image of the tap -1."""
    body["tap"] = 1
    body["separator"] = ["0", "0", "0", "0", "1", "1", "0", "0", "-1"]


def rank(inputs, dimension, outputs, entry=1):
    value = [[entry * int(i == j) for j in range(dimension)] for i in range(inputs)]
    output = [[entry * int(i == j) for j in range(outputs)] for i in range(dimension)]
    body = {
        "head_dimension": dimension,
        "out_channels": outputs,
        "in_channels": inputs,
        "value": value,
        "output": output,
        "rank": min(inputs, dimension),
    }
    return build.certificate("C20.rank", "rank", body)


def quadratic(alpha, terms, digits, axes=1, squares=1, times=None):
    """The least bounds of so many digits that follow from the series; r may be times 1/series."""
    unit, series = 10**digits, build.series_of_exponential(alpha, terms)
    power = times / series if times else Fraction(int(unit / series) + 1, unit)
    theta = 1 + 2 * sum(power ** (n * n) for n in range(1, squares + 1))
    theta += 2 * power ** ((squares + 1) ** 2) / (1 - power)
    bound = Fraction(int((1 - theta**-axes) * unit) + 1, unit)
    change = update(
        sharpness=str(Fraction(alpha)), terms=terms, power=str(power), bound=str(bound), axes=axes,
        squares=squares,
    )  # fmt: skip
    return changed(CASES["quadratic_variation"], change)


def even_commutant():
    return build.commutant((2,), "torus", [[1], [-1]])


def all_two(name):
    """The identity with every free index as small as may be."""
    body = IDENTITIES[name]["body"]

    def change(body):
        for letter in free:
            body["sizes"][letter] = 2
        for letter, parts in products.items():
            size = 1
            for part in parts:
                size *= body["sizes"][part]
            body["sizes"][letter] = size

    products = PRODUCTS.get(name, {})
    free = [letter for letter in body["sizes"] if letter not in products]
    return changed(IDENTITIES[name], change)


PRODUCTS = {
    "A19.mixed-rank": {"e": "krg"},
    "A19.prop2-every_map": {"k": "mn", "l": "mn"},
    "A19.prop3-composition": {"h": "kl"},
    "A19.reductions-grouped": {"w": "gp", "z": "gq"},
    "A19.transformer-output": {"e": "kd"},
    "B19.sa2d-heads": {"e": "co"},
    "B19.msac-scales": {"e": "lo"},
}
SMALL = (
    "A19.mixed-rank", "A19.prop2-linear_map", "A19.prop2-every_map", "A19.prop3-composition",
    "A19.reductions-grouped", "A19.reductions-depthwise", "A19.reductions-controlled",
    "A19.orders-orders", "A19.biaffine-forms", "A19.gat-redundant", "A19.transformer-key_query",
    "A19.transformer-output", "B19.sa2d-heads", "B19.msac-scales", "S.separable-separable",
    "S.separable-layer",
)  # fmt: skip
MAPS = [
    ("three-heads", changed(CASES["pixel_heads"], same_heads(1)), "3 heads", "a head twice"),
    ("many-heads", changed(CASES["pixel_heads"], same_heads(30)), "32 heads", "32 heads, K = 1"),
    ("long-weights", changed(CASES["pixel_heads"], long_head), "3 heads",
     "a third head, alike at both pixels, whose weights have 39 digits"),
    ("relative-denominators", CASES["relative_heads"], "with finite scores",
     "weights of ninths, at finite scores"),
    ("rows-of-positive-weights", changed(CASES["relative_heads"], put(["heads"], [
     {"rows": [["1/2", "1/2"], ["1/10", "9/10"]]}, {"rows": [["9/10", "1/10"], ["1/2", "1/2"]]}])),
     "with finite scores", "rows that no weight of the shifts is given for, all of them positive"),
    ("tap-at-the-end", changed(CASES["hard_heads"], other_tap), "the one tap 1",
     "the other end of the kernel"),
    ("separator-scaled", changed(CASES["pixel_heads"], put(["separator"],
     [f"1/{PRIME}", "0", f"-1/{PRIME}", "0"])), "2 heads", "a separator of size 2^-127"),
]  # fmt: skip
RANKS = [
    ("one-dimension", rank(1, 1, 3), "rank 1 over the reals", "D_h = 1, one channel in"),
    ("widest", rank(1, 1, 64), "not D_out - D_h = 63", "D_out as large as may be"),
    ("one-below-its-output", rank(3, 2, 3), "not D_out - D_h = 1", "D_h = D_out - 1"),
    ("few-channels-in", rank(1, 3, 5), "the rank 1", "D_in below D_h: the rank is D_in"),
    ("largest-entries", rank(2, 2, 3, LARGEST), "the rank 2", "entries of 10^18"),
]  # fmt: skip
WEIGHTS = [
    ("survives-smallest-normal", build.saturation(86, -126), "above 2^-126",
     "the largest alpha that is shown to survive above 2^-126"),
    ("vanishes-smallest-normal", build.saturation(88, -126, "vanishes"), "below 2^-126",
     "the smallest alpha that is shown to vanish below 2^-126"),
    ("survives-smallest", build.saturation(102, -149), "above 2^-149",
     "the smallest number of float32"),
    ("survives-easily", build.saturation(46, -149), "above 2^-149", "far from the edge"),
    ("vanishes-largest", build.saturation(4096, -4096, "vanishes"), "below 2^-4096",
     "the largest alpha"),
    ("survives-wide-bounds-of-e", changed(CASES["survives"], update(e_lower="2", e_upper="11/4")),
     "alpha = 46", "2 < e < 11/4 is enough"),
    ("survives-below-three", build.saturation(47, -69), "above 2^-69", "2 e^47 < 2^69 < 3 e^47"),
    ("survives-low-bound-of-e", changed(CASES["survives"], put(["e_lower"], "1/2")),
     "alpha = 46", "the lower bound of e is not needed"),
    ("survives-nearest-bounds-of-e", changed(CASES["survives"],
     update(e_lower=f"{build.E_SUM}", e_upper=f"{build.E_SUM + Fraction(1, factorial(40) * 40)}")),
     "alpha = 46", "the sum to n = 40 and what the rest is less than"),
    ("survives-longest-bounds-of-e", changed(CASES["survives"],
     update(e_lower=f"2{'0' * 100}/{'9' * 100}", e_upper=f"28{'0' * 99}/{'9' * 100}")),
     "alpha = 46", "denominators of 100 digits"),
]  # fmt: skip
BORDERS = [
    ("K2", border("S.padding", (2,), (2,), [(0,), (1,)]), "size (2,)", "two pixels, two taps"),
    ("K2-one-tap", border("S.padding", (2,), (2,), [(0,), (1,)], kernel=[0, 1]), "size (2,)",
     "the first tap is zero"),
    ("K3x3-1x2", border("C20.padding", (3, 3), (1, 3), [(0, 0), (0, 1)]), "size (1, 3)",
     "an image of one row"),
    ("K1x3", border("C20.padding", (1, 3), (2, 2), [(0, 0), (0, 1)], kernel=[1, 1, 2]), "1x3",
     "a row of three taps"),
    ("signs", border("C20.theorem1", (3, 3), (2, 2), [(0, 0), (1, 1)], kernel=[1, 0, 0, 0, 0, 0,
     0, 0, -1]), "3x3 kernel", "a kernel whose taps add up to 0"),
    ("largest-entries", border("S.padding", (3,), (2,), [(0,), (1,)], kernel=[LARGEST, 0,
     -LARGEST]), "3 kernel", "entries of 10^18"),
    ("K32", border("S.padding", (32,), (16,), [(0,), (15,)], kernel=[*range(32)]), "32 kernel",
     "a kernel wider than the image"),
    ("patches", border("L21.theorem1", (3, 3), (2, 6), [(0, 0), (0, 1)], patch=(2, 3)),
     "patch (2, 3)", "two tokens side by side"),
]  # fmt: skip
COMMUTING = [
    ("bare-2", build.commutant((2,)), "bare grid 2 ", "two nodes"),
    ("bare-9", build.commutant((9,)), "bare grid 9 ", "nine nodes"),
    ("bare-1x2x1", build.commutant((1, 2, 1)), "bare grid 1x2x1", "two axes of one node"),
    ("bare-2x2x2", build.commutant((2, 2, 2)), "bare grid 2x2x2", "three axes"),
    ("torus-2", even_commutant(), "of dimension 2", "on two nodes the shifts +1 and -1 are one"),
    ("torus-1x3", build.commutant((1, 3), "torus"), "of dimension 3", "an axis of one node"),
    ("torus-3x3", build.commutant((3, 3), "torus"), "of dimension 9", "nine nodes"),
]  # fmt: skip
VARIATION = [
    ("alpha-a-thousandth", quadratic("1/1000", 1, 30, squares=8), "alpha = 1/1000",
     "nearly uniform rows: the bound is nearly 1"),
    ("power-as-the-series", quadratic("1/1000", 1, 30, squares=8, times=1), "alpha = 1/1000",
     "r = 1000/1001, the series 1001/1000: their product is 1"),
    ("power-twice-the-series", quadratic("3", 6, 30, times=2), "alpha = 3",
     "r is twice what the series gives"),
    ("alpha-100", quadratic("100", 400, 90), "alpha = 100", "a bound of 10^-43"),
    ("alpha-1-two-axes", quadratic("1", 40, 20, axes=2, squares=8), "on 2 axes", "on an image"),
    ("bias-two-keys", build.bias_variation("3", 2, "20", "1/21"), "one of 2 keys",
     "one other key: 1/21, exactly"),
    ("bias-most-keys", build.bias_variation("3", 4096, "20", "819/823"), "one of 4096 keys",
     "4,095 other keys: the bound is near 1"),
    ("bias-small", build.bias_variation("1/1000", 9, "1001/1000", "8000/9001"), "M = 1/1000",
     "a bias of a thousandth"),
    ("bias-power-as-the-series", changed(CASES["bias_variation"], update(sharpness="1/1000",
     terms=1, power="1001/1000", bound="8000/9001")), "M = 1/1000", "w is the series itself"),
    ("bias-power-half-the-series", changed(CASES["bias_variation"], update(terms=6,
     power="1553/160", bound="1280/2833")), "M = 3", "w is half the series: the least"),
    ("bias-twice-the-distance", changed(CASES["bias_variation"], put(["bound"], "4/7")),
     "at most 4/7", "twice what is shown is still accepted"),
]  # fmt: skip
GRIDS = [
    ("stride-on-a-line", "A19.grid-stride", of({"k": 2, "m": 3, "q": 3, "r": 2, "z": 1},
     R=grid([3], [[0]], 2), E=grid([3], [[0], [1]]), G=grid([3], [[0], [1]], 2)),
     "samples the outputs", "a line of three, every second"),
    ("gap-as-wide-as-the-reach", "B19.cross-gap", of({"k": 9, "q": 9}, l=image(5, 4, 9),
     r=image(0, 4, 9)), "no filter reads across", "the gap is one pixel, the images exchanged"),
    ("gap-wider", "B19.cross-gap", of({"k": 10, "q": 10}, J=grid([10], LINE),
     l=image(0, 4, 10), r=image(6, 4, 10)), "no filter reads across", "a gap of two pixels"),
    ("gap-on-two-axes", "B19.cross-gap", of({"a": 4, "b": 4, "d": 2, "k": 10, "q": 10},
     J=grid([5, 2], [[-1, 0], [1, 0]]), S=grid([2, 2], [[-1, 0], [1, 0]]), l=image(0, 4, 10),
     r=image(6, 4, 10)), "no filter reads across", "images above each other, filters along them"),
    ("seam-exchanged", "B19.cross-seam", of({}, l=image(4, 4, 8), r=image(0, 4, 8)),
     "read across the seam", "the right image first"),
    ("filters-on-two-words", "B19.language-causal", of({"q": 2, "k": 2, "j": 2},
     E=grid([2], [[-1], [0]]), F=grid([2], LINE)), "centred filters do not", "two words"),
    ("edge-of-two-nodes", "S.boundary-edge", of({"q": 2, "k": 2, "d": 3}, N=grid([2], LINE,
     border="nearest"), E=grid([2], LINE, border="edge")), "edge-replicate", "two pixels"),
    ("two-heads-tiny-leak", "B19.sac-two_heads", of({"q": 2, "k": 2, "j": 2, "d": 2},
     L=grid([2], [[0]], border="leaky", leak="1/1000000007"), E=grid([2], [[0], [1]]),
     c=["1000000007/1000000006"], f=["1/2000000012"]), "at finite scores", "a leak of a billionth"),
    ("sums-of-one-pixel-kernel", "S.padding-constant_sums", of({"d": 2}, E=grid([2], [[-1], [1]]),
     L=grid([2], [[-1], [1]], border="leaky", leak="1/3"), W=["4", "4"], t=["4"], c=["3/2"],
     f=["4"]), "have the same sum", "two taps on two pixels: one falls in at each"),
    ("sums-of-weights-of-one", "S.padding-constant_sums", of({"d": 2}, E=grid([2], [[-1], [1]]),
     L=grid([2], [[-1], [1]], border="leaky", leak="1/3"), W=["1", "1"], t=["1"], c=["3/2"],
     f=["1"]), "have the same sum", "the mean of two neighbours without its factor"),
    ("cuboid-of-three-axes", "A19.grid-cuboid", of({"a": 4, "b": 4, "c": 2, "d": 2, "i": 2, "j": 2,
     "k": 4, "m": 8, "q": 8}, U=grid([2, 2], [[0, 0], [1, 1]]), V=grid([2], [[-1], [1]]),
     E=grid([2, 2, 2], [[0, 0, -1], [0, 0, 1], [1, 1, -1], [1, 1, 1]])), "right cuboid",
     "a grid of 2 × 2 × 2 nodes, the most axes that a grid may have"),
]  # fmt: skip


def identities():
    small = [
        (f"{name}-all-two", all_two(name), "sizes", "every free index has the size 2")
        for name in SMALL
    ]
    return small + [
        (slug, changed(IDENTITIES[case], change), reason, why)
        for slug, case, change, reason, why in GRIDS
    ]


ENTRIES = truths(MAPS + RANKS + WEIGHTS + BORDERS + COMMUTING + VARIATION + identities())
