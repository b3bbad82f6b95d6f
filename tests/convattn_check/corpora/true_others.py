"""Truths at the edge about maps, ranks, weights, borders, what commutes, and identities."""

from fractions import Fraction
from math import factorial

import certificate_builder as build
from certificate_cases import CASES, changed, put, update
from identity_cases import IDENTITIES
from kernel_cases import border

from corpora.entry import altered, named
from corpora.false_identities import LINE, grid, image, of

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


def all_two(name):
    """The identity with every free index as small as may be."""
    products = PRODUCTS.get(name, {})
    sizes = {
        letter: 2 ** len(products.get(letter, "-")) for letter in IDENTITIES[name]["body"]["sizes"]
    }
    return changed(IDENTITIES[name], update(sizes=sizes))


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
RANKS = {
    "one-dimension": rank(1, 1, 3),
    "widest": rank(1, 1, 64),
    "one-below-its-output": rank(3, 2, 3),
    "few-channels-in": rank(1, 3, 5),
    "largest-entries": rank(2, 2, 3, LARGEST),
}
WEIGHTS = {
    "survives-smallest-normal": build.saturation(86, -126),
    "vanishes-smallest-normal": build.saturation(88, -126, "vanishes"),
    "survives-smallest": build.saturation(102, -149),
    "survives-easily": build.saturation(46, -149),
    "vanishes-largest": build.saturation(4096, -4096, "vanishes"),
    "survives-below-three": build.saturation(47, -69),
}
BORDERS = {
    "K2": border("S.padding", (2,), (2,), [(0,), (1,)]),
    "K2-one-tap": border("S.padding", (2,), (2,), [(0,), (1,)], kernel=[0, 1]),
    "K3x3-1x2": border("C20.padding", (3, 3), (1, 3), [(0, 0), (0, 1)]),
    "K1x3": border("C20.padding", (1, 3), (2, 2), [(0, 0), (0, 1)], kernel=[1, 1, 2]),
    "signs": border(
        "C20.theorem1", (3, 3), (2, 2), [(0, 0), (1, 1)], kernel=[1, 0, 0, 0, 0, 0, 0, 0, -1]
    ),
    "largest-entries": border("S.padding", (3,), (2,), [(0,), (1,)], kernel=[LARGEST, 0, -LARGEST]),
    "K32": border("S.padding", (32,), (16,), [(0,), (15,)], kernel=[*range(32)]),
    "patches": border("L21.theorem1", (3, 3), (2, 6), [(0, 0), (0, 1)], patch=(2, 3)),
}
COMMUTING = {
    "bare-2": build.commutant((2,)),
    "bare-9": build.commutant((9,)),
    "bare-1x2x1": build.commutant((1, 2, 1)),
    "bare-2x2x2": build.commutant((2, 2, 2)),
    "torus-2": build.commutant((2,), "torus", [[1], [-1]]),
    "torus-1x3": build.commutant((1, 3), "torus"),
    "torus-3x3": build.commutant((3, 3), "torus"),
}
VARIATION = {
    "alpha-a-thousandth": quadratic("1/1000", 1, 30, squares=8),
    "power-as-the-series": quadratic("1/1000", 1, 30, squares=8, times=1),
    "power-twice-the-series": quadratic("3", 6, 30, times=2),
    "alpha-100": quadratic("100", 400, 90),
    "alpha-1-two-axes": quadratic("1", 40, 20, axes=2, squares=8),
    "bias-two-keys": build.bias_variation("3", 2, "20", "1/21"),
    "bias-most-keys": build.bias_variation("3", 4096, "20", "819/823"),
    "bias-small": build.bias_variation("1/1000", 9, "1001/1000", "8000/9001"),
}
TWO_TAPS = {
    "E": grid([2], [[-1], [1]]),
    "L": grid([2], [[-1], [1]], border="leaky", leak="1/3"),
    "c": ["3/2"],
}
CHANGES = {
    "pixel_heads": {
        "three-heads": same_heads(1),
        "many-heads": same_heads(30),
        "long-weights": long_head,
        "separator-scaled": put(["separator"], [f"1/{PRIME}", "0", f"-1/{PRIME}", "0"]),
    },
    "relative_heads": {
        "rows-of-positive-weights": put(
            ["heads"],
            [
                {"rows": [["1/2", "1/2"], ["1/10", "9/10"]]},
                {"rows": [["9/10", "1/10"], ["1/2", "1/2"]]},
            ],
        ),
    },
    "hard_heads": {
        # Of heads that attend to the nearest pixel: the mirror image of the tap -1.
        "tap-at-the-end": update(tap=1, separator=["0"] * 4 + ["1", "1", "0", "0", "-1"]),
    },
    "survives": {
        "survives-wide-bounds-of-e": update(e_lower="2", e_upper="11/4"),
        "survives-low-bound-of-e": put(["e_lower"], "1/2"),
        "survives-nearest-bounds-of-e": update(
            e_lower=f"{build.E_SUM}", e_upper=f"{build.E_SUM + Fraction(1, factorial(40) * 40)}"
        ),
        "survives-longest-bounds-of-e": update(
            e_lower=f"2{'0' * 100}/{'9' * 100}", e_upper=f"28{'0' * 99}/{'9' * 100}"
        ),
    },
    "bias_variation": {
        "bias-power-as-the-series": update(
            sharpness="1/1000", terms=1, power="1001/1000", bound="8000/9001"
        ),
        "bias-power-half-the-series": update(terms=6, power="1553/160", bound="1280/2833"),
        "bias-twice-the-distance": put(["bound"], "4/7"),
    },
    "A19.grid-stride": {
        "stride-on-a-line": of(
            {"k": 2, "m": 3, "q": 3, "r": 2, "z": 1},
            R=grid([3], [[0]], 2),
            E=grid([3], [[0], [1]]),
            G=grid([3], [[0], [1]], 2),
        ),
    },
    "B19.cross-gap": {
        "gap-as-wide-as-the-reach": of({"k": 9, "q": 9}, l=image(5, 4, 9), r=image(0, 4, 9)),
        "gap-wider": of(
            {"k": 10, "q": 10}, J=grid([10], LINE), l=image(0, 4, 10), r=image(6, 4, 10)
        ),
        "gap-on-two-axes": of(
            {"a": 4, "b": 4, "d": 2, "k": 10, "q": 10},
            J=grid([5, 2], [[-1, 0], [1, 0]]),
            S=grid([2, 2], [[-1, 0], [1, 0]]),
            l=image(0, 4, 10),
            r=image(6, 4, 10),
        ),
    },
    "B19.cross-seam": {"seam-exchanged": of({}, l=image(4, 4, 8), r=image(0, 4, 8))},
    "B19.language-causal": {
        "filters-on-two-words": of(
            {"q": 2, "k": 2, "j": 2}, E=grid([2], [[-1], [0]]), F=grid([2], LINE)
        ),
    },
    "S.boundary-edge": {
        "edge-of-two-nodes": of(
            {"q": 2, "k": 2, "d": 3},
            N=grid([2], LINE, border="nearest"),
            E=grid([2], LINE, border="edge"),
        ),
    },
    "B19.sac-two_heads": {
        "two-heads-tiny-leak": of(
            {"q": 2, "k": 2, "j": 2, "d": 2},
            L=grid([2], [[0]], border="leaky", leak="1/1000000007"),
            E=grid([2], [[0], [1]]),
            c=["1000000007/1000000006"],
            f=["1/2000000012"],
        ),
    },
    "S.padding-constant_sums": {
        "sums-of-one-pixel-kernel": of({"d": 2}, **TWO_TAPS, W=["4", "4"], t=["4"], f=["4"]),
        "sums-of-weights-of-one": of({"d": 2}, **TWO_TAPS, W=["1", "1"], t=["1"], f=["1"]),
    },
    "A19.grid-cuboid": {
        "cuboid-of-three-axes": of(
            {"a": 4, "b": 4, "c": 2, "d": 2, "i": 2, "j": 2, "k": 4, "m": 8, "q": 8},
            U=grid([2, 2], [[0, 0], [1, 1]]),
            V=grid([2], [[-1], [1]]),
            E=grid([2, 2, 2], [[0, 0, -1], [0, 0, 1], [1, 1, -1], [1, 1, 1]]),
        ),
    },
}


SMALL_IDENTITIES = {f"{name}-all-two": all_two(name) for name in SMALL}
CERTIFICATES = altered(CHANGES) | named(
    {"relative-denominators": CASES["relative_heads"]},
    *(RANKS, WEIGHTS, BORDERS, COMMUTING, VARIATION, SMALL_IDENTITIES),
)
