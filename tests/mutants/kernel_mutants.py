"""Certificates about one given kernel that are wrong: too few heads, too near, too many."""

from fractions import Fraction

from mutants.mutant import wrong_certificate
from mutants.subjects import amended, edited

from convattn.ledger.certificates.given_kernel import (
    approximation_certificate,
    kernel_heads_certificate,
)
from convattn.ledger.certificates.given_kernel_catalogue import named_kernel

STATEMENT = "So many heads, and no fewer."


def sobel():
    return kernel_heads_certificate(STATEMENT, named_kernel("sobel"))


def laplace():
    return kernel_heads_certificate(STATEMENT, named_kernel("laplace"))


def patches():
    return kernel_heads_certificate(STATEMENT, named_kernel("box"), 2)


def texture():
    return approximation_certificate(STATEMENT, named_kernel("texture"), 3)


def without_shift(body):
    """Leave the basis rows as they are, with their negative entries."""
    common = body["attention"][-1][:-1]
    for head in body["attention"]:
        head[:-1] = [str(Fraction(a) - Fraction(b)) for a, b in zip(head[:-1], common, strict=True)]


def no_common_head(body):
    """The last head takes nothing back."""
    last = body["heads"] - 1
    body["values"]["entries"] = [e for e in body["values"]["entries"] if e[0] != last]


def one_head_less(body):
    """ρ heads at finite scores."""
    body["heads"] -= 1
    body["attention"].pop()
    body["values"]["entries"] = [e for e in body["values"]["entries"] if e[0] != body["heads"]]
    body["rows"].pop()
    body["columns"].pop()
    body["determinant"] = 1


def negative_tap_far_away(body):
    """The taps 1 at -1 and -1 at 2, on two tokens."""
    body.update(kernel_size=[5, 1], kernel=[0, 1, 0, 0, -1], unread=[0, 0])
    body["attention"] = [["0", "1", "0", "0", "0", "1"], ["0", "0", "0", "0", "1", "1"]]
    body["values"]["entries"] = [[0, 1, "1"], [1, 1, "-1"]]
    body.update(rows=[[0] * 6], columns=[[-1, 0]], determinant=1, tokens_per_side=[2, 1])
    body["limit"] = {"positive": ["1"] * 5}


def zero_kernel(body):
    body["kernel"] = [0] * len(body["kernel"])
    body["values"]["entries"] = []
    body["thresholds"] = ["0"] * len(body["thresholds"])
    body["error"] = "0"


def padded_rank(body):
    """A row and a column more, to claim one head more."""
    body["heads"] += 1
    body["attention"].append(body["attention"][-1])
    body["rows"].append(body["rows"][0])
    body["columns"].append([0, 0])
    body["determinant"] = 1


MUTANTS = (
    wrong_certificate(
        "kernel-with-negative-weights",
        "The heads have the basis rows themselves, without the shift that makes them nonnegative.",
        sobel,
        edited(sobel, without_shift),
        r"realizable: head \d has min c = -",
    ),
    wrong_certificate(
        "kernel-without-the-common-head",
        "Nothing takes back what the shift and the uniform row add.",
        sobel,
        edited(sobel, no_common_head),
        r"identity: at ",
    ),
    wrong_certificate(
        "kernel-with-rank-many-heads",
        "ρ heads are claimed to do at finite scores.",
        sobel,
        edited(sobel, one_head_less),
        r"identity: at ",
    ),
    wrong_certificate(
        "kernel-with-two-heads-too-many",
        "A second uniform head is claimed to be necessary.",
        laplace,
        edited(laplace, padded_rank),
        r"determinant: determinant 1, expected that of the minor, 0",
    ),
    wrong_certificate(
        "kernel-read-where-unread",
        "The shift at which nothing is read is the centre.",
        laplace,
        amended(laplace, unread=[0, 0], tokens_per_side=[2, 1]),
        r"unread: the convolution reads the token at \[0, 0\]",
    ),
    wrong_certificate(
        "mixed-sign-in-one-head",
        "A kernel of mixed sign is claimed to be nonnegative up to its sign.",
        laplace,
        amended(laplace, limit={"combination": ["1"]}),
        r"limit: the combination has the least entry -",
    ),
    wrong_certificate(
        "kernel-seen-from-one-token",
        "One token a side, so that no query has an outside.",
        patches,
        amended(patches, tokens_per_side=[1, 1]),
        r"tokens: tokens_per_side is \[1, 1\]",
    ),
    wrong_certificate(
        "mixed-sign-out-of-sight",
        "In the limit one head does, too, on an image too small for the negative tap.",
        laplace,
        edited(laplace, negative_tap_far_away),
        r"tokens: tokens_per_side is \[2, 1\], expected \[3, 1\]",
    ),
    wrong_certificate(
        "approximation-of-what-one-head-less-does",
        "The kernel is zero: no head is needed, and the bound that so many err is 0.",
        texture,
        edited(texture, zero_kernel),
        r"inertia: the thresholds are all 0: nothing shows that 2 heads err",
    ),
    wrong_certificate(
        "approximation-with-a-smaller-error",
        "The error is said to be smaller than it is.",
        texture,
        amended(texture, error="1"),
        r"error: error 1, expected ",
    ),
    wrong_certificate(
        "approximation-above-the-spectrum",
        "The largest threshold lies above the eigenvalue that it stands for.",
        texture,
        edited(texture, lambda body: body["thresholds"].__setitem__(0, "100000")),
        r"inertia: 9 of 9 eigenvalues of G lie below thresholds\[0\]",
    ),
    wrong_certificate(
        "approximation-held-against-a-later-eigenvalue",
        "The largest eigenvalue left out is taken for the next one, so the layer seems too far.",
        texture,
        edited(texture, lambda body: body["thresholds"].__setitem__(0, body["thresholds"][1])),
        r"error: error .*, expected at most one part in a million above ",
    ),
)
