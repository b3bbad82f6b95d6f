import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from convattn_ledger import Claim, Evidence, Kind, Level, Verdict
from convattn_ledger.discovery import Proof, discover
from convattn_ledger.journal import Journal
from convattn_ledger.runner import ClaimOutcome, EvidenceOutcome, Options, Outcome, run
from convattn_ledger.selection import Selected, select
from convattn_ledger.worker import Result
from ledger.proof_files import claim, evidence, write

LEVELS = (Level.ENCLOSED, Level.BOUNDED, Level.BOUNDED)


def outcome_of(*passed, full=True, problem="", verdict=Verdict.AMENDED):
    """The outcome of a claim whose evidence, of LEVELS, passed or not; no more was selected."""
    evidence = tuple(Evidence(f"e{n}", level, lambda run: "seen") for n, level in enumerate(LEVELS))
    kind = Kind.EXPERIMENT if verdict is Verdict.NOT_RUN else Kind.LIMIT
    claim = Claim("C20.lemma2", "Lemma 2", verdict, (kind,), evidence)
    required = claim.required_levels if full else frozenset()
    chosen = evidence[: len(passed)]
    selected = Selected(Proof(Path("a.py"), "p/a.py", claim), chosen, problem, required)
    outcomes = (EvidenceOutcome(*pair, "why", 1.5) for pair in zip(chosen, passed, strict=True))
    return ClaimOutcome(selected, tuple(outcomes))


PASSES, FAILS, INCOMPLETE = "passes", "fails", "is incomplete"
NOT_RUN = "none of its evidence was run"


@pytest.mark.parametrize(
    ("passed", "levels", "result", "problem", "in_full"),
    [  # of the evidence; then of the claim: also the problem where all was to be run
        ((True, True, True), (True, True), PASSES, "", ""),
        ((True, True), (True, True), PASSES, "", ""),
        ((True, True, None), (True, None), INCOMPLETE, "", ""),
        ((True, None, True), (True, None), INCOMPLETE, "", ""),
        ((True, None, None), (True, None), INCOMPLETE, "", "requires it: BOUNDED"),
        ((None, True, True), (None, True), INCOMPLETE, "", "requires it: ENCLOSED"),
        ((True,), (True, None), INCOMPLETE, "", "requires it: BOUNDED"),
        ((None, None, None), (None, None), INCOMPLETE, NOT_RUN, NOT_RUN),
        ((), (None, None), INCOMPLETE, NOT_RUN, NOT_RUN),
        ((True, True, False), (True, False), FAILS, "e2 (BOUNDED): why", "e2 (BOUNDED): why"),
        ((True, False, True), (True, False), FAILS, "e1 (BOUNDED): why", "e1 (BOUNDED): why"),
        ((True, False, None), (True, False), FAILS, "e1 (BOUNDED): why", "e1 (BOUNDED): why"),
    ],
)
def test_what_a_claim_has_reached(passed, levels, result, problem, in_full):
    """One failed piece fails its level; a selected one that did not run leaves it incomplete."""
    for full, expected in ((False, problem), (True, in_full)):
        claim = outcome_of(*passed, full=full)
        assert list(claim.levels) == [Level.ENCLOSED, Level.BOUNDED]
        assert tuple(claim.levels.values()) == levels
        assert claim.result == result
        assert claim.passed is (not expected)
        assert len(claim.problems) == bool(expected)
        assert expected in "".join(claim.problems)


@pytest.mark.parametrize("passed", [(None, None, None), (True, None, None), (None, None, False)])
def test_a_claim_that_was_not_run_needs_no_evidence_but_none_may_fail(passed):
    claim = outcome_of(*passed, verdict=Verdict.NOT_RUN)
    assert claim.passed is (False not in passed)
    assert claim.result == ("fails" if False in passed else "is incomplete")
    assert Outcome([claim]).passed is (True in passed)


def test_the_words_for_a_level():
    for passed, words in (
        ((True, True), ""),
        ((None, False), " failed"),
        ((None, None), " not run here"),
        ((None, True), " not run in full"),
    ):
        assert outcome_of(True, *passed).level_words(Level.BOUNDED) == f"BOUNDED{words}"


def test_a_claim_that_could_not_be_loaded_fails():
    assert outcome_of(True, True, True, problem="broken").problems == ("broken",)


def test_a_run_passes_if_all_claims_do_and_there_are_some():
    good, bad = outcome_of(True, True, True), outcome_of(False, True, True)
    assert good.seconds == 4.5
    assert Outcome([good, good]).passed
    assert not Outcome([good, bad]).passed
    assert not Outcome([]).passed
    assert not Outcome([good], interrupted=130).passed


