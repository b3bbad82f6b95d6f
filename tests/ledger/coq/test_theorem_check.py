"""Evidence of level PROVED: what it asks of the sources and of the report. Coq is not needed."""

import json
from pathlib import Path

import pytest

from convattn_ledger import EvidenceFailed, Level, NotRunHere, Run
from convattn_ledger.coq import theorem_check
from convattn_ledger.coq.rules import scan
from convattn_ledger.coq.sources import LOCK, digest
from convattn_ledger.evidence import proved
from ledger.coq.coq_tree import ONE, write_sources

FILE, BASE = "p/one.v", "foundation/base.v"


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A checkout with two sources and a report that goes with them; edits the report, too."""
    sources = write_sources(tmp_path / "coq", p__one=ONE, foundation__base="Lemma a : True.")
    (sources / "_CoqProject").write_text("-Q . Convattn\n")
    lock = {"schema": 2, "theorems": {FILE: {"covers": {"S.a": "all", "S.b": "none"}}}}
    (sources / LOCK).write_text(json.dumps({**lock, "definitions": {}, "libraries": {}}))
    monkeypatch.setattr(theorem_check, "coq_directory", lambda: sources)
    monkeypatch.setattr(theorem_check, "prove_report", lambda: tmp_path / "report.json")

    def write(change=lambda report: None):
        theorem, _ = scan(FILE, ONE)
        names = (FILE, BASE, "_CoqProject", LOCK)
        report = {
            "schema": 1,
            "versions": {"coq": "8.16.1"},
            "sources": {name: digest((sources / name).read_bytes()) for name in names},
            "theorems": {
                FILE: {
                    "statement": theorem.statement,
                    "requires": [BASE],
                    "stands_on": "closed under the global context",
                    "checked": True,
                }
            },
            "failures": [],
        }
        change(report)
        (tmp_path / "report.json").write_text(json.dumps(report))

    write()
    return tmp_path, write


def check(file=FILE, claim="S.a", covers="all"):
    return proved(file, covers=covers).check(Run(0, True, Path(), claim))


def test_it_is_quick_evidence_of_level_proved_with_the_files_name():
    item = proved("sharpened/finite.v")
    assert (item.name, item.level, item.quick) == ("machine-checked: finite", Level.PROVED, True)
    assert item.assumes == "Coq's kernel"
    assert "axioms of Coq's real numbers" in proved("cordonnier2020/alpha46.v").assumes


def test_it_passes_if_the_report_has_checked_these_sources(place):
    assert check() == (
        "Coq 8.16.1: Theorem one of proofs/coq/p/one.v, closed under the global context"
    )


@pytest.mark.parametrize("name", [FILE, BASE, "_CoqProject"])
def test_a_source_that_changed_is_not_re_checked(place, name):
    path = place[0] / "coq" / name
    path.write_text(f"{path.read_text()}\n(* more *)\n")
    with pytest.raises(NotRunHere, match=rf"not re-checked here: changed .*{name}; .*make prove"):
        check()


def test_without_a_report_nothing_is_re_checked(place, monkeypatch):
    folder, write = place
    for content in (None, "{", "[]", '{"schema": 0, "theorems": {}}'):
        (folder / "report.json").unlink(missing_ok=True)
        if content is not None:
            (folder / "report.json").write_text(content)
        with pytest.raises(NotRunHere, match=r"not re-checked here: .*has no report"):
            check()
    write(lambda report: report["theorems"].clear())
    with pytest.raises(NotRunHere, match=r"does not know p/one\.v"):
        check()
    monkeypatch.setenv("PATH", str(folder))
    with pytest.raises(NotRunHere, match="Coq is not installed: apt-get install"):
        check()


def test_without_the_sources_nothing_is_re_checked(place, monkeypatch):
    monkeypatch.setattr(theorem_check, "prove_report", lambda: None)
    with pytest.raises(NotRunHere, match="read in a checkout alone"):
        check()


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        (ONE.replace("Qed", "Admitted"), {}, "'Admitted'"),
        (f"Section S.\n{ONE}End S.", {}, "within Section S"),
        ("Lemma one : 1 = 1.", {}, "theorems: none"),
        (ONE, {"file": "p/two.v"}, r"p/two\.v cannot be read"),
        (
            ONE,
            {"claim": "S.b", "covers": "none"},
            r"S\.b names .*one\.v, whose .* begins with S\.a;",
        ),
        (ONE, {"covers": "everything"}, "covers='everything', but the lock has 'all'"),
    ],
)
def test_what_is_no_proof_of_the_claim_fails(place, source, options, message):
    write_sources(place[0] / "coq", p__one=source)
    with pytest.raises(EvidenceFailed, match=message):
        check(**options)


def test_what_the_report_refused_fails(place):
    def refuse(report):
        report["theorems"][FILE]["checked"] = False
        report["failures"] = [{"file": FILE, "line": 1, "found": "cheat", "remedy": "prove it"}]

    place[1](refuse)
    with pytest.raises(EvidenceFailed, match=r"Coq 8\.16\.1 has not checked one: cheat"):
        check()


def test_without_a_lock_a_theorem_covers_nothing(place):
    place[1](lambda report: report["sources"].pop(LOCK))
    (place[0] / "coq" / LOCK).unlink()
    with pytest.raises(EvidenceFailed, match="the lock has None"):
        check()
