"""What the report begins with: the table from best to least, and what was not run."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ledger.page.conftest import outcome_of
from ledger.proof_files import claim, evidence, write

from convattn_ledger.discovery import discover
from convattn_ledger.page.claims import reader_table
from convattn_ledger.page.not_run import not_run
from convattn_ledger.runner import ClaimOutcome, Outcome
from convattn_ledger.selection import Selected

ENVIRONMENT = {"options": {}, "quick": False, "backend": "gpu"}


@pytest.fixture
def outcome(tmp_path: Path) -> Outcome:
    """Tests, a certificate and tests, a failure, and a file that cannot be loaded."""
    both = evidence(level="CERTIFIED", name="c") + ", " + evidence(name="t")
    files = {"a": claim("S.a"), "b": claim("S.b", both), "c": claim("S.c"), "d": "1/0"}
    write(tmp_path, **{f"p__{name}": text for name, text in files.items()})
    found = outcome_of(discover(tmp_path))
    failed = tuple(replace(item, passed=False) for item in found.claims[2].evidence)
    found.claims[2] = replace(found.claims[2], evidence=failed)
    return found


def test_the_table_goes_from_best_to_least(outcome: Outcome) -> None:
    rows = reader_table(outcome.claims).split("<tr>")[1:]
    assert [row.partition("</a>")[0][-3:] for row in rows[:3]] == ["S.b", "S.a", "S.c"]
    assert "S.b</a> <em>holds</em>: A tiny claim</td><td>certificates, tests</td>" in rows[0]
    assert "<td>tests</td>" in rows[1]
    assert '<span class="failed">TESTED failed</span>' in rows[2]
    assert "not loaded" in rows[3]


def test_what_did_not_run_is_named_with_the_reason(
    outcome: Outcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: name)
    rest = "<tr><th scope=row>The second checker</th>"
    assert not_run(outcome, ENVIRONMENT).startswith(rest)

    def lacking(claim: ClaimOutcome, detail: str) -> ClaimOutcome:
        first, *others = claim.evidence
        return replace(claim, evidence=(replace(first, passed=None, detail=detail), *others))

    first, second, third, last = outcome.claims
    outcome.claims = [
        lacking(first, "no <device>; run `a b`"),
        lacking(second, "no record. `x` makes one"),
        third,
        last,
    ]
    text = not_run(outcome, ENVIRONMENT)
    assert text.index('CERTIFIED of <a href="#s-b">S.b</a>') < text.index("TESTED of")
    assert "<td>no &lt;device&gt;; run <code>a b</code></td>" in text
    outcome.claims[2] = lacking(third, "no <device>; run `c`")
    both = 'TESTED of <a href="#s-a">S.a</a>, <a href="#s-c">S.c</a></th><td>no &lt;device&gt;</td>'
    assert both in not_run(outcome, ENVIRONMENT)


def test_the_selection_the_tools_and_the_device_are_named(
    outcome: Outcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    second = outcome.claims[1]
    chosen = Selected(second.selected.proof, second.selected.evidence[1:])
    outcome.claims[1] = replace(second, selected=chosen, evidence=second.evidence[1:])
    options: dict[str, Any] = {"claims": ["S.*"], "levels": ["TESTED"], "left_out": 2}
    text = not_run(outcome, {"options": options, "quick": True, "backend": "cpu"})
    for row in (
        "Other claims</th><td>left out by <code>--claim S.*</code>",
        "2 claims</th><td>they have no evidence that <code>--level TESTED --quick</code> selects",
        "Checks: CERTIFIED (1)</th><td>left out by <code>--level TESTED --quick</code>",
        "Coq</th><td><code>coqc</code> is not installed here",
        "; not installed here: <code>coqc ocamlfind</code>",
        "Checks on a GPU or TPU</th><td>JAX has no such device here",
    ):
        assert row in text
    monkeypatch.setattr(shutil, "which", lambda name: name)
    text = not_run(outcome, ENVIRONMENT)
    for word in ("Other claims", "GPU", "not installed"):
        assert word not in text