def verify(directory, *callbacks, **options):
    selected, _ = select(discover(directory))
    settings = {"certificates": directory, "jobs": 2, "preload": (), **options}
    return run(selected, Options(**settings), *callbacks)


def results(outcome):
    return {
        f"{claim.id}/{item.evidence.name}": (item.passed, item.detail)
        for claim in outcome.claims
        for item in claim.evidence
    }


def test_what_a_killed_run_has_passed_is_not_run_again(tmp_path):
    """It is said in the detail; what failed, was not run or comes last is run again."""
    write(tmp_path, p__a=claim("C20.eq7", *(evidence("'seen here'", name=name) for name in "abc")))
    journal = Journal(tmp_path / "cache" / "journal.jsonl")
    journal.add("C20.eq7", "a", Result(True, "seen before", 2.0))
    journal.add("C20.eq7", "b", Result(False, "off", 2.0))
    journal.add("C20.eq7", "c", Result(None, "no device", 2.0))
    counts = []
    count = lambda name, done, total: counts.append((done, total))  # noqa: E731
    outcome = verify(tmp_path, lambda claim: None, count, journal=journal)
    assert results(outcome) == {
        "C20.eq7/a": (True, "[from a verification that was ended] seen before"),
        "C20.eq7/b": (True, "seen here"),
        "C20.eq7/c": (True, "seen here"),
    }
    assert counts == [(1, 3), (2, 3), (3, 3)]
    assert not journal.path.exists()
    for name in "abc":
        journal.add("C20.eq7", name, Result(True, "seen before"))
    again = results(verify(tmp_path, journal=journal))
    assert [*(detail for _, detail in again.values())].count("seen here") == 1


def test_every_way_in_which_a_check_can_end(tmp_path, capfd):
    nothing = ", but expected a line with the numbers it computed"
    died = "the worker process died with exit code"
    told = "f'{run.seed} {run.quick} {run.certificates} {run.claim} {run.evidence}'"
    late = "time.sleep(0.5) or"  # pebble must have seen the check start
    exactly = {
        "passes": ("'3 cases'", True, "3 cases"),
        "fails": ("fail('off by 0.5')", False, "off by 0.5"),
        "absent": ("absent('no accelerator')", None, "no accelerator"),
        "silent": ("None", False, f"returned None{nothing}"),
        "boolean": ("True", False, f"returned True{nothing}"),
        "empty": ("'  '", False, f"returned '  '{nothing}"),
        "dies": (f"{late} os._exit(3)", False, f"{died} 3"),
        "crashes": (f"{late} os.kill(os.getpid(), signal.SIGSEGV)", False, f"{died} -11: SIGSEGV"),
        "killed": (
            f"{late} os.kill(os.getpid(), signal.SIGKILL)",
            False,
            f"{died} -9: SIGKILL (often: out of memory)",
        ),
        "prints": ("print('noise', flush=True) or 'printed'", True, "printed"),
        "told": (told, True, f"7 True {tmp_path} S.a told"),
    }
    raising = {
        "raises": ("error()", "KeyError: 'no such thing'"),
        "exits": ("__import__('sys').exit(0)", "SystemExit"),
        "memory": ("bytearray(1 << 62)", "Error"),
    }
    expressions = {name: text for name, (text, *_) in {**exactly, **raising}.items()}
    expressions["elsewhere"] = "str(os.getpid())"
    pieces = [evidence(text, name=name) for name, text in expressions.items()]
    write(tmp_path, p__a=claim("S.a", *pieces), p__b=claim("S.b"), p__c="1/0")
    claims, counts = [], []
    count = lambda name, done, total: counts.append((done, total))  # noqa: E731
    outcome = verify(tmp_path, claims.append, count, seed=7, quick=True)
    ended = results(outcome)
    assert list(ended) == [f"S.a/{name}" for name in expressions] + ["S.b/e"]
    for name, (_, passed, detail) in exactly.items():
        assert ended[f"S.a/{name}"] == (passed, detail)
    for name, (_, error) in raising.items():
        passed, detail = ended[f"S.a/{name}"]
        assert passed is False
        assert detail.startswith("raised ")
        assert error in detail
    assert "in error" in ended["S.a/raises"][1]  # the traceback
    assert ended["S.a/elsewhere"][1] != str(os.getpid())
    assert ended["S.b/e"] == (True, "1 = 1")
    assert [claim.passed for claim in outcome.claims] == [False, True, False]
    assert sorted(claim.id for claim in claims) == ["S.a", "S.b", "p/c.py"]
    assert counts == [(done, 16) for done in range(1, 17)]
    captured = capfd.readouterr()  # what a check prints must not end up in the report
    assert "noise" not in captured.out
    assert "noise" in captured.err


