"""The errata name claims that exist, and every claim of a paper that had to be repaired."""

import pytest

from convattn_ledger.claim import Verdict
from convattn_ledger.discovery import discover, parse_statement
from convattn_ledger.locations import proofs_directory

PROOFS = discover(proofs_directory())
NAMED = {
    name
    for proof in PROOFS
    for erratum in proof.statement.errata
    for name in (proof.name, *erratum.further)
}


def test_only_claims_of_the_ledger_are_named() -> None:
    assert {proof.name for proof in PROOFS} >= NAMED


def test_every_repair_of_a_paper_is_listed() -> None:
    repaired = {
        proof.name
        for proof in PROOFS
        if proof.claim.paper != "S"
        and proof.claim.verdict is not Verdict.NOT_JUDGED
        and not proof.statement.repair.startswith("Nothing")
    }
    assert len(repaired) > 20
    assert repaired <= NAMED, sorted(repaired - NAMED)


def test_an_amended_claim_has_an_entry_that_is_an_error() -> None:
    marked = ("Sharper: ", "Remark: ")
    errors = {
        name
        for proof in PROOFS
        for erratum in proof.statement.errata
        if not erratum.correction.startswith(marked)
        for name in (proof.name, *erratum.further)
    }
    amended = {
        proof.name
        for proof in PROOFS
        if proof.claim.paper != "S" and proof.claim.verdict is Verdict.AMENDED
    }
    assert len(amended) > 20
    assert amended <= errors, sorted(amended - errors)


@pytest.mark.parametrize(
    ("errata", "problem"),
    [("- eq. 1 | a", "eq. 1 | a"), ("- eq. 1 | | b", "eq. 1 |"), ("eq. 1 | a | b", "no item")],
)
def test_errata_that_cannot_be_read_are_refused(errata: str, problem: str) -> None:
    sections = (
        "Claimed. a",
        "True. b",
        "Printed. a",
        f"Errata.\n{errata}",
        "Verified. b",
        "Repair. c",
        "Proof. d",
    )
    with pytest.raises(ValueError, match="errata") as refusal:
        parse_statement("\n\n".join(("Title.", *sections)))
    assert problem in str(refusal.value)
