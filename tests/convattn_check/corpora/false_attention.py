"""Falsehoods about what heads attend to and about their values, where the geometry is right."""

from fractions import Fraction

import certificate_builder as build
from certificate_cases import CASES, drop, put

from corpora.entry import all_at_once, falsehoods, swap


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


def negated_lagrange(body):
    for name in ("master", "denominators"):
        body["values"][name] = [-number for number in body["values"][name]]


def doubled_lagrange(body):
    for name in ("master", "denominators"):
        body["values"][name] = [2 * number for number in body["values"][name]]


def two_exponents_alike(body):
    body["attention"]["exponents"][3] = 2
    body["values"]["entries"] = [item for item in body["values"]["entries"] if item[0] < 3]


LAGRANGE = CASES["powers_lagrange"]
SEVEN = 5040  # the product of 1 and the bases 2, …, 7
ATTENTION = [
    ("head-too-few", "wo", head_lost, "heads",
     "L21.wo needs as many heads as offsets", "eight heads for nine offsets"),
    ("head-too-many", "wo", head_without_value([0, 0]), "heads",
     "L21.wo needs as many heads as offsets", "a tenth head without a value"),
    ("head-not-counted", "wo", lambda body: body["attention"]["targets"].append([0, 0]), "heads",
     "heads is 9, but the attention describes 10", "ten heads are described, nine are counted"),
    ("uniform-head-missing", "finite", uniform_head_lost, "heads",
     "S.finite needs one head more than offsets", "nothing takes the leaks back"),
    ("uniform-head-twice", "finite", put(["attention", "targets", 0], None), "identity",
     "sum over h of (c at (-1, -1) of head h) * V[h][(-1, -1)] is 0, expected 1",
     "two uniform heads, and nobody attends to (-1, -1)"),
    ("target-twice", "wo", put(["attention", "targets", 0], [0, 0]), "identity",
     "(c at (0, 0) of head h) * V[h][(1, 1)] is 1, expected 0",
     "two heads attend to the token itself and none to (1, 1)"),
    ("target-no-offset", "wo", put(["attention", "targets", 0], [0, 2]), "attention",
     "the target (0, 2) is not an offset", "a head attends to a token that no tap reaches"),
    ("targets-in-another-order", "finite", swap(["attention", "targets"], 3, 5), "identity",
     "is 0, expected 1", "two heads have changed their targets and kept their values"),
    ("limit-as-finite", "wo", put(["regime"], "finite"), "realizable",
     "the regime is 'finite', expected 'limit'",
     "one-hot rows are limits: at no finite score is a weight 0"),
    ("finite-as-limit", "finite", put(["regime"], "limit"), "realizable",
     "the family is leaky_one_hot", "a row with a uniform part is no limit of its bias"),
    ("powers-as-limit", "powers", put(["regime"], "limit"), "realizable",
     "the family is scalar_power", "each key has a weight of 1 or more"),
    ("leak-zero", "finite", put(["attention", "leak"], "0"), "attention",
     "leak is 0, expected 0 < leak < 1", "without a leak the score is infinite"),
    ("leak-one", "finite", put(["attention", "leak"], "1"), "attention",
     "leak is 1, expected 0 < leak < 1", "all heads are uniform: nothing tells the offsets apart"),
    ("leak-negative", "finite", put(["attention", "leak"], "-1/3"), "attention",
     "leak is -1/3", "the keys off the target would have negative weights"),
    ("leak-above-one", "finite", put(["attention", "leak"], "3/2"), "attention", "leak is 3/2",
     "the target would have a negative share"),
    ("leak-of-another-layer", "finite", put(["attention", "leak"], "2/3"), "identity",
     "is 1/2, expected 1", "the values belong to the leak 1/3"),
    ("base-one", "powers", put(["attention", "bases", 0], "1"), "attention",
     "expected distinct positive rationals but 1", "base 1 has the weight of any other key"),
    ("bases-equal", "powers", put(["attention", "bases", 0], "3"), "attention",
     "bases ['3', '3', '4']", "no head tells the first two offsets apart"),
    ("base-zero", "powers", put(["attention", "bases", 0], "0"), "attention",
     "bases ['0', '3', '4']", "0 is the exponential of no score"),
    ("base-negative", "powers", put(["attention", "bases", 0], "-2"), "attention",
     "bases ['-2', '3', '4']", "-2 is the exponential of no score"),
    ("base-of-another-layer", "powers", put(["attention", "bases", 0], "5/2"), "identity",
     "V[h][(-1,)] is", "the values invert the powers of 2"),
    ("exponents-equal", "powers", two_exponents_alike, "attention",
     "exponents [0, 1, 2, 2], expected distinct integers", "two heads attend alike"),
    ("exponent-off-by-one", "powers", put(["attention", "exponents", 3], 4), "identity",
     "expected 1", "the values invert the powers 0 to 3"),
    ("code-twice", "enumerated", put(["attention", "codes", 1], -4), "attention",
     "expected distinct integers", "two offsets share a code, so that their heads are one"),
    ("spare-is-a-code", "enumerated", put(["attention", "spare"], -4), "attention",
     "and spare -4, expected distinct integers", "all keys far away are attended to as well"),
    ("corners-too-few", "polygon", put(["attention", "corners"], 5), "attention",
     "expected integers that differ modulo 5", "six codes on a pentagon: two fall together"),
    ("corner-twice-around", "polygon", put(["attention", "codes", 1], 3 + 24), "attention",
     "expected integers that differ modulo 12", "3 and 27 are the same corner of twelve"),
    ("corners-one", "polygon", put(["attention", "corners"], 1), "attention",
     "expected integers that differ modulo 1", "all codes are the same corner"),
    ("heads-more-than-targets", "finite", put(["heads"], 11), "heads",
     "heads is 11, but the attention describes 10", "the eleventh head attends to nothing"),
    ("corners-none", "polygon", put(["attention", "corners"], 0), "range",
     "attention.corners is 0", "a polygon without corners"),
    ("form-without-factor-two", "absolute", put(["attention", "forms", 0, 3, 0], 1), "attention",
     "form 0 is", "the cross term with the target is 2·target, here 2"),
    ("form-query-minus-key", "absolute", put(["attention", "forms", 0, 3, 0], -2), "attention",
     "form 0 is", "shift is key - query: with the target's sign turned the head looks back"),
    ("form-square-positive", "absolute", put(["attention", "forms", 0, 3, 2], 1), "attention",
     "form 0 is", "+abs(k)² has its maximum far away"),
    ("form-mixes-axes", "absolute", put(["attention", "forms", 0, 0, 1], 1), "attention",
     "form 0 is", "the row of the query has part in the column of the key"),
    ("form-square-of-the-query", "absolute", put(["attention", "forms", 0, 2, 0], 1), "attention",
     "form 0 is", "abs(q)²·k is no part of abs(k - q - target)²"),
    ("form-halved", "absolute", put(["attention", "forms", 0, 0, 0], 1), "attention",
     "form 0 is", "1·q·k instead of 2·q·k: the maximum lies half way"),
]  # fmt: skip
VALUES = [
    ("value-too-large", "wo", put(["values", "entries", 0], [0, 8, "2"]), "identity",
     "V[h][(1, 1)] is 2, expected 1", "twice what the offset (1, 1) contributes"),
    ("value-missing", "wo", drop(["values", "entries", 8]), "identity",
     "V[h][(-1, -1)] is 0, expected 1", "the offset (-1, -1) contributes nothing"),
    ("value-of-another-offset", "wo", put(["values", "entries", 0], [0, 7, "1"]), "identity",
     "(c at (1, 1) of head h) * V[h][(1, 0)] is 1, expected 0",
     "what is seen at (1, 1) goes through the map of (1, 0)"),
    ("values-swapped", "wo", all_at_once(put(["values", "entries", 3], [3, 4, "1"]),
     put(["values", "entries", 4], [4, 5, "1"])), "identity", "expected 1",
     "two heads have changed their maps"),
    ("values-cancel-by-sign-only", "finite", signs_turned, "identity",
     "is -1, expected 1", "the leaks cancel, and the layer is minus the convolution"),
    ("leak-added-twice", "finite", leak_added, "identity", "(u0 of head h)",
     "the uniform head has the wrong sign: the leaks add up"),
    ("values-as-without-leak", "finite", plain_values, "identity", "is 2/3, expected 1",
     "maps that are not scaled by 1/(1 - leak)"),
    ("uniform-value-missing", "finite", drop(["values", "entries", 17]), "identity",
     "sum over h of (u0 of head h) * V[h][(1, 1)] is 1/2, expected 0",
     "the leak of one offset is not taken back"),
    ("uniform-value-off", "finite", put(["values", "entries", 17, 2], "-500001/1000000"),
     "identity", "(u0 of head h) * V[h][(1, 1)]", "the leak is taken back but for a millionth"),
    ("power-value-off", "powers", put(["values", "entries", 0, 2], "-1"), "identity",
     "sum over h of (u1 of head h) * V[h][(-1,)] is 5, expected 0",
     "one coefficient of the inverse is another"),
    ("master-without-root-one", LAGRANGE, put(["values", "master"],
     build.polynomial([9, 2, 3, 4, 5, 6, 7])), "identity", "expected 1",
     "the heads together see the keys far away: the master has no root 1"),
    ("master-one-less", LAGRANGE, put(["values", "master", 0], -1 - SEVEN), "values",
     "at the base 2 the master is -1", "no base is a root of it"),
    ("master-with-another-root", LAGRANGE, put(["values", "master"],
     build.polynomial([1, 3, 4, 5, 6, 7, 8])), "values", "at the base 2 the master is",
     "the roots are 1, 3, …, 8, the bases 2, …, 7"),
    ("denominators-swapped", LAGRANGE, swap(["values", "denominators"], 0, 1), "identity",
     "expected 1", "two columns are scaled by each other's factors"),
    ("denominator-sign", LAGRANGE, put(["values", "denominators", 0],
     -LAGRANGE["body"]["values"]["denominators"][0]), "identity", "is -1, expected 1",
     "one column of the inverse has the wrong sign"),
    ("denominator-zero", LAGRANGE, put(["values", "denominators", 0], 0), "values",
     "expected not 0", "a division by zero"),
    ("lagrange-exponents-from-one", LAGRANGE, put(["attention", "exponents"], [*range(1, 8)]),
     "values", "and the exponents 0, 1, ..., 6", "the coefficients belong to the exponents 0 to 6"),
    ("lagrange-without-powers", "wo", put(["values"], {"family": "lagrange", "master": [1],
     "denominators": []}), "values", "'lagrange' came with attention 'one_hot_limit'",
     "one-hot rows are no powers"),
    ("lagrange-of-a-rational-base", LAGRANGE, put(["attention", "bases", 0], "5/2"), "values",
     "expected 'scalar_power' with integer bases", "the quotients are those of integers"),
    ("entry-of-no-offset", "wo", put(["values", "entries", 8], [8, 9, "1"]), "range",
     "values.entries[8] is 9, expected 0 to 8", "a value for a tenth offset of nine"),
    ("entry-of-no-head", "wo", put(["values", "entries", 8], [9, 0, "1"]), "range",
     "values.entries[8] is 9, expected 0 to 8", "a value for a tenth head of nine"),
]  # fmt: skip
# Right in what they mean, but not as the format writes it.
FORM = [
    ("entry-zero", "wo", put(["values", "entries", 0], [0, 8, "0"]), "values",
     "with a coefficient that is not zero", "a zero that should not be written"),
    ("entry-twice", "wo", put(["values", "entries", 1], [0, 8, "1"]), "values",
     "expected the next pair", "the same head and offset twice: which one counts?"),
    ("entries-out-of-order", "wo", swap(["values", "entries"], 0, 1), "values",
     "expected the next pair", "heads in falling order"),
    ("entry-of-the-last-offset", "wo", put(["values", "entries", 0], [0, -1, "1"]), "range",
     "values.entries[0] is -1, expected 0 to 8", "the last offset has the number 8, not -1"),
    ("attention-without-names", "wo", put(["attention"], [["bias"]]), "malformed",
     "attention.family is None", "a list in the place of an object"),
    ("values-without-names", "wo", put(["values"], [["sparse"]]), "malformed",
     "values.family is None", "a list in the place of an object"),
    ("master-negated", LAGRANGE, negated_lagrange, "values", "master leads with -1, expected 1",
     "the same values in another form: the master is not monic"),
    ("master-doubled", LAGRANGE, doubled_lagrange, "values", "master leads with 2, expected 1",
     "the same values in another form: the master is not monic"),
    ("exponent-negative", "powers", put(["attention", "exponents", 0], -1), "range",
     "attention.exponents[0] is -1", "the format's exponents are not negative"),
]  # fmt: skip
ENTRIES = [*falsehoods(ATTENTION + VALUES), *falsehoods(FORM, "form")]
