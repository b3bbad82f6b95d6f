import os
import signal
import subprocess
import sys
import time

import pytest

from convattn.ledger.discovery import discover
from convattn.ledger.runner import Options, run
from convattn.ledger.selection import select
from ledger.proof_files import claim, evidence, write


def verify(directory, **options):
    selected, _ = select(discover(directory))
    settings = {"certificates": directory, "jobs": 2, "preload": (), **options}
    return run(selected, Options(**settings))


def results(outcome):
    return {
        f"{claim.id}/{item.name}": (item.passed, item.detail)
        for claim in outcome.claims
        for item in claim.evidence
    }


def test_every_way_in_which_a_check_can_end(tmp_path):
    expressions = {
        "passes": "'3 cases'",
        "fails": "fail('off by 0.5')",
        "raises": "error()",
        "exits": "__import__('sys').exit(0)",
        "absent": "absent('no accelerator')",
        "silent": "None",
        "boolean": "True",
        "empty": "'  '",
        "dies": "os._exit(0)",
        "crashes": "os.kill(os.getpid(), signal.SIGSEGV)",
        "killed": "os.kill(os.getpid(), signal.SIGKILL)",
        "memory": "bytearray(1 << 62)",
        "prints": "print('noise') or 'printed'",
    }
    pieces = [evidence(text, name=name) for name, text in expressions.items()]
    write(tmp_path, p__a=claim("S.a", *pieces), p__b=claim("S.b"))
    outcome = verify(tmp_path)
    found = results(outcome)
    assert list(found) == [f"S.a/{name}" for name in expressions] + ["S.b/e"]
    expected = {
        "passes": (True, "3 cases"),
        "fails": (False, "off by 0.5"),
        "absent": (None, "no accelerator"),
        "prints": (True, "printed"),
        "silent": (False, "returned None, but expected a line with the figures it saw"),
        "boolean": (False, "returned True, but expected a line with the figures it saw"),
        "empty": (False, "returned '  ', but expected a line with the figures it saw"),
        "dies": (False, "the worker process died with exit code 0"),
        "crashes": (False, "the worker process died with exit code -11: SIGSEGV"),
        "killed": (
            False,
            "the worker process died with exit code -9: SIGKILL (often: out of memory)",
        ),
    }
    for name, value in expected.items():
        assert found[f"S.a/{name}"] == value
    for name, error in {"raises": "KeyError", "exits": "SystemExit", "memory": "Error"}.items():
        passed, detail = found[f"S.a/{name}"]
        assert passed is False
        assert detail.startswith("raised ")
        assert error in detail
    assert "no such thing" in found["S.a/raises"][1]
    assert "in error" in found["S.a/raises"][1]  # the traceback
    assert found["S.b/e"] == (True, "1 = 1")
    assert [claim.passed for claim in outcome.claims] == [False, True]


def test_neither_jobs_nor_selection_change_what_is_drawn(tmp_path):
    draw = "str(run.rng('x').integers(2**60))"
    pieces = [evidence(draw, name=f"e{n}") for n in range(3)]
    write(tmp_path, p__a=claim("S.a", *pieces), p__b=claim("S.b", *pieces))
    one, two = verify(tmp_path, jobs=1), verify(tmp_path, jobs=2)
    assert results(one) == results(two)
    assert len({detail for _, detail in results(one).values()}) == 6
    assert results(verify(tmp_path, seed=1)) != results(one)


def test_what_a_check_is_told(tmp_path):
    text = "f'{run.seed} {run.quick} {run.certificates.name} {run.claim} {run.evidence}'"
    write(tmp_path, p__a=claim("S.a", evidence(text)))
    outcome = verify(tmp_path, seed=7, quick=True, certificates=tmp_path / "certificates")
    assert results(outcome)["S.a/e"] == (True, "7 True certificates S.a e")


def test_a_check_runs_in_another_process_also_with_one_job(tmp_path):
    write(tmp_path, p__a=claim("S.a", evidence("str(os.getpid())")))
    assert results(verify(tmp_path, jobs=1))["S.a/e"] != (True, str(os.getpid()))


