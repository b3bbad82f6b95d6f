from itertools import product

import certificate_builder as build
import pytest
from certificate_cases import drop, put, verdict_after, verdict_on

OFF = 10**6


@pytest.mark.parametrize(
    ("name", "change", "code"),
    [
        ("wo", put(["attention"], []), "malformed"),
        ("wo", put(["attention", "family"], "softmax"), "malformed"),
        ("wo", put(["attention", "family"], ["one_hot_limit"]), "malformed"),
        ("wo", drop(["attention", "family"]), "malformed"),
        ("wo", put(["attention", "score"], "learned"), "malformed"),
        ("wo", put(["attention", "alpha"], 4), "malformed"),
        ("wo", put(["attention", "codes"], [1]), "malformed"),
        ("wo", put(["attention", "targets", 0], [1]), "malformed"),
        ("wo", put(["attention", "targets", 0], None), "malformed"),
        ("wo", put(["attention", "targets", 0], [0, True]), "malformed"),
        ("wo", put(["attention", "targets", 0], [0, OFF]), "attention"),
        ("enumerated", put(["attention", "spare"], "9"), "malformed"),
        ("enumerated", drop(["attention", "codes", 0]), "malformed"),
        ("enumerated", drop(["attention", "spare"]), "malformed"),
        ("enumerated", put(["attention", "codes", 1], 10**19), "range"),
        ("polygon", put(["attention", "codes", 1], 3), "attention"),
        ("polygon", put(["attention", "corners"], "9"), "malformed"),
        ("polygon", drop(["attention", "corners"]), "malformed"),
        ("polygon", drop(["attention", "codes", 0]), "malformed"),
        ("absolute", drop(["attention", "forms"]), "malformed"),
        ("absolute", drop(["attention", "forms", 0]), "malformed"),
        ("absolute", put(["attention", "forms", 0], [[2]]), "malformed"),
        ("absolute", put(["attention", "forms", 0, 0, 0], 4), "attention"),
        ("absolute", put(["attention", "forms", 0, 2, 2], -1), "attention"),
        ("absolute", put(["attention", "forms", 0, 3, 0], 6), "attention"),
        ("finite", put(["attention", "leak"], "-1/2"), "attention"),
        ("finite", put(["attention", "leak"], 1), "malformed"),
        ("finite", put(["attention", "score"], "bias"), "malformed"),
        ("finite", put(["attention", "targets", 0], [3, 3]), "attention"),
        ("powers", put(["attention", "bases", 0], "7"), "identity"),
        ("powers", put(["attention", "bases", 0], 2), "malformed"),
        ("powers", drop(["attention", "bases", 0]), "malformed"),
        ("powers", put(["attention", "exponents", 0], 1), "attention"),
        ("powers", put(["attention", "exponents", 0], 7), "identity"),
        ("powers", put(["attention", "exponents", 0], 4097), "range"),
        ("powers", put(["attention", "bases", 0], "9" * 4000), "cost"),
    ],
)  # fmt: skip
def test_planted(name, change, code):
    verdict = verdict_after(name, change)
    assert not verdict.accepted
    assert verdict.code == code, verdict


def test_powers_that_would_fill_the_memory_are_refused():
    certificate = build.power_equality(kernel=(3,))
    certificate["body"]["attention"] = {
        "family": "scalar_power",
        "bases": ["9" * 4000, "8" * 4000, "7" * 4000],
        "exponents": [4093, 4094, 4095, 4096],
    }
    verdict = verdict_on(build.sealed(certificate))
    assert verdict.code == "cost"


@pytest.mark.parametrize("targets", list(product([0, 1], repeat=2)))
def test_the_last_column_of_a_form_is_free(targets):
    """It adds a function of the query alone."""
    change = put(["attention", "forms", targets[0], targets[1], 3], 12)
    assert verdict_after("absolute", change).accepted
