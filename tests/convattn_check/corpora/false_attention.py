"""Falsehoods about what heads attend to and about their values, where the geometry is right."""

from fractions import Fraction

import certificate_builder as build
from certificate_cases import CASES, all_at_once, drop, put, swap

from corpora.entry import altered


def head_without_value(target):
    def change(body):
        body["attention"]["targets"].append(target)
        body["heads"] += 1

    return change


def head_lost(body):
    """The first target, its head and its value; the other heads move up."""
    body["heads"] -= 1
    del body["attention"]["targets"][0]
    body["values"]["entries"] = [[h - 1, d, v] for h, d, v in body["values"]["entries"] if h]


def uniform_head_lost(body):
    body["heads"] -= 1
    body["attention"]["targets"].pop()
    body["values"]["entries"] = body["values"]["entries"][:9]


def signs_turned(body):
    """All values negated: what cancels still cancels."""
    for item in body["values"]["entries"]:
        item[2] = str(-Fraction(item[2]))


def leak_added(body):
    """The uniform head adds the leak once more where it should take it back."""
    for item in body["values"]["entries"][9:]:
        item[2] = item[2].removeprefix("-")


def plain_values(body):
    """1 at the target, as if the leak took nothing from it; -leak for the uniform head."""
    for item in body["values"]["entries"]:
        item[2] = "1" if item[2] == "3/2" else "-1/3"


def lagrange_times(factor):
    def change(body):
        for name in ("master", "denominators"):
            body["values"][name] = [factor * number for number in body["values"][name]]

    return change


def two_exponents_alike(body):
    body["attention"]["exponents"][3] = 2
    body["values"]["entries"] = [item for item in body["values"]["entries"] if item[0] < 3]


LAGRANGE = CASES["powers_lagrange"]
MASTER, DENOMINATORS = ["values", "master"], ["values", "denominators"]
SEVEN = 5040  # the product of 1 and the bases 2, …, 7
# Right in what they mean, but not as the format writes it.
CHANGES = {
    "wo": {
        "head-too-few": head_lost,
        "head-too-many": head_without_value([0, 0]),
        "head-not-counted": lambda body: body["attention"]["targets"].append([0, 0]),
        "target-twice": put(["attention", "targets", 0], [0, 0]),
        "target-no-offset": put(["attention", "targets", 0], [0, 2]),
        "limit-as-finite": put(["regime"], "finite"),
        "value-too-large": put(["values", "entries", 0], [0, 8, "2"]),
        "value-missing": drop(["values", "entries", 8]),
        "value-of-another-offset": put(["values", "entries", 0], [0, 7, "1"]),
        "values-swapped": all_at_once(
            put(["values", "entries", 3], [3, 4, "1"]), put(["values", "entries", 4], [4, 5, "1"])
        ),
        "lagrange-without-powers": put(
            ["values"], {"family": "lagrange", "master": [1], "denominators": []}
        ),
        "entry-of-no-offset": put(["values", "entries", 8], [8, 9, "1"]),
        "entry-of-no-head": put(["values", "entries", 8], [9, 0, "1"]),
        "entry-zero": put(["values", "entries", 0], [0, 8, "0"]),
        "entry-twice": put(["values", "entries", 1], [0, 8, "1"]),
        "entries-out-of-order": swap(["values", "entries"], 0, 1),
        "entry-of-the-last-offset": put(["values", "entries", 0], [0, -1, "1"]),
        "attention-without-names": put(["attention"], [["bias"]]),
        "values-without-names": put(["values"], [["sparse"]]),
    },
    "finite": {
        "uniform-head-missing": uniform_head_lost,
        "uniform-head-twice": put(["attention", "targets", 0], None),
        "targets-in-another-order": swap(["attention", "targets"], 3, 5),
        "finite-as-limit": put(["regime"], "limit"),
        "leak-zero": put(["attention", "leak"], "0"),
        "leak-one": put(["attention", "leak"], "1"),
        "leak-negative": put(["attention", "leak"], "-1/3"),
        "leak-above-one": put(["attention", "leak"], "3/2"),
        "leak-of-another-layer": put(["attention", "leak"], "2/3"),
        "heads-more-than-targets": put(["heads"], 11),
        "values-cancel-by-sign-only": signs_turned,
        "leak-added-twice": leak_added,
        "values-as-without-leak": plain_values,
        "uniform-value-missing": drop(["values", "entries", 17]),
        "uniform-value-off": put(["values", "entries", 17, 2], "-500001/1000000"),
    },
    "powers": {
        "powers-as-limit": put(["regime"], "limit"),
        "base-one": put(["attention", "bases", 0], "1"),
        "bases-equal": put(["attention", "bases", 0], "3"),
        "base-zero": put(["attention", "bases", 0], "0"),
        "base-negative": put(["attention", "bases", 0], "-2"),
        "base-of-another-layer": put(["attention", "bases", 0], "5/2"),
        "exponents-equal": two_exponents_alike,
        "exponent-off-by-one": put(["attention", "exponents", 3], 4),
        "power-value-off": put(["values", "entries", 0, 2], "-1"),
        "exponent-negative": put(["attention", "exponents", 0], -1),
    },
    "enumerated": {
        "code-twice": put(["attention", "codes", 1], -4),
        "spare-is-a-code": put(["attention", "spare"], -4),
    },
    "polygon": {
        "corners-too-few": put(["attention", "corners"], 5),
        "corner-twice-around": put(["attention", "codes", 1], 3 + 24),
        "corners-one": put(["attention", "corners"], 1),
        "corners-none": put(["attention", "corners"], 0),
    },
    "absolute": {
        "form-without-factor-two": put(["attention", "forms", 0, 3, 0], 1),
        "form-query-minus-key": put(["attention", "forms", 0, 3, 0], -2),
        "form-square-positive": put(["attention", "forms", 0, 3, 2], 1),
        "form-mixes-axes": put(["attention", "forms", 0, 0, 1], 1),
        "form-square-of-the-query": put(["attention", "forms", 0, 2, 0], 1),
        "form-halved": put(["attention", "forms", 0, 0, 0], 1),
    },
    "powers_lagrange": {
        "master-without-root-one": put(MASTER, build.polynomial([9, 2, 3, 4, 5, 6, 7])),
        "master-one-less": put([*MASTER, 0], -1 - SEVEN),
        "master-with-another-root": put(MASTER, build.polynomial([1, 3, 4, 5, 6, 7, 8])),
        "denominators-swapped": swap(DENOMINATORS, 0, 1),
        "denominator-sign": put([*DENOMINATORS, 0], -LAGRANGE["body"]["values"]["denominators"][0]),
        "denominator-zero": put([*DENOMINATORS, 0], 0),
        "lagrange-exponents-from-one": put(["attention", "exponents"], [*range(1, 8)]),
        "lagrange-of-a-rational-base": put(["attention", "bases", 0], "5/2"),
        "master-negated": lagrange_times(-1),
        "master-doubled": lagrange_times(2),
    },
}
CERTIFICATES = altered(CHANGES)
