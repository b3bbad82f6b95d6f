"""Slips about the bare grid, and about how far finite parameters are from the limit."""

from fractions import Fraction

from mutants.mutant import wrong_certificate, wrong_layer
from mutants.subjects import amended

from convattn.bounds import zero_padding_layer
from convattn.constructions import zero_token
from convattn.ledger.certificates.counterexample import border_certificate
from convattn.ledger.certificates.total_variation import (
    bias_variation_certificate,
    quadratic_variation_certificate,
    rounded_up,
)
from convattn.ledger.claim import Evidence
from convattn.ledger.discovery import load_claim
from convattn.ledger.evidence import unsaturated_layers
from convattn.ledger.evidence.unsaturated_layers import near_convolution
from convattn.ledger.locations import proofs_directory

STATEMENT = "The distance is as said."
VARIATION = r"total_variation: .* not shown to be at most "
THETA = 1 + 2 * (Fraction(49787, 10**6) + Fraction(7, 10**6))  # α = 3: e^-3 = .049787…, e^-12


def quadratic():
    return quadratic_variation_certificate("S.saturation", STATEMENT, 3, 2)


def bias():
    return bias_variation_certificate("S.saturation", STATEMENT, 3, 9)


def border():
    """K = 5 on 4 × 4 pixels, where some kernels are computed; the box is not."""
    return border_certificate("S.padding", STATEMENT, [[1] * 5] * 5, (4, 4), 1, ((0, 0), (0, 1)))


def claimed(bound: Fraction) -> str:
    return str(rounded_up(float(bound)))


def piece(name: str):
    """A piece of S.padding's evidence."""

    def found() -> Evidence:
        claim = load_claim(proofs_directory() / "sharpened" / "padding.py")[0]
        return next(evidence for evidence in claim.evidence if evidence.name == name)

    return found


def bare_quadratic() -> Evidence:
    return near_convolution("bare", "quadratic", sharpness=(3, 40), dtypes=("float32",), bare=True)


def nothing_missing(monkeypatch):
    """The uniform head forgets the taps outside: S.finite's own, which pads with the mean."""
    right = zero_padding_layer.available_offsets
    monkeypatch.setattr(
        zero_padding_layer, "available_offsets", lambda *sizes: right(*sizes) | True
    )


def no_better_than_others(monkeypatch):
    """The zero token has the score 0 of any other key."""
    right = zero_token.zero_token_scores
    monkeypatch.setattr(zero_token, "zero_token_scores", lambda encoding: 0 * right(encoding))


def mean_at_the_edge(monkeypatch):
    """The quadratic encoding is taken to pad with the mean, as the bias does."""
    monkeypatch.setattr(unsaturated_layers, "PADDINGS", {"quadratic": "mean"})


def once_the_distance(monkeypatch):
    """The total variation of one head stands for that of all."""
    right = unsaturated_layers.saturation_error_bound
    monkeypatch.setattr(
        unsaturated_layers,
        "saturation_error_bound",
        lambda layer, *given, **named: right(layer, *given, **named) / layer.heads,
    )


MUTANTS = (
    wrong_certificate(
        "theta-of-one-axis",
        "The bound for sequences is certified for images.",
        quadratic,
        amended(quadratic, bound=claimed(1 - 1 / THETA)),
        VARIATION,
    ),
    wrong_certificate(
        "bound-that-says-nothing",
        "The total variation is below 99/100: so it is, and far below.",
        quadratic,
        amended(quadratic, bound="99/100"),
        r"total_variation: the bound 99/100 is more than 2 times what is shown",
    ),
    wrong_certificate(
        "theta-of-one-side",
        "θ counts the neighbours on one side only.",
        quadratic,
        amended(quadratic, bound=claimed(1 - 1 / ((1 + THETA) / 2) ** 2)),
        VARIATION,
    ),
    wrong_certificate(
        "power-rounded-down",
        "e^-3 is rounded down, so that it bounds nothing from above.",
        quadratic,
        amended(quadratic, power="49787/1000000"),
        r"series: power 49787/1000000 is not shown to be at least e\^-3",
    ),
    wrong_certificate(
        "bias-rounded-up",
        "e^3 is rounded up to 20.1.",
        bias,
        amended(bias, power="201/10"),
        r"series: power 201/10 is not shown to be at most e\^3",
    ),
    wrong_certificate(
        "half-taken-twice",
        "Half of (N - 1)/(e^M + N - 1) is taken, which is half the L1 distance already.",
        bias,
        amended(bias, bound="1/7"),
        VARIATION,
    ),
    wrong_certificate(
        "border-of-an-exception",
        "The kernel is one of the exceptions of 4 × 4 tokens: all sums are the same.",
        border,
        amended(
            border,
            kernel=[-1, 0, 1, 0, -1, *[0] * 20],
            sums=[[0], [0]],
        ),
        r"border: sums \[\[0\], \[0\]\], expected \[\[0\], \[0\]\], two lists that differ",
    ),
    wrong_layer(
        "nothing-is-missing",
        "The uniform head on a small bare grid is S.finite's as it stands.",
        piece("small grids on images"),
        nothing_missing,
        r"float64: the maps are not the integers of the proof",
    ),
    wrong_layer(
        "zero-token-scored-zero",
        "The zero token has the score of any other key, not M/2.",
        piece("a zero token on images"),
        no_better_than_others,
        r"float64: \d+ of \d+ entries differ",
    ),
    wrong_layer(
        "mean-for-the-edge",
        "The quadratic encoding is taken to replace outside tokens by the mean.",
        bare_quadratic,
        mean_at_the_edge,
        r"float32: \d+ of \d+ entries exceed the bound",
    ),
    wrong_layer(
        "saturation-of-one-head",
        "The error of one head is taken for that of nine.",
        bare_quadratic,
        once_the_distance,
        r"float32: \d+ of \d+ entries exceed the bound",
    ),
)
