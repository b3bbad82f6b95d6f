"""Certificates against the print that are wrong: shared maps, ranks, saturation, borders."""

from mutants.mutant import wrong_certificate
from mutants.subjects import amended, edited

from convattn.ledger.certificates.counterexample import (
    border_certificate,
    no_shared_map_certificate,
    rank_certificate,
    saturation_certificate,
)

STATEMENT = "The printed statement fails."


def shared_map():
    """C20 Lemma 3 against softmax heads on two pixels."""
    first = {"relative": [[-1, "1/9"], [0, "1"], [1, "1"]]}
    second = {"relative": [[-1, "1"], [0, "1"], [1, "1/9"]]}
    return no_shared_map_certificate(STATEMENT, 1, 2, [first, second])


def rank():
    return rank_certificate(STATEMENT, [[1], [2], [3]], [[1, 1, 1]])


def alpha(value, exponent, conclusion):
    return lambda: saturation_certificate(STATEMENT, value, exponent, conclusion)


def border():
    return border_certificate("C20.padding", STATEMENT, [[1] * 3] * 3, (6, 8), 1, ((0, 0), (1, 1)))


def coefficients(body):
    """Turn one coefficient's sign."""
    first = body["inclusion"][0][0]
    first[0] = first[0][1:] if first[0].startswith("-") else "-" + first[0]


MUTANTS = (
    wrong_certificate(
        "separator-of-nothing",
        "The separator vanishes on the tap, so it separates nothing.",
        shared_map,
        amended(shared_map, separator=["0"] * 4),
        r"separator: tap 0 and the separator give 0",
    ),
    wrong_certificate(
        "separator-seen-by-a-head",
        "The separator is the tap's own indicator, which the heads see too.",
        shared_map,
        amended(shared_map, separator=["1", "0", "0", "1"]),
        r"separator: head 0 and the separator give ",
    ),
    wrong_certificate(
        "inclusion-with-a-wrong-sign",
        "A coefficient that writes a unit row through the heads' rows has the wrong sign.",
        shared_map,
        edited(shared_map, coefficients),
        r"inclusion: inclusion\[0\] for key 0 gives ",
    ),
    wrong_certificate(
        "hard-head-called-softmax",
        "A weight is 0 for a head with finite scores.",
        shared_map,
        edited(shared_map, lambda body: body["heads"][0]["relative"][0].__setitem__(1, "0")),
        r"realizable: heads\[0\] has a weight that is not positive",
    ),
    wrong_certificate(
        "row-that-sums-to-zero",
        "A head attends to nothing where its key is missing.",
        shared_map,
        edited(shared_map, lambda body: body["heads"].__setitem__(0, {"rows": [["0", "0"]] * 2})),
        r"realizable: heads\[0\] has .* expected weights with the sum 1",
    ),
    wrong_certificate(
        "rank-of-the-remark",
        "The rank is D_out - D_h, as C20 remarks.",
        rank,
        amended(rank, rank=2),
        r"rank: rank 2, computed 1",
    ),
    wrong_certificate(
        "alpha-46-vanishes",
        "At α = 46 the neighbours' weights are said to be zero in float32.",
        alpha(46, -149, "survives"),
        amended(alpha(46, -149, "survives"), conclusion="vanishes"),
        r"saturation: with alpha 46 .* not shown to be below 2\^-149",
    ),
    wrong_certificate(
        "alpha-104-survives",
        "At α = 104 they are said to be above 2^-149.",
        alpha(104, -150, "vanishes"),
        amended(alpha(104, -150, "vanishes"), conclusion="survives", exponent=-149),
        r"saturation: with alpha 104 .* not shown to be above 2\^-149",
    ),
    wrong_certificate(
        "alpha-103-rounds-to-zero",
        "α = 103 is one too low: e^-103 > 2^-149.",
        alpha(104, -150, "vanishes"),
        amended(alpha(104, -150, "vanishes"), alpha=103),
        r"saturation: with alpha 103 .* not shown to be below 2\^-150",
    ),
    wrong_certificate(
        "e-rounded-down",
        "The upper bound of e is 2.718.",
        alpha(46, -149, "survives"),
        amended(alpha(46, -149, "survives"), e_upper="1359/500"),
        r"series: e_lower .* do not enclose",
    ),
    wrong_certificate(
        "border-of-two-interior-tokens",
        "Both queries are interior, where the bare grid is right.",
        border,
        amended(border, queries=[[1, 1], [2, 2]], sums=[[9], [9]]),
        r"border: sums \[\[9\], \[9\]\], expected \[\[9\], \[9\]\], two lists that differ",
    ),
    wrong_certificate(
        "border-not-padded",
        "The sums at the border count the taps outside.",
        border,
        amended(border, sums=[[9], [9]]),
        r"border: sums \[\[9\], \[9\]\], expected \[\[4\], \[9\]\]",
    ),
)
