"""Certificates of equality whose value maps do not undo what the heads do."""

from fractions import Fraction

from mutants import subjects
from mutants.mutant import wrong_certificate
from mutants.subjects import edited

from convattn.ledger.certificates.canonical import rational

T = 9  # offsets of a 3 × 3 kernel


def entries(change):
    """An edit of the value maps' entries [head, offset, coefficient]; None leaves one out."""

    def edit(body):
        changed = [
            (head, offset, change(head, offset, Fraction(v)))
            for head, offset, v in body["values"]["entries"]
        ]
        body["values"]["entries"] = [[h, o, rational(v)] for h, o, v in changed if v]

    return edit


def maps_exchanged(body):
    """Exchange the maps of heads 0 and 1."""
    body["values"]["entries"][:2] = [[0, 1, "1"], [1, 0, "1"]]


def denominators(change):
    """An edit of the Lagrange denominators."""

    def edit(body):
        body["values"]["denominators"] = change(body["values"]["denominators"])

    return edit


def node_one_forgotten(body):
    """Take Π (t_δ - t) over the other bases for the denominator, without the node 1."""
    bases = [int(b) for b in body["attention"]["bases"]]
    given = body["values"]["denominators"]
    body["values"]["denominators"] = [d // (b - 1) for d, b in zip(given, bases, strict=True)]


MUTANTS = (
    wrong_certificate(
        "certificate-maps-exchanged",
        "The value maps of two heads are exchanged.",
        subjects.LIMIT_BIAS,
        edited(subjects.LIMIT_BIAS, maps_exchanged),
        r"identity: sum over h of \(c at ",
    ),
    wrong_certificate(
        "certificate-no-one-over-one-minus-leak",
        "The maps are not divided by 1 - ε.",
        subjects.FINITE,
        edited(subjects.FINITE, entries(lambda h, o, v: v / 2 if h < T else v)),
        r"identity: sum over h of \(c at .* is 1/2, expected 1",
    ),
    wrong_certificate(
        "certificate-uniform-head-idle",
        "The uniform head does not take the leak back.",
        subjects.FINITE,
        edited(subjects.FINITE, entries(lambda h, o, v: v if h < T else None)),
        r"identity: sum over h of \(u0 .* is 1, expected 0",
    ),
    wrong_certificate(
        "certificate-uniform-head-adds",
        "The uniform head has the wrong sign.",
        subjects.FINITE,
        edited(subjects.FINITE, entries(lambda h, o, v: v if h < T else -v)),
        r"identity: sum over h of \(u0 .* is 2, expected 0",
    ),
    wrong_certificate(
        "certificate-leak-of-another-layer",
        "The biases leak 1/3, the maps undo 1/2.",
        subjects.FINITE,
        edited(subjects.FINITE, lambda body: body["attention"].update(leak="1/3")),
        r"identity: sum over h of \(c at .* is 4/3, expected 1",
    ),
    wrong_certificate(
        "certificate-lagrange-without-node-one",
        "The denominators forget the node 1, the weight of all other keys.",
        subjects.SCALAR,
        edited(subjects.SCALAR, node_one_forgotten),
        r"identity: sum over h of \(c at .*, expected 1",
    ),
    wrong_certificate(
        "certificate-lagrange-sign",
        "The denominators are products of t - t_δ, not of t_δ - t, and T is odd.",
        subjects.SCALAR,
        edited(subjects.SCALAR, denominators(lambda given: [-d for d in given])),
        r"identity: sum over h of \(c at .* is -1, expected 1",
    ),
    wrong_certificate(
        "certificate-lagrange-order",
        "The denominators stand in the reverse order of the bases.",
        subjects.SCALAR,
        edited(subjects.SCALAR, denominators(lambda given: given[::-1])),
        r"identity: sum over h of \(c at ",
    ),
)