@pytest.mark.slow
def test_neither_jobs_nor_order_change_what_is_drawn(tmp_path):
    draw = "str(run.rng('x').integers(2**60))"
    pieces = [evidence(draw, name=f"e{n}", quick=n != 1) for n in range(3)]
    write(tmp_path, p__a=claim("S.a", *pieces), p__b=claim("S.b", *pieces))
    one, two = verify(tmp_path, jobs=1), verify(tmp_path, jobs=2)
    assert results(one) == results(two)
    assert list(results(one))[:3] == ["S.a/e0", "S.a/e1", "S.a/e2"]
    assert len({detail for _, detail in results(one).values()}) == 6
    assert results(verify(tmp_path, seed=1)) != results(one)


@pytest.mark.slow
def test_workers_run_side_by_side_and_what_is_slow_runs_first(tmp_path):
    pieces = [
        evidence("time.sleep(0.4) or str(os.getpid())", name=f"e{n}", quick=n < 2) for n in range(4)
    ]
    write(tmp_path, p__a=claim("S.a", *pieces))
    names = []
    outcome = verify(tmp_path, lambda claim: None, lambda name, *_: names.append(name))
    assert set(names[:2]) == {"S.a: e2", "S.a: e3"}
    assert len({detail for _, detail in results(outcome).values()}) == 2
    assert len(outcome.startups) == 2
    assert outcome.claims[0].seconds >= 1.6


@pytest.mark.slow
@pytest.mark.parametrize("check", ["time.sleep(60)", "time.sleep(0.5) or os._exit(0)"])
def test_a_check_that_does_not_end_in_time_is_ended(tmp_path, check):
    slow = evidence(check, name="slow")
    write(tmp_path, p__a=claim("S.a", slow, evidence(name="after")))
    start = time.perf_counter()
    outcome = verify(tmp_path, jobs=1, timeout=2.0)
    assert time.perf_counter() - start < 30
    assert results(outcome) == {
        "S.a/slow": (False, "timed out after 2 s"),
        "S.a/after": (True, "1 = 1"),
    }
    assert outcome.claims[0].evidence[0].seconds >= 1


@pytest.mark.parametrize(
    ("module", "text", "parts"),
    [
        ("no_such_module", None, ("could not start", "no_such_module")),
        ("dies_now", "import os; os.abort()", ("ended as they started", 'c "import dies_now"')),
    ],
)
def test_workers_that_cannot_start_fail_everything_and_end(
    tmp_path, monkeypatch, module, text, parts
):
    if text:
        (tmp_path / f"{module}.py").write_text(text)
        monkeypatch.syspath_prepend(tmp_path)
    write(tmp_path / "proofs", p__a=claim("S.a", evidence(), evidence(name="f")))
    pieces = results(verify(tmp_path / "proofs", preload=(module,)))
    assert len(pieces) == 2
    for passed, detail in pieces.values():
        assert passed is False
        assert all(part in detail for part in parts)


def test_a_proof_that_only_loads_in_the_parent_fails(tmp_path):
    guard = f"if os.getpid() != {os.getpid()}: raise RuntimeError('elsewhere')"
    write(tmp_path, p__a=claim("S.a", top=guard))
    passed, detail = results(verify(tmp_path))["S.a/e"]
    assert passed is False
    assert "could not be loaded" in detail
    assert "elsewhere" in detail


def test_nothing_to_run_needs_no_worker(tmp_path):
    write(tmp_path, p__a="1/0")
    claims = []
    outcome = verify(tmp_path, claims.append)
    assert outcome.startups == []
    assert [claim.id for claim in claims] == ["p/a.py"]


@pytest.mark.slow
@pytest.mark.usefixtures("no_signal_is_ignored")
@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups")
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_prints_a_partial_table_and_leaves_no_process(tmp_path, number, status):
    marker = tmp_path / "started"
    slow = evidence(f"open({str(marker)!r}, 'w').write(str(os.getpid())) and time.sleep(60)")
    write(tmp_path, p__a=claim("S.a"), p__b=claim("S.b", slow), p__c=claim("S.c"))
    words = ["verify", "--proofs", str(tmp_path), "--jobs", "1", "--json", str(tmp_path / "j")]
    process = subprocess.Popen(
        [sys.executable, "-m", "convattn.cli", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while not marker.exists() or not marker.read_text():
        assert process.poll() is None
        time.sleep(0.05)
    if number == signal.SIGINT:
        os.killpg(process.pid, number)  # as a terminal does: to the workers too
    else:
        process.send_signal(number)
    output, errors = process.communicate(timeout=30)
    assert process.returncode == status
    assert "Traceback" not in errors
    assert "evidence: 1 passed, 0 failed, 2 not run here" in output
    assert "INTERRUPTED" in output
    assert not (tmp_path / "j").exists()
    with pytest.raises(ProcessLookupError):
        os.kill(int(marker.read_text()), 0)
