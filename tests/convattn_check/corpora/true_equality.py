"""Truths at the edge about layers that are every convolution of a size."""

import certificate_builder as build
from certificate_cases import all_at_once, changed, put, update

from corpora.entry import altered, named

LARGE = 2**521 - 1  # a prime
MANY = 10**200


leaky, powers, limit = build.leaky_equality, build.power_equality, build.limit_equality


def variant(kernel=(3, 3), **sizes):
    return limit("L21.variants", "bias", kernel=kernel, **sizes)


def far_form(body):
    """The last column adds a function of the query alone, whatever it holds."""
    for number, form in enumerate(body["attention"]["forms"]):
        for row in form:
            row[-1] = (-1) ** number * 10**18


def attention(**fields):
    return lambda body: body["attention"].update(fields)


def in_order(body):
    body["attention"]["targets"] = body["offsets"]
    body["values"] = build.sparse((h, h, 1) for h in range(9))


POINTS = {
    "finite-K1": leaky(kernel=(1,)),
    "finite-K1x1": leaky(kernel=(1, 1)),
    "finite-K1-P9": leaky(kernel=(1, 1), patch=(9, 1)),
    "dp1-K1": powers(kernel=(1,)),
    "dp1-K1-lagrange": powers(kernel=(1,), lagrange=True),
    "dp1-K1-exponents": powers(kernel=(1,), exponents=[7, 3]),
    "dp1-K1-exponent-largest": powers(kernel=(1,), bases=["2"], exponents=[0, 400]),
    "dp1-K1-base-below-one": powers(kernel=(1,), bases=["1/2"]),
    "dp2-K1": limit("S.dp2", "enumerated", kernel=(1,)),
    "dp2-K1x1-P2": limit("S.dp2", "enumerated", kernel=(1, 1), patch=(2, 2)),
    "sharpness-K1": leaky("S.sharpness", kernel=(1,)),
    "sharpness-leak": leaky("S.sharpness", kernel=(1, 1), leak=f"1/{LARGE}"),
    "network-K1": leaky("S.network", kernel=(1, 1), stride=(2, 2)),
    "theorem6-K1-P1x64": limit("L21.theorem6", "bias", kernel=(1, 1), patch=(2, 16)),
    "pad-K1x2": leaky("S.pad", kernel=(1, 2)),
}
SIZES = {
    "lemma1-K1x3": limit("C20.lemma1", "given", kernel=(1, 3)),
    "lemma1-K3x1": limit("C20.lemma1", "given", kernel=(3, 1)),
    "theorem1-K1x7": limit("C20.theorem1", "quadratic", kernel=(1, 7)),
    "theorem1-K5x1-P2x3": limit("C20.theorem1", "quadratic", kernel=(5, 1), patch=(2, 3)),
    "padding-K3x1": limit("C20.padding", "quadratic", kernel=(3, 1)),
    "sequence-K3": limit("C20.sequence", "quadratic", kernel=(3,)),
    "sequence-K63": limit("C20.sequence", "quadratic", kernel=(63,)),
    "finite-K2": leaky(kernel=(2,)),
    "finite-K64": leaky(kernel=(64,)),
    "finite-K2x2": leaky(kernel=(2, 2)),
    "finite-K4-P3": leaky(kernel=(4,), patch=(3,)),
    "finite-K2-P2": leaky(kernel=(2,), patch=(2,)),
    "finite-K3-P31": leaky(kernel=(3,), patch=(31,)),
    "finite-K5-P2": leaky(kernel=(5,), patch=(2,)),
    "finite-K6-P2": leaky(kernel=(6,), patch=(2,)),
    "dp1-K2": powers(kernel=(2,)),
    "dp1-K7": powers(kernel=(7,), lagrange=True),
    "dp2-K2": limit("S.dp2", "enumerated", kernel=(2,)),
    "dp2-K2x5-P3x1": limit("S.dp2", "enumerated", kernel=(2, 5), patch=(3, 1)),
    "polygon-four": limit("S.polygon", "polygon", kernel=(4,)),
    "cor4-K3": limit("L21.cor4", "bias", kernel=(3, 3), patch=(1, 1)),
    "cor4-K3x5-P1x2": limit("L21.cor4", "bias", kernel=(3, 5), patch=(1, 2)),
    "cor4-K3-P7": limit("L21.cor4", "bias", kernel=(3, 3), patch=(7, 7)),
    "cor3-K1x3": limit("L21.cor3", "bias", kernel=(1, 3)),
    "wo-K1x3-P1x2": limit("L21.wo", "bias", kernel=(1, 3), patch=(1, 2)),
    "absolute-K1x3": limit("L21.absolute", "absolute", kernel=(1, 3)),
    "absolute-K3x3-P1x5": limit("L21.absolute", "absolute", kernel=(3, 3), patch=(1, 5)),
    "network-K1x3": leaky("S.network", kernel=(1, 3)),
    "pad-K2-P3": leaky("S.pad", kernel=(2,), patch=(3,)),
}
STEPS = {
    "stride-64": limit("C20.stride", "quadratic", kernel=(1, 3), stride=(1, 64)),
    "stride-above-kernel": limit("C20.stride", "quadratic", kernel=(3, 1), stride=(5, 5)),
    "stride-is-patch": variant(patch=(4, 4), stride=(4, 4), route="tokens"),
    "stride-empty-pattern": leaky(kernel=(3,), patch=(4,), stride=(4,), route="tokens"),
    "stride-one-tokens": leaky(kernel=(3,), patch=(2,), route="tokens"),
    "stride-subsample-odd": variant(kernel=(3, 1), patch=(2, 2), stride=(3, 1)),
    "stride-on-one-axis": variant(patch=(2, 6), stride=(1, 3), route="tokens"),
    "dilation-64": limit("C20.dilation", "quadratic", kernel=(1, 3), dilation=(1, 64)),
    "dilation-no-effect": leaky(kernel=(1,), dilation=(64,)),
    "dilation-skips-tokens": leaky(kernel=(3,), patch=(2,), dilation=(5,)),
    "dilation-is-patch": leaky(kernel=(3,), patch=(4,), dilation=(4,)),
    "dilation-even-kernel": leaky(kernel=(2,), dilation=(64,)),
    "dilation-beside-K1": limit("C20.dilation", "quadratic", kernel=(3, 1), dilation=(2, 3)),
    "dilation-and-stride": variant(patch=(2, 2), dilation=(3, 1), stride=(1, 2), route="tokens"),
    "network-strided": leaky("S.network", kernel=(3, 1), stride=(7, 1)),
}
NUMBERS = {
    "leak-tiny": leaky(kernel=(3,), leak=f"1/{MANY}"),
    "leak-near-one": leaky(kernel=(3,), leak=f"{MANY - 1}/{MANY}"),
    "leak-prime": leaky(kernel=(2,), leak=f"{LARGE - 1}/{LARGE}"),
    "leak-above-half": leaky(kernel=(1, 1), leak="2/3"),
    "bases-near-one": powers(kernel=(2,), bases=["1000001/1000000", "999999/1000000"]),
    "bases-reciprocal": powers(kernel=(2,), bases=["2", "1/2"]),
    "bases-tiny": powers(kernel=(2,), bases=[f"1/{10**50}", f"2/{10**50 + 1}"]),
    "bases-falling": powers(kernel=(3,), bases=["9", "5/7", "2"]),
    "exponents-apart": powers(kernel=(2,), exponents=[0, 1, 64]),
    "exponents-in-no-order": powers(kernel=(3,), exponents=[4, 0, 9, 2]),
    "lagrange-large-bases": powers(kernel=(2,), bases=[10**30, 10**30 + 1], lagrange=True),
    "codes-far-apart": changed(
        limit("S.dp2", "enumerated", kernel=(3, 3)),
        attention(codes=[10**18 - 3 * n for n in range(9)], spare=-(10**18)),
    ),
    "ring-one-sided": leaky(kernel=(2, 2), patch=(1, 3)),
    "uniform-head-first": changed(
        leaky(kernel=(1,)),
        all_at_once(
            put(["attention", "targets"], [None, [0]]),
            update(values=build.sparse([(0, 0, -1), (1, 0, 2)])),
        ),
    ),
    "exactly-by-given-score": limit("C20.lemma1", "given", kernel=(3, 5)),
}
CHANGES = {
    "enumerated": {"codes-negative": put(["attention", "codes"], [*range(-9, 0)])},
    "polygon": {
        "corners-as-offsets": attention(corners=6, codes=[5, 4, 3, 2, 1, 0]),
        # The codes are far apart, of both signs; modulo 1009 they are 0 to 5.
        "corners-by-residue": attention(
            corners=1009, codes=[n + (-1) ** n * 1009 * 10**14 for n in range(6)]
        ),
    },
    "absolute": {"forms-last-column": far_form},
    "wo": {
        "ring-wide": put(["ring"], [[4096, 1], [1, 4096]]),
        "heads-in-order": in_order,
    },
}
CERTIFICATES = altered(CHANGES) | named(POINTS, SIZES, STEPS, NUMBERS)
