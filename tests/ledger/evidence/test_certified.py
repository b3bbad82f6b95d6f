"""Certified evidence passes for accepted certificates of the claim, and for nothing else."""

import json

import pytest

from convattn.ledger import EvidenceFailed, Level
from convattn.ledger.evidence import certified, print_counterexample
from convattn.ledger.locations import certificates_directory
from convattn_check import check as judge

FINITE, DP1 = "S.finite-K3-P1.json", "S.dp1-K3-P1.json"


def committed(name: str) -> bytes:
    return (certificates_directory() / name).read_bytes()


def test_the_committed_certificates_of_a_claim_pass(run):
    evidence = certified("S.finite")
    assert (evidence.name, evidence.level) == ("certificates", Level.CERTIFIED)
    assert evidence.assumes == "Python's integers and fractions"
    line = evidence.check(run)
    assert line.startswith("7 accepted: S.finite-K11-P1, ")
    assert "S.finite-K5-P16" in line


def test_a_pattern_selects(run):
    evidence = certified("L21.theorem6", "*-bound", kind="lower_bound")
    assert evidence.name == "certificates *-bound"
    assert evidence.check(run).startswith("5 accepted: L21.theorem6-K3-P16-bound, ")
    assert certified("L21.theorem6", "K1-P2", name="K = 1").name == "K = 1"
    assert certified("L21.theorem6", "K1-P2").check(run) == "1 accepted: L21.theorem6-K1-P2"


@pytest.mark.parametrize(("claim", "pattern"), [("S.finite", "K4-*"), ("S.absent", "*")])
def test_no_match_fails(run, claim, pattern):
    with pytest.raises(EvidenceFailed, match=r"no certificate matches .* python -m convattn\.cert"):
        certified(claim, pattern).check(run)


def test_an_empty_folder_fails(run_in):
    with pytest.raises(EvidenceFailed, match="no certificate matches"):
        certified("S.finite").check(run_in())


def test_one_rejected_file_among_good_ones_fails(run_in):
    good = committed(FINITE)
    bad = good.replace(b'"heads":10', b'"heads":11')
    assert bad != good
    run = run_in(**{FINITE: good, "S.finite-K9-P9.json": bad})
    with pytest.raises(EvidenceFailed, match=r"S\.finite-K9-P9\.json rejected \(digest\)"):
        certified("S.finite").check(run)
    assert certified("S.finite", "K3-*").check(run) == "1 accepted: S.finite-K3-P1"


@pytest.mark.parametrize("content", [b"", b"{}\n", b"\xff\xfe", b"[" * 10**5])
def test_what_is_no_certificate_fails(run_in, content):
    with pytest.raises(EvidenceFailed, match=r"S\.finite-K1\.json rejected"):
        certified("S.finite").check(run_in(**{"S.finite-K1.json": content}))


def test_a_certificate_of_another_claim_fails(run_in):
    with pytest.raises(EvidenceFailed, match=r"S\.finite-K3-P1\.json is a certificate of S\.dp1"):
        certified("S.finite").check(run_in(**{FINITE: committed(DP1)}))


def test_a_certificate_of_another_kind_fails(run):
    with pytest.raises(EvidenceFailed, match="'lower_bound', but should be of"):
        certified("L21.theorem6", "*-bound").check(run)


def test_a_missing_case_fails(run_in):
    """A file name proves nothing: the body must have the size."""
    only = run_in(**{"S.finite-K11-P1.json": committed(FINITE)})
    with pytest.raises(EvidenceFailed, match=r"none of the 1 certificates has .*\[11, 11\]"):
        certified("S.finite", cases=({"kernel_size": [11, 11]},)).check(only)
    assert certified("S.finite", cases=({"kernel_size": [3, 3], "heads": 10},)).check(only)


def test_the_conclusion_and_the_numbers_of_a_counterexample(run):
    lines = print_counterexample(run, "C20.rank-h1-o3.json").splitlines()
    body = json.loads(committed("C20.rank-h1-o3.json"))["body"]
    assert lines[0] == judge(committed("C20.rank-h1-o3.json")).reason
    assert "  rank: 1" in lines
    assert [line.split(":")[0].strip() for line in lines[1:]] == sorted(body)


def test_a_counterexample_that_is_not_there(run):
    with pytest.raises(FileNotFoundError):
        print_counterexample(run, "C20.absent.json")
