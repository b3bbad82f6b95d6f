"""Whole runs over tiny trees; Coq takes a fraction of a second for each file."""

import json

import pytest

from convattn_ledger.coq import build
from convattn_ledger.coq.build import find_coq
from convattn_ledger.coq.run import as_report
from convattn_ledger.coq.sources import read_project
from ledger.coq.coq_tree import (
    DISGUISES,
    ONE,
    claim_file,
    needs_coq,
    places,
    prove,
    theorem,
    write_sources,
)
from ledger.proof_files import claim, evidence, write

pytestmark = [needs_coq, pytest.mark.slow]


BASE = "Lemma base : 1 = 1.\nProof. reflexivity. Qed.\n"


@pytest.fixture
def tree(tmp_path):
    """Two theorems on one foundation, each named by a claim."""
    second = "(** S.b: two. *) From Convattn.foundation Require Import base.\n" + theorem(
        "two", proof="exact base. Qed."
    )
    write_sources(
        tmp_path / "coq", foundation__base=BASE, p__one=ONE, p__two=second, checker__c=theorem("c")
    )
    write(
        tmp_path / "proofs",
        p__a=claim_file("S.a", "p/one.v"),
        p__b=claim_file("S.b", "p/two.v"),
    )
    return tmp_path


def check(tree, **options):
    return prove(tree / "coq", tree / "out", tree / "proofs", **options)


def test_what_is_right_passes(tree):
    outcome = check(tree)
    assert outcome.failures == ()
    checked_by_file = {item.theorem.file: item for item in outcome.theorems}
    assert list(checked_by_file) == ["checker/c.v", "p/one.v", "p/two.v"]
    assert all(item.checked and item.assumptions == () for item in checked_by_file.values())
    assert checked_by_file["p/two.v"].claims == ("S.b",)
    assert checked_by_file["p/two.v"].requires == ("foundation/base.v",)
    assert checked_by_file["checker/c.v"].claims == ()


def test_only_what_has_changed_is_compiled_again(tree):
    assert check(tree).compiled == 4
    assert check(tree).compiled == 0
    write_sources(tree / "coq", foundation__base="(* *) Lemma base : 1 = 1. Proof. auto. Qed.\n")
    outcome = check(tree)
    assert (outcome.compiled, outcome.failures) == (2, ())
    (tree / "coq" / "checker" / "c.v").unlink()
    assert [item.theorem.name for item in check(tree).theorems] == ["one", "two"]
    assert not (tree / "out" / "coq" / "checker" / "c.vo").exists()


def test_a_file_alone_is_checked_with_what_it_requires(tree):
    write_sources(tree / "coq", p__broken="Theorem broken : 1 = 2. Proof. reflexivity. Qed.")
    outcome = check(tree, only=["p/two.v"])
    assert (outcome.compiled, outcome.failures) == (2, ())
    assert [item.theorem.file for item in outcome.theorems] == ["p/two.v"]
    assert places(check(tree)) == [("p/broken.v", 1)]


@pytest.mark.parametrize(
    ("planted", "failure"),
    [
        ({"p__one": theorem("one", proof="Admitted.")}, ("p/one.v", 2, "'Admitted'")),
        ({"p__one": theorem("one", "1 = 2")}, ("p/one.v", 2, "Coq refuses it")),
        ({"p__one": f"Section S.\nVariable n : nat.\n{ONE}End S.\n"}, ("p/one.v", 3, "Section S")),
        ({"p__one": "Require Import Nowhere.\n" + ONE}, ("p/one.v", 1, "Coq refuses it")),
        ({"p__one": ONE.replace("1.", "1")}, ("p/one.v", 2, "Coq refuses it")),
        ({"p__new": "Axiom a : 1 = 2.\n" + theorem("new")}, ("p/new.v", 1, "'Axiom'")),
        ({"foundation__base": "Axiom base : 1 = 1."}, ("foundation/base.v", 1, "'Axiom'")),
        (
            {
                "foundation__base": f"Definition x := 1.\n{BASE}",
                "p__one": f"(** S.a: one. *) Definition x := 2.\n{ONE}",
            },
            ("p/one.v", 1, "'x', which foundation/base.v defines"),
        ),
        (
            {"foundation__base": "Lemma base : 1 = 2. Proof. reflexivity. Qed."},
            ("p/two.v", 0, "not compiled, since foundation/base.v does not compile"),
        ),
    ],
)
def test_planted_failures_are_found(tree, planted, failure):
    write_sources(tree / "coq", **planted)
    outcome = check(tree)
    file, line, words = failure
    assert any(
        (item.file, item.line) == (file, line) and words in item.found for item in outcome.failures
    ), [str(item) for item in outcome.failures]
    named = {item.theorem.file: item for item in outcome.theorems}
    assert not (file in named and named[file].checked)
    assert named["checker/c.v"].checked


