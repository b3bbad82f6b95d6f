"""docs/errata.md names claims that exist, and every claim of a paper that had to be repaired."""

import re
from pathlib import Path

from convattn.ledger.discovery import load_claim
from convattn.ledger.locations import proofs_directory

ERRATA = Path(__file__).parents[2] / "docs" / "errata.md"
NAMED = set(re.findall(r"\b(?:C20|L21|A19|B19|S)\.\w+", ERRATA.read_text("utf-8")))


def claims():
    """Id, and whether its file has a repair."""
    for path in sorted(proofs_directory().glob("*/*.py")):
        claim, _ = load_claim(path)
        yield claim.id, re.search(r"^Repair\.", path.read_text("utf-8"), re.MULTILINE) is not None


CLAIMS = dict(claims())


def test_only_claims_of_the_ledger_are_named() -> None:
    assert CLAIMS.keys() >= NAMED


def test_every_repair_of_a_paper_is_listed() -> None:
    repaired = {claim for claim, repair in CLAIMS.items() if repair and not claim.startswith("S.")}
    assert len(repaired) > 20
    assert repaired <= NAMED, sorted(repaired - NAMED)
