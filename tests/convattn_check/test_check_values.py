import certificate_builder as build
import pytest
from certificate_cases import CASES, changed, drop, put, verdict_after, verdict_on


@pytest.mark.parametrize(
    ("name", "change", "code"),
    [
        ("wo", put(["values"], {}), "malformed"),
        ("wo", put(["values"], "sparse"), "malformed"),
        ("wo", put(["values", "family"], "dense"), "malformed"),
        ("wo", put(["values", "more"], 1), "malformed"),
        ("wo", put(["values", "entries"], {}), "malformed"),
        ("wo", put(["values", "entries", 0], [0, 8]), "malformed"),
        ("wo", put(["values", "entries", 0], ["0", 8, "1"]), "malformed"),
        ("wo", put(["values", "entries", 0], [-1, 8, "1"]), "range"),
        ("wo", put(["values", "entries", 8], [9, 8, "1"]), "range"),
        ("wo", put(["values", "entries", 8], [8, 9, "1"]), "range"),
        ("wo", put(["values", "entries", 1], [0, 7, "1"]), "values"),
        ("wo", drop(["values", "entries", 0]), "identity"),
        ("finite", drop(["values", "entries", 9]), "identity"),
        ("powers_lagrange", drop(["values", "master", 0]), "malformed"),
        ("powers_lagrange", drop(["values", "denominators", 0]), "malformed"),
        ("powers_lagrange", put(["values", "denominators", 0], 1), "identity"),
        ("powers_lagrange", put(["values", "master", 7], 2), "values"),
        ("powers_lagrange", put(["values", "master", 0], 1), "values"),
        ("powers_lagrange", put(["values", "entries"], []), "malformed"),
        ("powers_lagrange", put(["attention", "bases", 0], "1/2"), "values"),
        ("powers_lagrange", put(["attention", "exponents"], [1, 0, 2, 3, 4, 5, 6]), "values"),
    ],
)  # fmt: skip
def test_planted(name, change, code):
    verdict = verdict_after(name, change)
    assert not verdict.accepted
    assert verdict.code == code, verdict


def test_a_master_without_the_root_one_fails_at_u1():
    """All bases are roots, the leading coefficient is 1, but the rows' uniform part stays."""
    master = build.polynomial([9, 2, 3, 4, 5, 6, 7])
    verdict = verdict_on(changed(CASES["powers_lagrange"], put(["values", "master"], master)))
    assert verdict.code == "identity"


def test_a_master_with_another_leading_coefficient_is_refused():
    """Twice the master over twice the denominators is the same V, but not the format."""

    def double(body):
        for name in ("master", "denominators"):
            body["values"][name] = [2 * number for number in body["values"][name]]

    verdict = verdict_on(changed(CASES["powers_lagrange"], double))
    assert verdict.code == "values"
    assert "leads with 2" in verdict.reason


def test_two_ways_to_write_the_same_coefficients():
    for size in [(3,), (2, 2), (5,)]:
        sparse, short = (build.power_equality(kernel=size, lagrange=way) for way in (False, True))
        assert verdict_on(sparse).accepted
        assert verdict_on(short).accepted
