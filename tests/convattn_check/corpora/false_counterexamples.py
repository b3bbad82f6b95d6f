"""Falsehoods about heads that share no map, ranks, weights, borders and what commutes."""

from fractions import Fraction
from math import factorial

import certificate_builder as build
from certificate_cases import CASES, put

from corpora.entry import all_at_once, falsehoods, swap, update

E_LOWER = CASES["survives"]["body"]["e_lower"]
E_UPPER = CASES["survives"]["body"]["e_upper"]


def same_place_twice(body):
    body["queries"][1] = body["queries"][0]
    body["sums"][1] = body["sums"][0]


def centre_tap_only(body):
    body["kernel"] = [0, 0, 0, 0, 5, 0, 0, 0, 0]
    body["sums"] = [[5], [5]]


def two_tokens_inside(body):
    """The kernel of ones sees all nine pixels from both."""
    body["queries"], body["sums"] = [[1, 1], [2, 2]], [[9], [9]]


def poor_matrix(body):
    body.update(value=[[1, 1]] * 3, output=[[1, 2, 4], [2, 4, 8]], out_channels=3, rank=1)


def poor_matrix_of_five_outputs(body):
    body.update(value=[[1, 1]] * 3, output=[[1, 2, 4, 0, 0], [2, 4, 8, 0, 0]], rank=1)


def narrower_than_its_heads(body):
    """One channel in: the rank is 1 = min(D_in, D_h), and D_out - D_h is negative."""
    body.update(head_dimension=2, in_channels=1, out_channels=1, rank=1)
    body.update(value=[[1, 1]], output=[[1], [1]])


def twice_the_dimension(body):
    """D_out = 2 D_h: then the rank is D_out - D_h after all."""
    body.update(out_channels=4, output=[row[:4] for row in body["output"]])


def as_wide_as_its_output(body):
    body.update(out_channels=2, output=[row[:2] for row in body["output"]])


def loose_power(body):
    """α = 40 and e^-40 ≤ 1/2, which is true."""
    body.update(sharpness="40", terms=90, power="1/2", bound="99/100")


def loose_weight(body):
    """The weight of a bias 3 is at least 10^-98, which is true."""
    body.update(power="1/" + "9" * 98, bound="9" * 98 + "/1" + "0" * 98)


