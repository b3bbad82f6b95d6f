"""Truths at the edge about layers that are every convolution of a size."""

import certificate_builder as build
from certificate_cases import CASES, changed, put

from corpora.entry import all_at_once, truths, update

LARGE = 2**521 - 1  # a prime
MANY = 10**200


def leaky(**sizes):
    return build.leaky_equality(**sizes)


def powers(**sizes):
    return build.power_equality(**sizes)


def limit(claim, score, **sizes):
    return build.limit_equality(claim, score, **sizes)


def far_form(body):
    """The last column adds a function of the query alone, whatever it holds."""
    for number, form in enumerate(body["attention"]["forms"]):
        for row in form:
            row[-1] = (-1) ** number * 10**18


def codes_far_apart(body):
    body["attention"] |= {"codes": [10**18 - 3 * n for n in range(9)], "spare": -(10**18)}


def corners_as_many_as_offsets(body):
    body["attention"] |= {"corners": 6, "codes": [5, 4, 3, 2, 1, 0]}


def corners_by_residue(body):
    """The codes are far apart, of both signs; modulo 1009 they are 0 to 5."""
    codes = [n + (-1) ** n * 1009 * 10**14 for n in range(6)]
    body["attention"] |= {"corners": 1009, "codes": codes}


def in_order(body):
    body["attention"]["targets"] = body["offsets"]
    body["values"] = build.sparse((h, h, 1) for h in range(9))


