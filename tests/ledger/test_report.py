import io
import time
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from convattn.cli.output import console
from convattn_ledger import report
from convattn_ledger.claim import Level
from convattn_ledger.discovery import discover
from convattn_ledger.journal import CONTINUED
from convattn_ledger.json_report import as_document
from convattn_ledger.report import display, print_report
from convattn_ledger.runner import ClaimOutcome, EvidenceOutcome, Options, Outcome
from convattn_ledger.selection import select
from ledger.proof_files import claim, evidence, write


def outcome_of(proofs, passed, detail="figure 7 [red]x[/red]\nsecond line"):
    """An outcome in which each piece of evidence has what ``passed`` says for its name."""
    claims = []
    for item in select(proofs)[0]:
        pieces = (EvidenceOutcome(e, passed.get(e.name, True), detail, 0.25) for e in item.evidence)
        claims.append(ClaimOutcome(item, tuple(pieces)))
    return Outcome(claims, {}, [1.25], 2.5)


@pytest.fixture
def proofs(tmp_path):
    certified = evidence(level="CERTIFIED", name="cert", assumes="exp within 1 ulp")
    proved = evidence(level="PROVED", name="coq", covers="(2), not (1)")
    proved = proved[:-1] + ", theorem=lambda: 'Theorem one : 1 = 1.')"
    write(
        tmp_path,
        p__a=claim("C20.lemma1", evidence(), certified, proved),
        p__b=claim("S.b", evidence(name="other")),
        p__c=claim("S.c", evidence(name="third")),
        p__d="1/0",
    )
    return discover(tmp_path)


def rendered(outcome, left_out=0, **settings):
    settings = {"width": 100, "force_terminal": False, "color_system": None, **settings}
    buffer = io.StringIO()
    print_report(Console(file=buffer, **settings), outcome, left_out)
    return buffer.getvalue()


def test_what_an_earlier_run_has_passed_is_counted(proofs):
    text = rendered(outcome_of(proofs, {}, detail=f"{CONTINUED}as before"), width=200)
    assert "5 of 5 checks had passed in a verification that was ended; --restart runs all" in text
    assert "was ended" not in rendered(outcome_of(proofs, {}, detail="as before"), width=200)


def test_the_table_shows_levels_strongest_first_and_groups_by_paper(proofs):
    text = rendered(outcome_of(proofs, {"cert": False, "coq": None}), left_out=4, width=120)
    row = next(line for line in text.splitlines() if "C20.lemma1" in line)
    cells = [cell.strip() for cell in row.split("│")]
    levels = "PROVED not re-checked here, CERTIFIED failed, TESTED"
    assert cells == ["C20.lemma1", "holds", levels, "evidence fails", "0.75"]
    order = ["Cordonnier, Loukas", "C20.lemma1", "sharpened", "S.b", "not loaded", "p/d.py"]
    positions = [text.index(name) for name in order]
    assert positions == sorted(positions)
    last = "4 claims, verdicts: 3 hold, 1 could not be loaded; evidence: 3 passed, 1 failed"
    assert text.splitlines()[-1] == f"{last}, 1 not run here"
    assert "The evidence for 2 of 4 claims fails." in text
    for words in ("verified", "Nothing failed"):
        assert words not in text
    assert "4 claims left out" in text


@pytest.mark.parametrize("levels", [(Level.TESTED,), ()])
def test_no_word_of_passing_where_a_level_did_not_run(proofs, levels):
    """Not selected, and not run though selected, read alike, in the table and in JSON."""
    selected, _ = select(proofs[:1], levels)
    tested = EvidenceOutcome(selected[0].evidence[0], True, "1 = 1", 0.25)
    skipped = (EvidenceOutcome(e, None, "interrupted", 0) for e in selected[0].evidence[1:])
    outcome = Outcome([ClaimOutcome(selected[0], (tested, *skipped))])
    text = rendered(outcome, width=120)
    row = next(line for line in text.splitlines() if "C20.lemma1" in line and "│" in line)
    assert "PROVED not re-checked here, CERTIFIED not run here, TESTED" in row
    assert "evidence is incomplete" in row
    not_run = "Levels not run here, or not in full, of 1 of 1 claims: PROVED (1), CERTIFIED (1)."
    assert not_run in text
    assert f"\nNothing failed. {not_run}" in text
    assert f"\n{not_run}" in rendered(replace(outcome, interrupted=True), width=120)
    assert "passes" not in text
    document = as_document(outcome, Options(Path("certificates")), {})
    assert document["claims"][0]["result"] == "is incomplete"


