"""Identities that are wrong: another formula, another border, a basis that is none."""

from fractions import Fraction

from mutants.mutant import wrong_certificate
from mutants.subjects import edited

from convattn.ledger.certificates.identity import (
    border_cases,
    grid,
    identity_certificate,
    self_attentive_cases,
    structure_cases,
)


def original(claim, name):
    """Makes the committed certificate of an identity."""

    def make():
        cases = structure_cases() | self_attentive_cases() | border_cases()
        return identity_certificate(claim, name, *cases[claim, name])

    return make


INVERSE = original("A19.prop1", "inverse")
COMPOSITION = original("A19.prop3", "composition")
CUBOID = original("A19.grid", "cuboid")
NETWORK = original("A19.graph", "gcn")
COLUMNS = original("B19.softmax", "column_sums")
TWO_HEADS = original("B19.sac", "two_heads")
LANGUAGE = original("B19.language", "causal")
GAP = original("B19.cross", "gap")
EDGE = original("S.boundary", "edge")
MEAN = original("S.boundary", "mean")
SUMS = original("S.padding", "constant_sums")
SHARED = original("S.lemma3", "shared_map")


def tensor(name, change):
    """An edit of the body that changes one tensor."""

    def edit(body):
        body["tensors"][name] = change(body["tensors"][name])

    return edit


def transposed_dual(entries):
    return [entries[6 * column + row] for row in range(6) for column in range(6)]


def other_border(border):
    return lambda given: given | {"border": border}


def other_way(given):
    return given | {"shifts": [[-s for s in shift] for shift in given["shifts"]]}


MUTANTS = (
    wrong_certificate(
        "dual-transposed",
        "The inverse of the basis is transposed.",
        INVERSE,
        edited(INVERSE, tensor("c", transposed_dual)),
        r"identity: D\[.*\] is",
    ),
    wrong_certificate(
        "composition-pairs-in-another-order",
        "The parameters run through the pairs (l, k), the bases through (k, l).",
        COMPOSITION,
        edited(
            COMPOSITION,
            lambda body: body["definitions"].__setitem__(3, "R[(lk)pr] = T[kpq] S[lqr]"),
        ),
        r"claim: definitions is",
    ),
    wrong_certificate(
        "stride-of-eq-6-not-dilated",
        "The right cuboid's δ_i is taken for a stride, so that its taps stand side by side.",
        CUBOID,
        edited(CUBOID, tensor("V", lambda given: given | {"shifts": [[-1], [0], [1]]})),
        r"identity: C\[.*\] is",
    ),
    wrong_certificate(
        "gcn-is-the-laplacian",
        "The printed matrix of the graph convolution network, the normalised Laplacian.",
        NETWORK,
        edited(NETWORK, lambda body: body["tensors"].__setitem__("G", list(body["tensors"]["L"]))),
        r"identity: (P|C)\[.*\] is",
    ),
    wrong_certificate(
        "columns-that-are-rows-too",
        "A doubly stochastic matrix shows nothing about column sums.",
        COLUMNS,
        edited(COLUMNS, tensor("A", lambda _: ["1/3"] * 9)),
        r"identity: Y and V are the same",
    ),
    wrong_certificate(
        "uniform-head-forgets-the-number-of-keys",
        "The uniform head gives ε/(1-ε) of the sum over the keys, not of their mean.",
        TWO_HEADS,
        edited(TWO_HEADS, tensor("f", lambda _: ["1/2"])),
        r"identity: Y\[.*\] is",
    ),
    wrong_certificate(
        "causal-mask-with-centred-filters",
        "The value filters of a causal head read the next word.",
        LANGUAGE,
        edited(LANGUAGE, tensor("E", lambda given: given | {"shifts": [[0], [1]]})),
        r"identity: P\[.*\] is",
    ),
    wrong_certificate(
        "causal-mask-turned-around",
        "The mask lets a word see what comes after it.",
        LANGUAGE,
        edited(
            LANGUAGE,
            tensor("m", lambda _: [str(int(k >= q)) for q in range(5) for k in range(5)]),
        ),
        r"tensors: tensors.m is .* expected 'causal'",
    ),
    wrong_certificate(
        "gap-narrower-than-the-filters",
        "The filters reach two pixels, the gap is one wide.",
        GAP,
        edited(GAP, tensor("J", lambda given: given | {"shifts": [[-2], [0], [2]]})),
        r"identity: P\[.*\] is",
    ),
    wrong_certificate(
        "border-wraps-around",
        "The quadratic head beyond the edge comes back on the other side.",
        EDGE,
        edited(EDGE, tensor("E", other_border("torus"))),
        r"tensors: tensors.E has the border 'torus'",
    ),
    wrong_certificate(
        "nearest-with-the-sign-of-the-paper",
        "The heads' centres have the sign of q - k.",
        EDGE,
        edited(EDGE, tensor("N", other_way)),
        r"identity: N\[.*\] is",
    ),
    wrong_certificate(
        "mean-without-the-gain",
        "The values are not scaled by 1/(1-ε).",
        MEAN,
        edited(MEAN, tensor("c", lambda _: ["1"])),
        r"identity: Y\[.*\] is",
    ),
    wrong_certificate(
        "sums-that-differ",
        "The kernel (3, 5, 4) has other sums at the two nodes.",
        SUMS,
        edited(SUMS, tensor("W", lambda _: ["3", "5", "4"])),
        r"identity: T\[1\] is 8, but K\[1\] is|identity: T\[0\] is 9, but K\[0\] is",
    ),
    wrong_certificate(
        "one-map-for-each-query",
        "The map fits the first query only.",
        SHARED,
        edited(SHARED, tensor("A", lambda old: [*old[:12], *old[8:12], *old[16:]])),
        r"identity: R\[|identity: S\[",
    ),
    wrong_certificate(
        "grid-turned-around",
        "Keys minus queries have the other sign in the matrices of the convolution.",
        TWO_HEADS,
        edited(
            TWO_HEADS, tensor("L", lambda _: grid((3, 4), [(0, 1)], "leaky", leak=Fraction(1, 3)))
        ),
        r"identity: Y\[.*\] is",
    ),
)
