"""One report for all tests: the proof files as they stand, as if every check had passed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from convattn_ledger.discovery import discover
from convattn_ledger.json_report import as_document
from convattn_ledger.locations import certificates_directory, proofs_directory
from convattn_ledger.page.build import report_page
from convattn_ledger.runner import ClaimOutcome, EvidenceOutcome, Options, Outcome
from convattn_ledger.selection import Selected


def outcome_of(proofs: Any, passed: bool | None = True) -> Outcome:
    """As if every check had been run with this result."""
    claims = []
    for proof in proofs:
        pieces = proof.claim.evidence if proof.claim else ()
        results = tuple(EvidenceOutcome(item, passed, "1 < 2", 0.5) for item in pieces)
        claims.append(ClaimOutcome(Selected(proof, pieces, proof.problem), results))
    return Outcome(claims, {"device": "<a device>"}, seconds=1.0)


def page_of(outcome: Outcome) -> bytes:
    """The report of an outcome."""
    options = Options(certificates_directory())
    return report_page(outcome, options, as_document(outcome, options, {})["environment"])


@pytest.fixture(scope="session")
def report_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of all claims."""
    path = tmp_path_factory.mktemp("report") / "index.html"
    path.write_bytes(page_of(outcome_of(discover(proofs_directory()))))
    return path


@pytest.fixture(scope="module")
def page(chromium: Any, report_file: Path) -> Iterator[Any]:
    """The report, open in one page for all tests of a file."""
    opened = chromium.new_page()
    opened.goto(report_file.as_uri())
    yield opened
    opened.close()