def test_failures_are_shown_in_full_and_markup_is_not_obeyed(proofs):
    text = rendered(outcome_of(proofs, {"cert": False}))
    failure = text[text.index("C20.lemma1: evidence fails") :]
    assert "cert (CERTIFIED): figure 7 [red]x[/red]" in failure
    assert "second line" in failure
    assert "ZeroDivisionError" in text[text.index("p/d.py: evidence fails") :]
    assert "0.25 s  C20.lemma1: coq" in text[text.index("Where the time went") :]


def test_everything_about_few_claims_is_shown_and_nothing_about_many(proofs):
    few, many = rendered(outcome_of(proofs[:1], {})), rendered(outcome_of(proofs, {}))
    parts = [
        "As printed\nOne is one.",
        "Repair\nNothing to repair.",
        "Proof\nBy reflexivity.",
        "Coq theorem\nTheorem one : 1 = 1.",
        "second line",
        "assumes: exp within 1 ulp",
        "covers: (2), not (1)",
    ]
    positions = [few.index(part) for part in parts]
    assert positions == sorted(positions)
    assert not [part for part in parts if part in many]


def test_without_a_terminal_there_are_no_control_codes(proofs, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    print_report(console(), outcome_of(proofs, {"cert": False}))
    text = capsys.readouterr().out
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 100
    assert "second line \n" not in text  # nor padding to the full width
    outcome = outcome_of(proofs, {"cert": False})
    failed = rendered(outcome, force_terminal=True, color_system="standard")
    assert "\x1b[9;31mCERTIFIED failed" in failed  # struck through, and red


def test_progress_is_one_line_a_claim_without_a_terminal(proofs, capsys):
    outcome = outcome_of(proofs, {"cert": False, "third": None})
    with display(console(stderr=True)) as progress:
        for item in outcome.claims:
            progress.finished(item)
        progress.progressed("C20.lemma1: coq", 1, 5)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split() for line in lines] == [
        ["0.75", "s", "C20.lemma1:", "evidence", "fails"],
        ["0.25", "s", "S.b:", "evidence", "passes"],
        ["0.25", "s", "S.c:", "evidence", "is", "incomplete"],
        ["0.00", "s", "p/d.py:", "evidence", "fails"],
    ]


def test_progress_counts_the_checks_while_none_ends(capsys, monkeypatch):
    assert report.SECONDS_BEFORE_COUNTS < report.SECONDS_BETWEEN_COUNTS == 10
    for name in ("SECONDS_BEFORE_COUNTS", "SECONDS_BETWEEN_COUNTS"):
        monkeypatch.setattr(report, name, 0.02)
    with display(console(stderr=True)) as progress:
        time.sleep(0.2)  # the claims are being read
        progress.progressed("starting", 0, 5)
        progress.progressed("C20.lemma1: coq", 2, 5)
        time.sleep(0.2)
    lines = capsys.readouterr().err.splitlines()
    assert list(dict.fromkeys(lines)) == ["reading the claims", "0 of 5 checks", "2 of 5 checks"]
    assert lines.count("2 of 5 checks") >= 2


def test_progress_is_a_bar_on_a_terminal(proofs):
    buffer = io.StringIO()
    with display(Console(file=buffer, force_terminal=True, width=100)) as progress:
        progress.progressed("C20.lemma1: [coq]", 1, 5)
        for item in outcome_of(proofs, {"cert": False}).claims:
            progress.finished(item)
    text = buffer.getvalue()
    for words in ("1/5", "[coq]", "evidence fails"):
        assert words in text
    assert "S.b" not in text  # only failures are worth a line of their own
