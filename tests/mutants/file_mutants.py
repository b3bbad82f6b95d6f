"""Certificates that say something else than they were made for, or in another language."""

import copy

from mutants import subjects
from mutants.bound_mutants import three_channels
from mutants.mutant import text_of, wrong_certificate
from mutants.subjects import amended, edited

from convattn.ledger.certificates.canonical import CONVENTIONS, digest


def stale(part, *path_and_value):
    """The file after an edit, with the old digests: the only mutants that keep them."""

    def make(monkeypatch):
        certificate = copy.deepcopy(subjects.FINITE())
        *path, last, value = (part, *path_and_value)
        place = certificate
        for name in path:
            place = place[name]
        place[last] = value
        return text_of(certificate)

    return make


def specified(**fields):
    """The file after an edit of its specification, with new digests."""

    def make(monkeypatch):
        certificate = {**subjects.FINITE(), **fields}
        names = ("schema", "claim", "kind", "statement", "conventions")
        specification = {name: certificate[name] for name in names}
        certificate["digests"] = {
            "specification": digest(specification),
            "body": digest(certificate["body"]),
        }
        return text_of(certificate)

    return make


def leak(value):
    """An edit of the leak."""
    return lambda body: body["attention"].update(leak=value)


MUTANTS = (
    wrong_certificate(
        "hash-of-another-statement",
        "The statement was changed afterwards.",
        subjects.FINITE,
        stale("statement", "The layer is a convolution on the bare grid too."),
        r"stale: digests\.specification",
    ),
    wrong_certificate(
        "hash-of-another-body",
        "The ring was widened afterwards, and nothing was computed anew.",
        subjects.FINITE,
        stale("body", "ring", [[2, 2], [2, 2]]),
        r"digest: digests\.body",
    ),
    wrong_certificate(
        "not-a-number",
        "A division by zero wrote NaN for the leak.",
        subjects.FINITE,
        edited(subjects.FINITE, leak(float("nan"))),
        r"malformed: .*NaN",
    ),
    wrong_certificate(
        "infinite-bias",
        "M = ∞ is written out for the limit.",
        subjects.FINITE,
        edited(subjects.FINITE, leak(float("inf"))),
        r"malformed: .*Infinity",
    ),
    wrong_certificate(
        "float",
        "The leak is the floating-point number 0.5.",
        subjects.FINITE,
        edited(subjects.FINITE, leak(0.5)),
        r"malformed: .*0\.5",
    ),
    wrong_certificate(
        "float-for-an-integer",
        "The determinant comes from a floating-point elimination.",
        three_channels,
        amended(three_channels, determinant=1.0),
        r"malformed: .*1\.0",
    ),
    wrong_certificate(
        "truth-for-an-integer",
        "A comparison stands where a size should.",
        subjects.FINITE,
        amended(subjects.FINITE, patch_size=[True, True]),
        r"malformed: patch_size\[0\] is True",
    ),
    wrong_certificate(
        "rational-not-in-lowest-terms",
        "The leak is 2/4.",
        subjects.FINITE,
        edited(subjects.FINITE, leak("2/4")),
        r"malformed: attention\.leak",
    ),
    wrong_certificate(
        "other-sign-convention",
        "The certificate counts shifts as query - key, as L21 Lemma 2 does.",
        subjects.FINITE,
        specified(conventions={**CONVENTIONS, "shift": "query - key"}),
        r"schema: conventions",
    ),
    wrong_certificate(
        "channels-first",
        "The certificate's kernels are OIHW.",
        subjects.FINITE,
        specified(conventions={**CONVENTIONS, "kernel": "OIHW"}),
        r"schema: conventions",
    ),
    wrong_certificate(
        "certificate-of-another-claim",
        "A layer with finite scores is filed under C20 Theorem 1.",
        subjects.FINITE,
        specified(claim="C20.theorem1"),
        r"claim: C20\.theorem1 needs regime 'limit'",
    ),
)