def test_workers_run_side_by_side_and_are_kept(tmp_path):
    pieces = [evidence("time.sleep(0.6) or str(os.getpid())", name=f"e{n}") for n in range(4)]
    write(tmp_path, p__a=claim("S.a", *pieces))
    outcome = verify(tmp_path, jobs=2)
    assert len({detail for _, detail in results(outcome).values()}) == 2
    assert len(outcome.startups) == 2
    assert outcome.claims[0].seconds >= 2.4
    assert outcome.seconds < outcome.claims[0].seconds


def test_a_check_that_takes_too_long_is_ended(tmp_path):
    slow = evidence("time.sleep(60) or 'late'", name="slow")
    write(tmp_path, p__a=claim("S.a", slow, evidence(name="after")))
    start = time.perf_counter()
    outcome = verify(tmp_path, jobs=1, timeout=1.0)
    assert time.perf_counter() - start < 30
    assert results(outcome) == {
        "S.a/slow": (False, "timed out after 1 s"),
        "S.a/after": (True, "1 = 1"),
    }
    assert outcome.claims[0].evidence[0].seconds >= 1


def test_a_worker_that_cannot_start_fails_everything_and_ends(tmp_path):
    write(tmp_path, p__a=claim("S.a", evidence(), evidence(name="f")))
    found = results(verify(tmp_path, preload=("no_such_module",)))
    assert len(found) == 2
    for passed, detail in found.values():
        assert passed is False
        assert "could not start" in detail
        assert "no_such_module" in detail


def test_a_proof_that_only_loads_in_the_parent_fails(tmp_path):
    guard = f"if os.getpid() != {os.getpid()}: raise RuntimeError('elsewhere')"
    write(tmp_path, p__a=claim("S.a", top=guard))
    passed, detail = results(verify(tmp_path))["S.a/e"]
    assert passed is False
    assert "could not be loaded" in detail
    assert "elsewhere" in detail


def test_nothing_to_run_needs_no_worker(tmp_path):
    write(tmp_path, p__a="1/0")
    seen = []
    selected, _ = select(discover(tmp_path))
    outcome = run(selected, Options(tmp_path), seen.append)
    assert outcome.startups == []
    assert [claim.id for claim in seen] == ["p/a.py"]


def test_the_display_hears_of_every_claim_and_piece_once(tmp_path):
    write(tmp_path, p__a=claim("S.a", evidence(), evidence(name="f")), p__b=claim("S.b"))
    claims, pieces = [], []
    selected, _ = select(discover(tmp_path))
    options = Options(tmp_path, jobs=2, preload=())
    run(selected, options, claims.append, lambda name, done, total: pieces.append((done, total)))
    assert sorted(claim.id for claim in claims) == ["S.a", "S.b"]
    assert pieces == [(1, 3), (2, 3), (3, 3)]


def test_a_worker_has_jax_with_64_bit_types_and_says_what_it_runs_on(tmp_path):
    text = "str(__import__('jax.numpy').numpy.zeros(1).dtype)"
    write(tmp_path, p__a=claim("S.a", evidence(text)))
    outcome = verify(tmp_path, jobs=1, preload=("jax",))
    assert results(outcome)["S.a/e"] == (True, "float64")
    assert outcome.environment["x64"] is True
    assert set(outcome.environment) >= {"backend", "device", "default_matmul_precision"}


def test_what_a_check_prints_does_not_end_up_in_the_report(tmp_path, capfd):
    write(tmp_path, p__a=claim("S.a", evidence("print('noise', flush=True) or 'seen'")))
    verify(tmp_path)
    captured = capfd.readouterr()
    assert captured.out == ""
    assert captured.err == "noise\n"


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups")
def test_an_interrupt_prints_a_partial_table_and_leaves_no_process(tmp_path):
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
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the workers too
    output, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert "1 of 3 claims verified" in output
    assert "INTERRUPTED" in output
    assert "2 not run here" in output
    assert not (tmp_path / "j").exists()
    with pytest.raises(ProcessLookupError):
        os.kill(int(marker.read_text()), 0)
