import pytest

from convattn.ledger.coq.assumptions import parse_assumptions, parse_location
from convattn.ledger.coq.axioms import ALLOWED, CLASSICAL, FAMILIES, REALS, judge, stated
from ledger.coq.coq_tree import needs_coq, prove, theorem, write_sources

ANSWER = """Axioms:
Uint63.sub_spec
  : forall x y : PrimInt63.int,
    Uint63.to_Z (PrimInt63.sub x y) =
    ((Uint63.to_Z x - Uint63.to_Z y) mod Uint63.wB)%Z
PrimInt63.sub : PrimInt63.int -> PrimInt63.int -> PrimInt63.int
f is assumed to be guarded.
"""


def test_answers_are_parsed():
    assert parse_assumptions("Closed under the global context\n") == ()
    assert parse_assumptions(ANSWER) == (
        "PrimInt63.sub",
        "Uint63.sub_spec",
        "f is assumed to be guarded.",
    )


@pytest.mark.parametrize("answer", ["", "\n", "Axioms:\n"])
def test_an_answer_that_says_nothing_is_refused(answer):
    with pytest.raises(ValueError, match="names nothing"):
        parse_assumptions(answer)


def test_theorems_stand_on_no_axiom():
    assert judge("p/one.v", 1, ()) == []
    (failure,) = judge("p/one.v", 7, ("Coq.Reals.ClassicalDedekindReals.sig_not_dec",))
    assert (failure.file, failure.line) == ("p/one.v", 7)
    assert "stands on 'Coq.Reals.ClassicalDedekindReals.sig_not_dec'" in failure.found
    assert "no axiom at all" in failure.remedy


def test_theorems_on_real_numbers_stand_on_the_listed_families(monkeypatch):
    monkeypatch.setitem(ALLOWED, "p/real.v", (REALS,))
    known = sorted(FAMILIES[REALS])
    assert judge("p/real.v", 1, known) == []
    assert stated("p/real.v") == "axioms of Coq's real numbers"
    assert [failure.found for failure in judge("p/real.v", 1, [*known, "cheat"])] == [
        "the theorem stands on 'cheat'"
    ]
    assert [failure.found for failure in judge("p/real.v", 1, [])] == [
        "the theorem stands on no axiom of Coq's real numbers"
    ]


def test_a_location_is_parsed_if_it_is_one():
    one = "Constant Coq.Logic.Classical_Prop.classic"
    other = (
        "Constant Convattn.p.Classical_Prop.classic\n"
        "  (shorter name to refer to it in current context is p.Classical_Prop.classic)"
    )
    assert parse_location(f"{one}\n") == "Coq.Logic.Classical_Prop.classic"
    assert parse_location(f"{one}\n{other}\n") == "Coq.Logic.Classical_Prop.classic"
    for answer in ("", "No object of basename a", other, f"{one}\n{one}"):
        assert parse_location(answer) is None


@needs_coq
def test_axioms_of_the_library_are_named_in_full(tmp_path, monkeypatch):
    monkeypatch.setitem(ALLOWED, "p/real.v", (CLASSICAL,))
    either = theorem("real", "True \\/ ~ True", "apply classic. Qed.")
    write_sources(tmp_path / "coq", p__real=f"Require Import Classical.\n{either}")
    outcome = prove(tmp_path / "coq", tmp_path / "out")
    assert outcome.failures == ()
    assert [item.assumptions for item in outcome.theorems] == [
        ("Coq.Logic.Classical_Prop.classic",)
    ]


@needs_coq
def test_an_axiom_of_the_proofs_is_not_taken_for_the_library_s(tmp_path, monkeypatch):
    monkeypatch.setitem(ALLOWED, "p/real.v", (CLASSICAL,))
    declared = "Class Empty := cheat : False.\nDeclare Instance classic : Empty.\n"
    write_sources(
        tmp_path / "coq",
        foundation__Classical_Prop=declared,
        p__real="From Convattn.foundation Require Import Classical_Prop.\n"
        + theorem("real", "1 = 2", "destruct classic. Qed."),
    )
    outcome = prove(tmp_path / "coq", tmp_path / "out")
    found = [failure.found for failure in outcome.failures if failure.file == "p/real.v"]
    assert "the theorem stands on 'Convattn.foundation.Classical_Prop.classic'" in found
    assert not any(item.checked for item in outcome.theorems)
