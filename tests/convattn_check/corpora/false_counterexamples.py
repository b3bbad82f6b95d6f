"""Falsehoods about heads that share no map, ranks, weights, borders and what commutes."""

from fractions import Fraction
from math import factorial

import certificate_builder as build
from certificate_cases import CASES, all_at_once, put, swap, update

from corpora.entry import altered, named

E_LOWER = CASES["survives"]["body"]["e_lower"]
E_UPPER = CASES["survives"]["body"]["e_upper"]


def same_place_twice(body):
    body["queries"][1] = body["queries"][0]
    body["sums"][1] = body["sums"][0]


def of_outputs(count):
    """As many outputs as that: with D_out = 2 D_h the rank is D_out - D_h after all."""
    return lambda body: body.update(
        out_channels=count, output=[row[:count] for row in body["output"]]
    )


# One channel in: the rank is 1 = min(D_in, D_h), and D_out - D_h is negative.
SMALL = {"sharpness": "1/1000", "terms": 1}
POOR = {"value": [[1, 1]] * 3, "rank": 1}
NARROW = {"head_dimension": 2, "in_channels": 1, "out_channels": 1, "value": [[1, 1]], "rank": 1}
CHANGES = {
    "pixel_heads": {
        "combination-off": put(["inclusion", 0, 0, 1], "1"),
        "combination-doubled": put(["inclusion", 1, 0, 1], "2"),
        "row-does-not-span": put(["heads", 0, "rows", 0], ["1/2", "1/2"]),
        "separator-zero": put(["separator"], ["0"] * 4),
        "separator-off": put(["separator", 0], "2"),
        "separator-off-below": put(["separator"], ["-2", "0", "1", "0"]),
        "heads-that-have-a-map": put(["heads", 0, "rows", 1], ["1/2", "1/2"]),
        "row-sums-to-two": put(["heads", 0, "rows", 0], ["1", "1"]),
        "row-with-a-negative-weight": put(["heads", 0, "rows", 0], ["2", "-1"]),
        "heads-fewer-than-taps": put(["kernel_size"], [3]),
    },
    "hard_heads": {
        "combinations-swapped": swap(["inclusion", 1], 0, 2),
        "separator-of-another-tap": put(["tap"], 1),
        "separator-transposed": put(["separator"], ["1", "-1", "0", "0", "-1", "0", "0", "0", "0"]),
        "tap-beyond-the-kernel": put(["tap"], 2),
    },
    "relative_heads": {
        "weight-of-another-head": put(["heads", 0, "relative", 0, 1], "1/8"),
        "relative-weight-zero": put(["heads", 0, "relative", 0, 1], "0"),
        "relative-shift-twice": put(["heads", 0, "relative", 0, 0], 0),
        "relative-rows": all_at_once(
            put(["inclusion", 0, 0, 0], "5/4"), put(["inclusion", 0, 0, 1], "-1/4")
        ),
    },
    "rank": {
        "rank-too-high": put(["rank"], 3),
        "rank-too-low": put(["rank"], 1),
        "rank-one-row-changed": put(["value"], [[1, 2], [2, 4], [3, 6]]),
        "output-dependent": put(["output", 1], [2, 0, 4, 0, 6]),
        "poor-matrix": update(**POOR, output=[[1, 2, 4], [2, 4, 8]], out_channels=3),
        "poor-matrix-of-five-outputs": update(**POOR, output=[[1, 2, 4, 0, 0], [2, 4, 8, 0, 0]]),
        "narrower-than-its-heads": update(**NARROW, output=[[1], [1]]),
        "twice-the-dimension": of_outputs(4),
        "as-wide-as-its-output": of_outputs(2),
    },
    "survives": {
        "survives-above-its-alpha": put(["alpha"], 87),
        "e-too-small": put(["e_upper"], "13591409/5000000"),
        "e-too-large": put(["e_lower"], "27182819/10000000"),
        "e-too-small-by-little": put(["e_upper"], f"{build.E_SUM + Fraction(1, factorial(41))}"),
        "e-too-large-by-little": put(["e_lower"], f"{build.E_SUM + Fraction(1, factorial(41))}"),
        "survives-above-one": put(["exponent"], 0),
        "e-below-with-long-denominator": put(["e_lower"], f"27{'0' * 98}1/1{'0' * 100}"),
        "e-above-with-long-denominator": put(["e_upper"], f"28{'0' * 98}1/1{'0' * 100}"),
        "e-at-most-four": put(["e_upper"], "4"),
        "e-exchanged": update(e_lower=E_UPPER, e_upper=E_LOWER),
        "e-at-most-three": put(["e_upper"], "3"),
        "e-negative": put(["e_lower"], "-1"),
    },
    "vanishes": {
        "vanishes-below-its-alpha": put(["alpha"], 87),
        "vanishes-one-power-lower": put(["exponent"], -127),
        "conclusion-turned": put(["conclusion"], "survives"),
        "e-below-to-the-power": update(alpha=126, exponent=-126, e_lower="2"),
    },
    "border": {
        "sum-off-by-one": put(["sums", 0, 0], 7),
        "kernel-changed": put(["kernel", 0], 2),
        "token-beyond-the-image": put(["queries", 1], [4, 0]),
        "same-token-twice": same_place_twice,
        "two-tokens-inside": update(queries=[[1, 1], [2, 2]], sums=[[9], [9]]),
        "centre-tap-only": update(kernel=[0, 0, 0, 0, 5, 0, 0, 0, 0], sums=[[5], [5]]),
    },
    "border_patches": {
        "pixels-in-another-order": swap(["sums", 0], 0, 3),
        "image-not-of-whole-patches": put(["image_size"], [9, 15]),
        "image-one-patch-shorter": put(["image_size"], [8, 12]),
    },
    "commutant_line": {
        "dimension-of-the-torus": put(["dimension"], 4),
        "dimension-zero": put(["dimension"], 0),
        "line-as-torus": put(["boundary"], "torus"),
        "one-direction-alone": put(["shifts"], [[1]]),
        "shift-repeated": put(["shifts"], [[1], [1]]),
    },
    "commutant_torus": {
        "dimension-of-the-bare-grid": put(["dimension"], 1),
        "torus-as-bare": put(["boundary"], "bare"),
    },
    "commutant_grid": {"one-axis-alone": put(["shifts"], [[0, 1], [0, -1]])},
    "quadratic_variation": {
        "power-below-the-exponential": put(["power"], "49787/1000000"),
        "power-of-another-sharpness": put(["sharpness"], "2"),
        "terms-too-few": put(["terms"], 5),
        "bound-below-the-truth": put(["bound"], "17/100"),
        "power-one": put(["power"], "1"),
        "power-one-and-a-small-sharpness": update(**SMALL, power="1"),
        "power-above-one": update(**SMALL, power="3/2", bound="999/1000", squares=1),
        "sharpness-negative": put(["sharpness"], "-3"),
        # Of α = 40 and e^-40 ≤ 1/2, which is true.
        "loose-power": update(sharpness="40", terms=90, power="1/2", bound="99/100"),
        "loose-bound": put(["bound"], "173/500"),
        "bound-one": put(["bound"], "1"),
        "bound-above-one": put(["bound"], "3/2"),
        "power-twice": put(["power"], "1/10"),
    },
    "quadratic_variation_wide": {
        "bound-of-one-axis": put(["axes"], 2),
        "squares-too-few": put(["squares"], 1),
    },
    "bias_variation": {
        "weight-above-the-exponential": put(["power"], "201/10"),
        "bias-bound-below-the-truth": put(["bound"], "7/25"),
        "one-key-more": put(["keys"], 10),
        "bias-terms-too-few": put(["terms"], 5),
        "bound-negative": put(["bound"], "-2/7"),
        # The weight of a bias 3 is at least 10^-98, which is true.
        "loose-weight": update(power=f"1/{'9' * 98}", bound=f"{'9' * 98}/1{'0' * 98}"),
        "loose-bias-bound": put(["bound"], "401/700"),
    },
}
CERTIFICATES = altered(CHANGES) | named({"bounds-of-nothing": build.bias_variation(keys=1)})