def test_a_false_theorem_in_disguise_is_refused_though_coq_accepts_the_file(tmp_path):
    write_sources(
        tmp_path / "coq",
        **{f"p{n}__one": text for n, (text, _) in enumerate(DISGUISES.values())},
    )
    outcome = prove(tmp_path / "coq", tmp_path / "out")
    assert outcome.compiled == len(DISGUISES)
    assert not any(item.checked for item in outcome.theorems)
    for number, (_, (line, words)) in enumerate(DISGUISES.values()):
        failures = [(f.line, f.found) for f in outcome.failures if f.file == f"p{number}/one.v"]
        assert (line, words) in failures


@pytest.mark.parametrize(
    ("claimed", "words"),
    [
        (claim_file("S.a", "p/three.v"), "no such file"),
        (claim_file("S.a", "foundation/base.v"), "no such file"),
        (claim("S.a", evidence(), evidence(level="PROVED", name="x")), "names no theorem"),
        ("1/0", "cannot be imported"),
        # As evidence of a hard claim, a theorem on the definitions would do.
        (
            claim_file("S.a", "checker/c.v"),
            "S.a names checker/c.v, whose first comment begins with no claim",
        ),
    ],
)
def test_a_claim_that_names_no_theorem_is_found(tree, claimed, words):
    write(tree / "proofs", p__a=claimed)
    outcome = check(tree)
    assert places(outcome) == [("p/a.py", 0), ("p/one.v", 1)]
    assert words in outcome.failures[0].found
    assert "begins with S.a, which does not name this theorem" in outcome.failures[1].found
    assert [item.theorem.name for item in outcome.theorems if item.checked] == ["c", "two"]


@pytest.mark.parametrize(
    ("comment", "words"),
    [
        ("", "S.a names p/one.v, whose first comment begins with no claim"),
        ("(** One is one: S.a. *) ", "whose first comment begins with no claim"),
        ("Definition x := 1. (** S.a *) ", "whose first comment begins with no claim"),
        ("(** S.tiles: one. *) ", "whose first comment begins with S.tiles"),
    ],
)
def test_a_claim_names_theorems_of_its_own_alone(tree, comment, words):
    write_sources(tree / "coq", p__one=comment + theorem("one"))
    outcome = check(tree)
    assert outcome.failures[0].file == "p/a.py"
    assert words in outcome.failures[0].found


def test_circles_and_strange_projects_are_found(tree):
    write_sources(
        tree / "coq",
        p__x=f"From Convattn.p Require y.\n{theorem('x')}",
        p__y=f"From Convattn.p Require x.\n{theorem('y')}",
    )
    (tree / "coq" / "_CoqProject").write_text("-Q . Convattn\n-arg -type-in-type\n")
    outcome = check(tree)
    assert places(outcome) == [("_CoqProject", 0), ("p/x.v", 0), ("p/y.v", 0)]
    assert outcome.failures[0].found == "other options"
    assert {item.theorem.name for item in outcome.theorems if item.checked} == {"c", "one", "two"}


def test_the_report_holds_what_was_checked(tree):
    project = read_project(tree / "coq")
    report = as_report(find_coq(project), project, check(tree))
    assert json.loads(json.dumps(report)) == report
    assert report["passed"] is True
    assert set(report["sources"]) == {"foundation/base.v", "p/one.v", "p/two.v", "checker/c.v"}
    entry = report["theorems"]["p/two.v"]
    assert entry["statement"] == "Theorem two : 1 = 1."
    assert entry["stands_on"] == "closed under the global context"
    assert (entry["assumptions"], entry["checked"]) == ([], True)


def test_a_proof_that_does_not_end_is_given_up(tree, monkeypatch):
    monkeypatch.setattr(build, "LIMIT", 3)
    write_sources(tree / "coq", p__loop=theorem("loop", proof="do 1000000000 idtac. Qed."))
    outcome = check(tree)
    assert places(outcome) == [("p/loop.v", 0)]
    assert "without a message, or after 3 s" in outcome.failures[0].found
