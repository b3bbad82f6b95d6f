"""Slips about how far softmax is from one-hot, and about what rounding may do."""

import pytest
from flint import arb
from mutants import subjects
from mutants.mutant import wrong_layer

from convattn.bounds import rounding, score_error
from convattn.bounds.saturation import (
    bias_total_variation,
    quadratic_total_variation_bound,
    theta,
)
from convattn.ledger.claim import Evidence
from convattn.ledger.evidence import bias_saturation_enclosed, enclosures, total_variation_enclosed

OUTSIDE = r".*total variation .*, but should lie between 0 and"


def gaussian() -> Evidence:
    return total_variation_enclosed("quadratic", alphas=(1.0, 4.0))


def bias() -> Evidence:
    return bias_saturation_enclosed("bias", logits=(10.0, 40.0), keys=(9, 100, 1156))


def enclosure(name: str, function):
    """Another enclosure in the evidence."""
    return lambda monkeypatch: monkeypatch.setattr(enclosures, name, function)


def roundoff_of_float64(monkeypatch: pytest.MonkeyPatch) -> None:
    """Derive every bound with u = 2^-53."""
    for module in (rounding, score_error):
        monkeypatch.setattr(module, "unit_roundoff", lambda dtype: 2.0**-53)


MUTANTS = (
    wrong_layer(
        "neighbours-on-one-side",
        "The sum over a head's other keys forgets those on the left.",
        gaussian,
        enclosure(
            "quadratic_total_variation_bound",
            lambda alpha, axes: 1 - ((1 + theta(alpha)) / 2) ** (-axes),
        ),
        OUTSIDE,
    ),
    wrong_layer(
        "one-axis-for-two",
        "The bound for sequences is used for images.",
        gaussian,
        enclosure(
            "quadratic_total_variation_bound",
            lambda alpha, axes: quadratic_total_variation_bound(alpha, 1),
        ),
        OUTSIDE,
    ),
    wrong_layer(
        "limit-taken-for-equality",
        "Lemma 2 is read as an equality: the head is one-hot at finite α.",
        gaussian,
        enclosure("quadratic_total_variation", lambda alpha, keys, query, center: arb(0)),
        OUTSIDE,
    ),
    wrong_layer(
        "bias-one-nat-low",
        "M is one nat lower than the bound N·e^-M counts on.",
        bias,
        enclosure("bias_total_variation", lambda m, n: bias_total_variation(m - 1, n)),
        OUTSIDE,
    ),
    wrong_layer(
        "bound-does-not-vanish",
        "The bound on the distance is a constant, from which no limit follows.",
        gaussian,
        enclosure("quadratic_total_variation_bound", lambda alpha, axes: arb(1)),
        r"alpha=4\.0: .*, which tends to zero",
    ),
    wrong_layer(
        "roundoff-of-float64",
        "A layer in float32 is held to a bound derived for float64.",
        subjects.FINITE_LAYER_FLOAT32,
        roundoff_of_float64,
        r"float32: \d+ of \d+ entries exceed the bound",
    ),
)
