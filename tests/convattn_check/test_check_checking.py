import copy

import certificate_builder as build
import pytest
from certificate_cases import CASES, verdict_on

from convattn_check import checking

WO = CASES["wo"]


@pytest.mark.parametrize("name", CASES)
def test_accepted(name):
    verdict = verdict_on(CASES[name])
    assert verdict.accepted, verdict
    assert (verdict.claim, verdict.code) == (CASES[name]["claim"], "")
    assert verdict.reason
    assert verdict.seconds >= 0


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"schema": 1}, "schema"),
        ({"conventions": {}}, "schema"),
        ({"conventions": build.CONVENTIONS | {"more": "1"}}, "schema"),
        ({"claim": "\x1b[31m"}, "claim"),
        ({"claim": ""}, "malformed"),
        ({"claim": ["C20.theorem1"]}, "malformed"),
        ({"kind": {}}, "malformed"),
        ({"statement": ""}, "malformed"),
        ({"statement": None}, "malformed"),
        ({"body": []}, "malformed"),
        ({"body": None}, "malformed"),
    ],
)
def test_planted_at_the_top(change, code):
    certificate = build.sealed(WO | change)
    verdict = verdict_on(certificate)
    assert not verdict.accepted
    assert verdict.code == code, verdict
    assert verdict.claim in ("", WO["claim"], change.get("claim"))
    assert "\x1b" not in verdict.reason + verdict.claim


@pytest.mark.parametrize("name", ["schema", "claim", "kind", "statement", "conventions", "digests"])
def test_nothing_may_be_missing(name):
    certificate = copy.deepcopy(WO)
    del certificate[name]
    assert verdict_on(certificate).code == "malformed"


@pytest.mark.parametrize(
    ("digests", "code"),
    [
        ({"body": "0" * 64}, "digest"),
        ({"body": 5}, "malformed"),
        ({"more": "0"}, "malformed"),
    ],
)
def test_digests(digests, code):
    certificate = WO | {"digests": WO["digests"] | digests}
    verdict = verdict_on(certificate)
    assert not verdict.accepted
    assert verdict.code == code
    assert verdict_on(certificate, ignore_digests=True).accepted == (code in ("digest", "stale"))


@pytest.mark.parametrize("error", [ZeroDivisionError, RecursionError, MemoryError, SystemError])
def test_whatever_goes_wrong_is_a_rejection(monkeypatch, error):
    def breaks(claim, body):
        raise error("\x1b" + "x" * 5000)

    monkeypatch.setitem(checking.CHECKS, "equality", breaks)
    verdict = verdict_on(WO)
    assert (verdict.accepted, verdict.claim, verdict.code) == (False, "L21.wo", "internal")
    assert error.__name__ in verdict.reason
    assert len(verdict.reason) < 200
    assert verdict.reason.isprintable()


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_interrupts_pass(monkeypatch, error):
    def stops(claim, body):
        raise error

    monkeypatch.setitem(checking.CHECKS, "equality", stops)
    with pytest.raises(error):
        verdict_on(WO)
