from pathlib import Path

import pytest

from convattn.ledger import Claim, Evidence, Kind, Level, Verdict
from convattn.ledger.discovery import Proof
from convattn.ledger.outcome import ClaimOutcome, EvidenceOutcome, verified
from convattn.ledger.selection import Selected

LEVELS = (Level.ENCLOSED, Level.BOUNDED, Level.BOUNDED)


def outcome(*passed, full=True, problem=""):
    evidence = tuple(Evidence(f"e{n}", level, lambda run: "seen") for n, level in enumerate(LEVELS))
    claim = Claim("C20.lemma2", "Lemma 2", Verdict.AMENDED, (Kind.LIMIT,), evidence)
    required = claim.required_levels if full else frozenset()
    selected = Selected(Proof(Path("a.py"), "p/a.py", claim), evidence, problem, required)
    return ClaimOutcome(
        selected,
        tuple(
            EvidenceOutcome(item.name, item.level, value, "why", 1.5)
            for item, value in zip(evidence, passed, strict=False)
        ),
    )


@pytest.mark.parametrize(
    ("passed", "full", "problem"),
    [
        ((True, True, True), True, None),
        ((True, True, None), True, None),
        ((True, True, False), True, "e2 (BOUNDED): why"),
        ((True, None, None), True, "requires it: BOUNDED"),
        ((None, True, True), True, "requires it: ENCLOSED"),
        ((True, None, None), False, None),
        ((None, None, None), True, "none of its evidence was run"),
        ((None, None, None), False, "none of its evidence was run"),
        ((), False, "none of its evidence was run"),
    ],
)
def test_when_a_claim_is_verified(passed, full, problem):
    claim = outcome(*passed, full=full)
    assert claim.passed is (problem is None)
    assert len(claim.problems) == (problem is not None)
    if problem:
        assert problem in claim.problems[0]


def test_a_claim_that_could_not_be_loaded_is_not_verified():
    claim = outcome(True, True, True, problem="broken")
    assert claim.problems == ("broken",)
    assert not claim.passed


def test_a_level_is_reached_if_some_evidence_passed_and_none_failed():
    assert outcome(True, True, None).reached(Level.BOUNDED)
    assert not outcome(True, True, False).reached(Level.BOUNDED)
    assert not outcome(True, None, None).reached(Level.BOUNDED)
    assert not outcome(True, True, True).reached(Level.PROVED)


def test_a_run_is_verified_if_all_claims_are_and_there_are_some():
    good, bad = outcome(True, True, True), outcome(False, True, True)
    assert good.seconds == 4.5
    assert verified([good, good])
    assert not verified([good, bad])
    assert not verified([])