MAPS = [
    ("combination-off", "pixel_heads", put(["inclusion", 0, 0, 1], "1"), "inclusion",
     "inclusion[0] for key 0 gives", "a coefficient too many: another row than the unit row"),
    ("combination-doubled", "pixel_heads", put(["inclusion", 1, 0, 1], "2"), "inclusion",
     "inclusion[1] for key 1 gives ['0', '2']", "twice the unit row"),
    ("combinations-swapped", "hard_heads", swap(["inclusion", 1], 0, 2), "inclusion",
     "inclusion[1] for key 0 gives", "the unit rows of two keys have changed places"),
    ("row-does-not-span", "pixel_heads", put(["heads", 0, "rows", 0], ["1/2", "1/2"]), "inclusion",
     "inclusion[0] for key 0 gives", "the combinations belong to another row"),
    ("weight-of-another-head", "relative_heads", put(["heads", 0, "relative", 0, 1], "1/8"),
     "inclusion", "inclusion[1] for key 1 gives", "1/8 where the combinations want 1/9"),
    ("separator-zero", "pixel_heads", put(["separator"], ["0"] * 4), "separator",
     "tap 0 and the separator give 0", "0 separates nothing"),
    ("separator-off", "pixel_heads", put(["separator", 0], "2"), "separator",
     "head 0 and the separator give 1, expected 0", "not orthogonal to the first head"),
    ("separator-off-below", "pixel_heads", put(["separator"], ["-2", "0", "1", "0"]), "separator",
     "head 0 and the separator give -1, expected 0", "not orthogonal to the first head"),
    ("separator-of-another-tap", "hard_heads", put(["tap"], 1), "separator",
     "tap 1 and the separator give 0", "what separates the tap -1 says nothing about the tap 1"),
    ("separator-transposed", "hard_heads", put(["separator"], ["1", "-1", "0", "0", "-1", "0",
     "0", "0", "0"]), "separator", "and the separator give", "keys and queries exchanged"),
    ("heads-that-have-a-map", "pixel_heads", put(["heads", 0, "rows", 1], ["1/2", "1/2"]),
     "separator", "head 0 and the separator give", "the separator belongs to other heads"),
    ("row-sums-to-two", "pixel_heads", put(["heads", 0, "rows", 0], ["1", "1"]), "realizable",
     "expected weights with the sum 1", "a row of attention sums to 1"),
    ("row-with-a-negative-weight", "pixel_heads", put(["heads", 0, "rows", 0], ["2", "-1"]),
     "realizable", "expected weights with the sum 1", "the sum is 1, by a negative weight"),
    ("relative-weight-zero", "relative_heads", put(["heads", 0, "relative", 0, 1], "0"),
     "realizable", "a weight that is not positive", "no finite score has the weight 0"),
    ("relative-shift-twice", "relative_heads", put(["heads", 0, "relative", 0, 0], 0),
     "realizable", "has the shift 0, not -1", "the shift 0 twice, the shift -1 never"),
    ("tap-beyond-the-kernel", "hard_heads", put(["tap"], 2), "range", "tap is 2, expected -1 to 1",
     "a kernel of size 3 has no tap 2"),
    ("heads-fewer-than-taps", "pixel_heads", put(["kernel_size"], [3]), "heads",
     "C20.lemma3 needs at least K heads", "two heads never span three taps inside an image"),
]  # fmt: skip
RANKS = [
    ("rank-too-high", "rank", put(["rank"], 3), "rank", "rank 3, computed 2",
     "D_out - D_h = 3 is what Cordonnier's text says and what is wrong"),
    ("rank-too-low", "rank", put(["rank"], 1), "rank", "rank 1, computed 2", "the rank is 2"),
    ("rank-one-row-changed", "rank", put(["value"], [[1, 2], [2, 4], [3, 6]]), "rank",
     "rank 2, computed 1", "the columns of the value matrix are dependent"),
    ("output-dependent", "rank", put(["output", 1], [2, 0, 4, 0, 6]), "rank",
     "rank 2, computed 1", "the rows of the output matrix are dependent"),
]  # fmt: skip
EMPTY_RANKS = [
    ("poor-matrix", "rank", poor_matrix, "rank", "rank 1, computed 1, D_in = 3, D_h = 2",
     "the rank is small by choice, not because it must be"),
    ("poor-matrix-of-five-outputs", "rank", poor_matrix_of_five_outputs, "rank",
     "rank 1, computed 1, D_in = 3, D_h = 2",
     "a rank of 1 where heads can have 2, and D_out - D_h is 3"),
    ("narrower-than-its-heads", "rank", narrower_than_its_heads, "rank", "with D_h < D_out",
     "D_out is less than D_h"),
    ("twice-the-dimension", "rank", twice_the_dimension, "rank", "not D_out - D_h",
     "with D_out = 2 D_h the rank is D_out - D_h: nothing is refuted"),
    ("as-wide-as-its-output", "rank", as_wide_as_its_output, "rank", "with D_h < D_out",
     "with D_h = D_out nothing is lost"),
]  # fmt: skip
WEIGHTS = [
    ("survives-above-its-alpha", "survives", put(["alpha"], 87), "saturation",
     "with alpha 87 the weight of a neighbour is not shown to be above 2^-126",
     "2 e^87 is more than 2^126"),
    ("vanishes-below-its-alpha", "vanishes", put(["alpha"], 87), "saturation",
     "is not shown to be below 2^-126", "e^87 is less than 2^126"),
    ("vanishes-one-power-lower", "vanishes", put(["exponent"], -127), "saturation",
     "is not shown to be below 2^-127", "e^88 is less than 2^127"),
    ("conclusion-turned", "vanishes", put(["conclusion"], "survives"), "saturation",
     "is not shown to be above 2^-126", "with alpha = 88 the weight is below 2^-126"),
    ("e-too-small", "survives", put(["e_upper"], "13591409/5000000"), "series",
     "do not enclose the sum", "2.7182818 is less than e"),
    ("e-too-large", "survives", put(["e_lower"], "27182819/10000000"), "series",
     "do not enclose the sum", "2.7182819 is more than e"),
    ("e-too-small-by-little", "survives",
     put(["e_upper"], f"{build.E_SUM + Fraction(1, factorial(41))}"), "series",
     "do not enclose the sum", "1/42! and what follows are left out"),
    ("e-too-large-by-little", "survives",
     put(["e_lower"], f"{build.E_SUM + Fraction(1, factorial(41))}"), "series",
     "do not enclose the sum", "nothing shows that a bound above the sum to n = 40 is below e"),
    ("e-below-to-the-power", "vanishes",
     update(alpha=126, exponent=-126, e_lower="2"), "saturation",
     "is not shown to be below 2^-126", "2^126 is not above 2^126"),
    ("survives-above-one", "survives", put(["exponent"], 0), "saturation",
     "is not shown to be above 2^0", "no weight is above 1"),
    ("e-below-with-long-denominator", "survives", put(["e_lower"], f"27{'0' * 98}1/1{'0' * 100}"),
     "range", "a bound of e has over 100 digits", "a denominator of 10^100"),
    ("e-above-with-long-denominator", "survives", put(["e_upper"], f"28{'0' * 98}1/1{'0' * 100}"),
     "range", "a bound of e has over 100 digits", "a denominator of 10^100"),
    ("e-at-most-four", "survives", put(["e_upper"], "4"), "series", "e_upper 4 do not enclose",
     "a bound of e as wide as 4"),
    ("e-exchanged", "survives", update(e_lower=E_UPPER, e_upper=E_LOWER), "series",
     "do not enclose the sum", "the bounds of e have changed places"),
    ("e-at-most-three", "survives", put(["e_upper"], "3"), "series", "e_upper 3 do not enclose",
     "a bound of e as wide as 3"),
    ("e-negative", "survives", put(["e_lower"], "-1"), "series", "e_lower -1",
     "an even power of a negative bound is no lower bound"),
]  # fmt: skip
BORDERS = [
    ("sum-off-by-one", "border", put(["sums", 0, 0], 7), "border", "sums [[7]",
     "a pixel too many is counted"),
    ("kernel-changed", "border", put(["kernel", 0], 2), "border", "expected",
     "the sums belong to a kernel of ones"),
    ("pixels-in-another-order", "border_patches", swap(["sums", 0], 0, 3), "border", "expected",
     "two pixels of a patch have changed their sums"),
    ("image-not-of-whole-patches", "border_patches", put(["image_size"], [9, 15]), "border",
     "is not made of whole patches", "nine rows are no whole patches of two"),
    ("image-one-patch-shorter", "border_patches", put(["image_size"], [8, 12]), "range",
     "expected 0 to 3", "a token beyond the image"),
    ("token-beyond-the-image", "border", put(["queries", 1], [4, 0]), "range", "expected 0 to 3",
     "the image has four rows"),
]  # fmt: skip
EMPTY_BORDERS = [
    ("same-token-twice", "border", same_place_twice, "border", "two lists that differ",
     "one token has the outputs that it has"),
    ("two-tokens-inside", "border", two_tokens_inside, "border", "two lists that differ",
     "no border is seen from either token"),
    ("centre-tap-only", "border", centre_tap_only, "border", "two lists that differ",
     "a kernel of one tap sees no border"),
]  # fmt: skip
COMMUTING = [
    ("dimension-of-the-torus", "commutant_line", put(["dimension"], 4), "commutant",
     "dimension 4, computed 1", "on a bare line only the multiples of the identity commute"),
    ("dimension-zero", "commutant_line", put(["dimension"], 0), "commutant",
     "dimension 0, computed 1", "the identity commutes with everything"),
    ("dimension-of-the-bare-grid", "commutant_torus", put(["dimension"], 1), "commutant",
     "dimension 1, computed 6", "on a torus all circulants commute"),
    ("line-as-torus", "commutant_line", put(["boundary"], "torus"), "commutant",
     "dimension 1, computed 4", "a cycle of four nodes has the four powers of its shift"),
    ("torus-as-bare", "commutant_torus", put(["boundary"], "bare"), "commutant",
     "dimension 6, computed 1", "at the border the shifts end"),
    ("one-direction-alone", "commutant_line", put(["shifts"], [[1]]), "commutant",
     "dimension 1, computed 4", "with one shift on a line its powers commute"),
    ("one-axis-alone", "commutant_grid", put(["shifts"], [[0, 1], [0, -1]]), "commutant",
     "dimension 1, computed 4", "nothing ties the rows of the grid together"),
    ("shift-repeated", "commutant_line", put(["shifts"], [[1], [1]]), "range", "all different",
     "the same shift twice"),
]  # fmt: skip
VARIATION = [
    ("power-below-the-exponential", "quadratic_variation", put(["power"], "49787/1000000"),
     "series", "power 49787/1000000 is not shown to be at least e^-3", "e^-3 = 0.0497870…"),
    ("power-of-another-sharpness", "quadratic_variation", put(["sharpness"], "2"), "series",
     "is not shown to be at least e^-2", "e^-3 is less than e^-2"),
    ("terms-too-few", "quadratic_variation", put(["terms"], 5), "series",
     "5 terms, expected 2·3 or more", "the rest of the series is not bounded"),
    ("bound-below-the-truth", "quadratic_variation", put(["bound"], "17/100"), "total_variation",
     "1 - theta^-2 is not shown to be at most 17/100", "the distance is 0.1729…"),
    ("bound-of-one-axis", "quadratic_variation_wide", put(["axes"], 2), "total_variation",
     "1 - theta^-2 is not shown", "on two axes the distance is larger"),
    ("squares-too-few", "quadratic_variation_wide", put(["squares"], 1), "total_variation",
     "is not shown", "the tail after one square is too large"),
    ("power-one", "quadratic_variation", put(["power"], "1"), "series", "and below 1",
     "with r = 1 the sum has no end"),
    ("power-one-and-a-small-sharpness", "quadratic_variation", update(sharpness="1/1000", terms=1,
     power="1"), "series", "power 1 is not shown", "r = 1 is within twice what the series gives"),
    ("power-above-one", "quadratic_variation", update(sharpness="1/1000", terms=1, power="3/2",
     bound="999/1000", squares=1), "series", "power 3/2 is not shown",
     "the distance is 0.9996…, and the sum has no end"),
    ("weight-above-the-exponential", "bias_variation", put(["power"], "201/10"), "series",
     "power 201/10 is not shown to be at most e^3", "e^3 = 20.085…"),
    ("bias-bound-below-the-truth", "bias_variation", put(["bound"], "7/25"), "total_variation",
     "half the L1 distance is not shown to be at most 7/25", "the distance is 8/28"),
    ("one-key-more", "bias_variation", put(["keys"], 10), "total_variation", "is not shown",
     "nine other keys have 9/29"),
    ("bias-terms-too-few", "bias_variation", put(["terms"], 5), "series", "5 terms",
     "the rest of the series is not bounded"),
    ("sharpness-negative", "quadratic_variation", put(["sharpness"], "-3"), "range",
     "sharpness -3, expected more than 0", "a score that grows with the distance"),
    ("bound-negative", "bias_variation", put(["bound"], "-2/7"), "range", "-2/7, expected",
     "a distance is not negative"),
]  # fmt: skip
EMPTY_VARIATION = [
    ("loose-power", "quadratic_variation", loose_power, "series", "or is more than 2 times",
     "true, as e^-40 < 1/2, and says nothing"),
    ("loose-bound", "quadratic_variation", put(["bound"], "173/500"), "total_variation",
     "the bound 173/500 is more than 2 times what is shown", "more than twice the distance"),
    ("loose-weight", "bias_variation", loose_weight, "series", "2 times it is",
     "true, as e^3 > 10^-98, and says nothing"),
    ("loose-bias-bound", "bias_variation", put(["bound"], "401/700"), "total_variation",
     "is more than 2 times what is shown", "more than twice 8/28"),
    ("bound-one", "quadratic_variation", put(["bound"], "1"), "range",
     "bound 1: no total variation is above 1", "true of all rows"),
    ("bound-above-one", "quadratic_variation", put(["bound"], "3/2"), "range",
     "bound 3/2: no total variation is above 1", "true of all rows"),
    ("power-twice", "quadratic_variation", put(["power"], "1/10"), "series",
     "more than 2 times what the series gives", "2.0085… times e^-3"),
]  # fmt: skip
DEFINITIONS = [
    ("bounds-of-nothing", build.bias_variation(keys=1), None, "range", "keys is 1, expected 2",
     "a row of one key has the weight 1"),
    ("relative-rows", "relative_heads", all_at_once(put(["inclusion", 0, 0, 0], "5/4"),
     put(["inclusion", 0, 0, 1], "-1/4")), "inclusion", "inclusion[0] for key 0 gives",
     "the coefficients have changed places"),
]  # fmt: skip
ENTRIES = [
    *falsehoods(MAPS + RANKS + WEIGHTS + BORDERS + COMMUTING + VARIATION + DEFINITIONS),
    *falsehoods(EMPTY_RANKS + EMPTY_BORDERS + EMPTY_VARIATION, "vacuous"),
]
