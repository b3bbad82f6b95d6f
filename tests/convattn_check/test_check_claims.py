"""Each demand of the table has a certificate that is sound, but for this demand of its claim."""

import certificate_builder as build
import pytest
from certificate_cases import CASES, verdict_on
from corpora.manifests import INCORRECT, ROOT

from convattn_check import check, claims
from convattn_check.claims import TABLE, Facts

# Of tests/incorrect/: where a demand of the claim is not met.
LACKING = [entry for entry in INCORRECT if entry["reason"].endswith("; given")]


def test_every_demand_of_every_claim_is_made():
    planted = {
        tuple(entry[key] for key in ("kind", "claim", "code", "reason")) for entry in LACKING
    }
    demanded = {
        (kind, claim, demand.code, f"{claim} needs {demand.text}; given")
        for (kind, claim), demands in TABLE.items()
        for demand in demands
    }
    assert planted == demanded


@pytest.mark.parametrize("fault", ["label", "vacuous"])
def test_it_is_the_demands_alone_that_refuse_what_is_mislabelled(fault, monkeypatch):
    """Without them it is accepted; what is vacuous is not."""
    for row in TABLE:
        monkeypatch.setitem(TABLE, row, ())
    files = [entry["file"] for entry in LACKING if entry["fault"] == fault]
    verdicts = [check((ROOT / "incorrect" / file).read_bytes()) for file in files]
    assert len(verdicts) > 3
    assert {verdict.accepted for verdict in verdicts} == {fault == "label"}


def test_every_row_has_an_accepted_case():
    assert {(case["kind"], case["claim"]) for case in CASES.values()} == TABLE.keys()


@pytest.mark.parametrize(
    "name", [name for name, case in CASES.items() if case["kind"] != "identity"]
)
def test_a_sound_certificate_under_another_claim(name):
    """Accepted only where the other claim's demands are met as well, never by the label alone."""
    case = CASES[name]
    of_this_kind = {claim for kind, claim in TABLE if kind == case["kind"]}
    stranger = min(claims.CLAIMS - of_this_kind)
    for claim in sorted({*of_this_kind, stranger} - {case["claim"]}):
        verdict = verdict_on(build.sealed(case | {"claim": claim}))
        assert verdict.claim == claim
        if claim == stranger:
            assert verdict.code == "claim"
        elif not verdict.accepted:
            assert verdict.code in ("claim", "heads")


def test_an_identity_under_another_claim():
    case = CASES["A19.orders-orders"]
    for claim in ("A19.prop2", "B19.sac", "C20.rank"):
        assert verdict_on(build.sealed(case | {"claim": claim})).code == "claim"


def test_facts_are_printed_without_what_is_not_there():
    facts = Facts("rank", "C20.rank", kernel=(3, 5))
    assert str(facts) == "kind rank, claim C20.rank, kernel (3, 5)"
    assert facts.size == "3x5"