POINTS = [
    ("finite-K1", leaky(kernel=(1,)), "2 heads", "K = 1 on a line: a head and the uniform one"),
    ("finite-K1x1", leaky(kernel=(1, 1)), "2 heads (leaky_one_hot, finite scores) on the grid with "
     "the zero ring [[0, 0], [0, 0]] are the zero-padded convolution", "K = 1 on an image"),
    ("finite-K1-P9", leaky(kernel=(1, 1), patch=(9, 1)), "patch (9, 1)", "K = 1 on long patches"),
    ("dp1-K1", powers(kernel=(1,)), "2 heads (scalar_power", "K = 1 by one positional feature"),
    ("dp1-K1-lagrange", powers(kernel=(1,), lagrange=True), "2 heads (scalar_power",
     "Lagrange's form for one offset"),
    ("dp1-K1-exponents", powers(kernel=(1,), exponents=[7, 3]), "2 heads",
     "two exponents in falling order, none of them 0"),
    ("dp1-K1-exponent-largest", powers(kernel=(1,), bases=["2"], exponents=[0, 400]), "2 heads",
     "the value 1/(2^400 - 1)"),
    ("dp1-K1-base-below-one", powers(kernel=(1,), bases=["1/2"]), "2 heads",
     "a base below 1: the target has less weight than all other keys"),
    ("dp2-K1", limit("S.dp2", "enumerated", kernel=(1,)), "1 heads", "one offset, one code"),
    ("dp2-K1x1-P2", limit("S.dp2", "enumerated", kernel=(1, 1), patch=(2, 2)), "1 heads",
     "one offset on an image of patches"),
    ("sharpness-K1", build.leaky_equality("S.sharpness", kernel=(1,)), "2 heads", "on a line"),
    ("sharpness-leak", build.leaky_equality("S.sharpness", kernel=(1, 1), leak=f"1/{LARGE}"),
     "2 heads", "a leak of 2^-521"),
    ("network-K1", build.leaky_equality("S.network", kernel=(1, 1), stride=(2, 2)),
     "stride (2, 2)", "the shortcut of a residual network"),
    ("theorem6-K1-P1x64", limit("L21.theorem6", "bias", kernel=(1, 1), patch=(2, 16)),
     "1 heads", "K = 1 on rectangular patches"),
    ("pad-K1x2", build.leaky_equality("S.pad", kernel=(1, 2)), "1x2 kernel",
     "two taps, on one axis"),
]  # fmt: skip
SIZES = [
    ("lemma1-K1x3", limit("C20.lemma1", "given", kernel=(1, 3)), "3 heads", "a row of three taps"),
    ("lemma1-K3x1", limit("C20.lemma1", "given", kernel=(3, 1)), "3 heads", "a column of three"),
    ("theorem1-K1x7", limit("C20.theorem1", "quadratic", kernel=(1, 7)), "7 heads",
     "a row of seven taps"),
    ("theorem1-K5x1-P2x3", limit("C20.theorem1", "quadratic", kernel=(5, 1), patch=(2, 3)),
     "3 heads", "another patch on each axis"),
    ("padding-K3x1", limit("C20.padding", "quadratic", kernel=(3, 1)), "3 heads", "no ring across"),
    ("sequence-K3", limit("C20.sequence", "quadratic", kernel=(3,)), "3 heads", "three taps"),
    ("sequence-K63", limit("C20.sequence", "quadratic", kernel=(63,)), "63 heads",
     "the largest odd kernel of a sequence"),
    ("finite-K2", leaky(kernel=(2,)), "3 heads", "two taps: 0 and 1"),
    ("finite-K64", leaky(kernel=(64,)), "65 heads", "the largest kernel"),
    ("finite-K2x2", leaky(kernel=(2, 2)), "5 heads", "an even kernel on two axes"),
    ("finite-K4-P3", leaky(kernel=(4,), patch=(3,)), "4 heads", "taps -1 to 2 on patches of three"),
    ("finite-K2-P2", leaky(kernel=(2,), patch=(2,)), "3 heads", "offsets 0 and 1 alone"),
    ("finite-K3-P31", leaky(kernel=(3,), patch=(31,)), "4 heads", "a long patch, a short kernel"),
    ("finite-K5-P2", leaky(kernel=(5,), patch=(2,)), "4 heads", "K = 2P + 1: still three offsets"),
    ("finite-K6-P2", leaky(kernel=(6,), patch=(2,)), "5 heads", "one tap more: four offsets"),
    ("dp1-K2", powers(kernel=(2,)), "3 heads", "two taps by one positional feature"),
    ("dp1-K7", powers(kernel=(7,), lagrange=True), "8 heads", "Lagrange's form for seven"),
    ("dp2-K2", limit("S.dp2", "enumerated", kernel=(2,)), "2 heads", "two codes"),
    ("dp2-K2x5-P3x1", limit("S.dp2", "enumerated", kernel=(2, 5), patch=(3, 1)), "10 heads",
     "an even side and an odd one"),
    ("polygon-four", limit("S.polygon", "polygon", kernel=(4,)), "4 heads",
     "the fewest offsets for which the claim is made"),
    ("cor4-K3", limit("L21.cor4", "bias", kernel=(3, 3), patch=(1, 1)), "9 heads",
     "K = 3 = 2P + 1"),
    ("cor4-K3x5-P1x2", limit("L21.cor4", "bias", kernel=(3, 5), patch=(1, 2)), "9 heads",
     "K = 2P + 1 on both axes, unlike"),
    ("cor4-K3-P7", limit("L21.cor4", "bias", kernel=(3, 3), patch=(7, 7)), "9 heads",
     "K = 3 on wide patches"),
    ("cor3-K1x3", limit("L21.cor3", "bias", kernel=(1, 3)), "3 heads", "K = 1 on one axis"),
    ("wo-K1x3-P1x2", limit("L21.wo", "bias", kernel=(1, 3), patch=(1, 2)), "3 heads",
     "K = 1 on one axis, patches on the other"),
    ("absolute-K1x3", limit("L21.absolute", "absolute", kernel=(1, 3)), "3 heads",
     "targets along one axis"),
    ("absolute-K3x3-P1x5", limit("L21.absolute", "absolute", kernel=(3, 3), patch=(1, 5)),
     "9 heads", "patches on one axis"),
    ("network-K1x3", build.leaky_equality("S.network", kernel=(1, 3)), "4 heads",
     "a row of three in a network"),
    ("pad-K2-P3", build.leaky_equality("S.pad", kernel=(2,), patch=(3,)), "filled in any way",
     "an even kernel, a ring on one side"),
]  # fmt: skip
STEPS = [
    ("stride-64", limit("C20.stride", "quadratic", kernel=(1, 3), stride=(1, 64)),
     "stride (1, 64)", "the largest stride, on one axis"),
    ("stride-above-kernel", limit("C20.stride", "quadratic", kernel=(3, 1), stride=(5, 5)),
     "stride (5, 5)", "a stride that leaves pixels unread"),
    ("stride-is-patch", limit("L21.variants", "bias", kernel=(3, 3), patch=(4, 4), stride=(4, 4),
     route="tokens"), "stride (4, 4) (tokens)", "one output pixel a token"),
    ("stride-empty-pattern", leaky(kernel=(3,), patch=(4,), stride=(4,), route="tokens"),
     "4 heads", "no output pixel is left that reads the token after"),
    ("stride-one-tokens", leaky(kernel=(3,), patch=(2,), route="tokens"), "(tokens)",
     "stride 1 straight to the tokens drops nothing"),
    ("stride-subsample-odd", limit("L21.variants", "bias", kernel=(3, 1), patch=(2, 2),
     stride=(3, 1)), "(subsample)", "a stride that does not divide the patch"),
    ("stride-on-one-axis", limit("L21.variants", "bias", kernel=(3, 3), patch=(2, 6),
     stride=(1, 3), route="tokens"), "stride (1, 3)", "a divisor of the patch on one axis"),
    ("dilation-64", limit("C20.dilation", "quadratic", kernel=(1, 3), dilation=(1, 64)),
     "dilation (1, 64)", "the largest dilation: a ring of 64"),
    ("dilation-no-effect", leaky(kernel=(1,), dilation=(64,)), "2 heads",
     "with K = 1 a dilation shows nowhere"),
    ("dilation-skips-tokens", leaky(kernel=(3,), patch=(2,), dilation=(5,)), "6 heads",
     "the offsets -3, -2, 0, 2, 3"),
    ("dilation-is-patch", leaky(kernel=(3,), patch=(4,), dilation=(4,)), "4 heads",
     "each pixel reads the same pixel of its neighbours"),
    ("dilation-even-kernel", leaky(kernel=(2,), dilation=(64,)), "3 heads", "offsets 0 and 64"),
    ("dilation-beside-K1", limit("C20.dilation", "quadratic", kernel=(3, 1), dilation=(2, 3)),
     "dilation (2, 3)", "a dilation on an axis with K = 1 beside one that shows"),
    ("dilation-and-stride", limit("L21.variants", "bias", kernel=(3, 3), patch=(2, 2),
     dilation=(3, 1), stride=(1, 2), route="tokens"), "dilation (3, 1)", "both, on two axes"),
    ("network-strided", build.leaky_equality("S.network", kernel=(3, 1), stride=(7, 1)),
     "stride (7, 1)", "a stride above the kernel in a network"),
]  # fmt: skip
NUMBERS = [
    ("leak-tiny", leaky(kernel=(3,), leak=f"1/{MANY}"), "finite scores", "a leak of 10^-200"),
    ("leak-near-one", leaky(kernel=(3,), leak=f"{MANY - 1}/{MANY}"), "finite scores",
     "a leak of 1 - 10^-200: the rows are nearly uniform"),
    ("leak-prime", leaky(kernel=(2,), leak=f"{LARGE - 1}/{LARGE}"), "finite scores",
     "a denominator of 157 digits"),
    ("leak-above-half", leaky(kernel=(1, 1), leak="2/3"), "finite scores", "values 3 and -2"),
    ("bases-near-one", powers(kernel=(2,), bases=["1000001/1000000", "999999/1000000"]),
     "scalar_power", "bases on both sides of 1, a millionth away"),
    ("bases-reciprocal", powers(kernel=(2,), bases=["2", "1/2"]), "scalar_power",
     "the product of the bases is 1"),
    ("bases-tiny", powers(kernel=(2,), bases=[f"1/{10**50}", f"2/{10**50 + 1}"]),
     "scalar_power", "bases of 10^-50: nearly masked"),
    ("bases-falling", powers(kernel=(3,), bases=["9", "5/7", "2"]), "scalar_power",
     "bases in no order, integers and not"),
    ("exponents-apart", powers(kernel=(2,), exponents=[0, 1, 64]), "scalar_power",
     "a gap of 63 between two exponents"),
    ("exponents-in-no-order", powers(kernel=(3,), exponents=[4, 0, 9, 2]), "scalar_power",
     "a generalised Vandermonde matrix, its rows in no order"),
    ("lagrange-large-bases", powers(kernel=(2,), bases=[10**30, 10**30 + 1], lagrange=True),
     "scalar_power", "bases of 31 digits, one apart"),
    ("codes-far-apart", changed(limit("S.dp2", "enumerated", kernel=(3, 3)), codes_far_apart),
     "enumerated", "codes up to 10^18, a spare of -10^18"),
    ("codes-negative", changed(CASES["enumerated"], put(["attention", "codes"],
     [*range(-9, 0)])), "enumerated", "negative codes, in a row"),
    ("corners-as-offsets", changed(CASES["polygon"], corners_as_many_as_offsets), "polygon",
     "as many corners as offsets"),
    ("corners-by-residue", changed(CASES["polygon"], corners_by_residue), "polygon",
     "1,009 corners, codes of 18 digits and both signs"),
    ("forms-last-column", changed(CASES["absolute"], far_form), "absolute",
     "the last column of a form is free"),
    ("ring-wide", changed(CASES["wo"], put(["ring"], [[4096, 1], [1, 4096]])), "[4096, 1]",
     "a ring far wider than needed"),
    ("ring-one-sided", leaky(kernel=(2, 2), patch=(1, 3)), "[[0, 1], [0, 1]]",
     "K = 2 needs no ring before"),
    ("heads-in-order", changed(CASES["wo"], in_order), "9 heads",
     "heads in the order of the offsets: any order will do"),
    ("uniform-head-first", changed(leaky(kernel=(1,)), all_at_once(
     put(["attention", "targets"], [None, [0]]),
     update(values=build.sparse([(0, 0, -1), (1, 0, 2)])))), "2 heads", "the uniform head first"),
    ("exactly-by-given-score", limit("C20.lemma1", "given", kernel=(3, 5)), "scores given",
     "the lemma's hypothesis, not a score"),
]  # fmt: skip
ENTRIES = truths(POINTS + SIZES + STEPS + NUMBERS)
