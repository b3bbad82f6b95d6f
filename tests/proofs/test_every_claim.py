"""Every claim of the ledger: its verdict and kinds, and what holds of all of them alike."""

import pytest
from proofs.plants.planting import load

from convattn_ledger import Level, NotRunHere, Run, Verdict
from convattn_ledger.discovery import discover
from convattn_ledger.document import render
from convattn_ledger.locations import certificates_directory, proofs_directory

PROOFS = discover(proofs_directory())
PATHS = sorted(proofs_directory().glob("*/*.py"))
CLAIMS = [(path.parent.name, path.stem) for path in PATHS]


def test_the_document_is_that_of_the_claims() -> None:
    """It holds their verdicts, kinds, statements and evidence, so that a change is seen."""
    document = proofs_directory().parent / "docs" / "ledger.md"
    assert document.read_text("utf-8") == render(PROOFS)


@pytest.mark.slow
@pytest.mark.parametrize(("folder", "name"), CLAIMS)
def test_something_is_quick_and_passes(folder, name) -> None:
    """What `verify` alone runs is left to it: certificates, theorems, whole images."""
    claim = load(folder, name)
    quick = [piece for piece in claim.evidence if piece.quick]
    assert quick
    for piece in quick:
        run = Run(1, True, certificates_directory(), claim.id, piece.name)
        if claim.verdict is Verdict.NOT_RUN and piece.level is Level.MEASURED:
            with pytest.raises(NotRunHere, match="NOT RUN: no run was submitted for this row"):
                piece.check(run)
        elif piece.level in (Level.TESTED, Level.ENCLOSED):
            assert piece.check(run)


def test_every_theorem_names_the_clauses_that_it_covers() -> None:
    pieces = [piece for proof in PROOFS for piece in proof.claim.evidence]
    proved = [piece for piece in pieces if piece.level is Level.PROVED]
    assert len(proved) > 80
    for piece in proved:
        assert piece.covers, piece.name
        assert piece.theorem().startswith("Theorem ")
