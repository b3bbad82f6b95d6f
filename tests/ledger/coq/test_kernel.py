"""What Coq's kernel says of theorems: their axioms, by full names."""

import pytest

from convattn_ledger.coq.axioms import ALLOWED, CLASSICAL, FAMILIES, REALS, judge, stated
from convattn_ledger.coq.kernel import Kernel, parse_assumptions, parse_location
from convattn_ledger.coq.sources import read_project
from ledger.coq.coq_tree import ONE, needs_coq, prove, theorem, write_sources

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


def test_a_location_is_parsed_if_it_is_one():
    one = "Constant Coq.Logic.Classical_Prop.classic"
    other = (
        "Constant Convattn.p.Classical_Prop.classic\n"
        "  (shorter name to refer to it in current context is p.Classical_Prop.classic)"
    )
    assert parse_location(f"{one}\n{other}\n") == "Coq.Logic.Classical_Prop.classic"
    assert parse_location("Constant List.rev (alias of Coq.Lists.List.rev)") == "Coq.Lists.List.rev"
    for answer in ("", "No object of basename a", "No term of basename a", other, f"{one}\n{one}"):
        assert parse_location(answer) is None


def test_only_the_listed_files_stand_on_the_listed_families(monkeypatch):
    monkeypatch.setitem(ALLOWED, "p/real.v", (REALS,))
    known = sorted(FAMILIES[REALS])
    assert judge("p/one.v", 1, ()) == judge("p/real.v", 1, known) == []
    assert stated("p/real.v") == "axioms of Coq's real numbers"
    for file, axioms, words in [
        ("p/one.v", known[:1], f"stands on '{known[0]}'"),
        ("p/real.v", [*known, "cheat"], "stands on 'cheat'"),
        ("p/real.v", [], "stands on no axiom of Coq's real numbers"),
    ]:
        (failure,) = judge(file, 7, axioms)
        assert (failure.file, failure.line) == (file, 7)
        assert failure.found == f"the theorem {words}"


@needs_coq
@pytest.mark.slow
def test_an_axiom_that_is_imported_is_named_in_full(tmp_path, monkeypatch):
    """Allowed for one file, refused for the other; the theorem without axioms is closed."""
    monkeypatch.setitem(ALLOWED, "p/real.v", (CLASSICAL,))
    body = ("True \\/ ~ True", "apply classic. Qed.")
    write_sources(
        tmp_path / "coq",
        p__one=ONE,
        p__real=f"Require Import Classical.\n{theorem('real', *body)}",
        p__new=f"Require Import Classical.\n{theorem('new', *body)}",
    )
    outcome = prove(tmp_path / "coq", tmp_path / "out")
    classic = "Coq.Logic.Classical_Prop.classic"
    assert {item.theorem.name: item.assumptions for item in outcome.theorems} == {
        "one": (),
        "real": (classic,),
        "new": (classic,),
    }
    (failure,) = outcome.failures
    assert (failure.file, failure.line) == ("p/new.v", 2)
    assert f"'{classic}'" in failure.found
    assert [item.checked for item in outcome.theorems] == [False, True, True]


@needs_coq
@pytest.mark.slow
def test_what_the_scan_would_not_see_the_kernel_does(tmp_path):
    """An axiom of the proofs by the short name of the library's, and a function without an end."""
    sources = write_sources(
        tmp_path / "coq",
        foundation__Classical_Prop="Axiom classic : forall P : Prop, P \\/ ~ P.\n"
        "#[bypass_check(guard)] Fixpoint f (n : nat) : False := f n.\n",
        p__real="From Convattn.foundation Require Import Classical_Prop.\n"
        + theorem("real", "(1 = 2) \\/ ~ (1 = 2)", "apply classic. Qed."),
        p__loop="From Convattn.foundation Require Import Classical_Prop.\n"
        + theorem("loop", "False", "exact (f 0). Qed."),
    )
    assert not any(item.checked for item in prove(sources, tmp_path / "out").theorems)
    kernel = Kernel(read_project(sources), tmp_path / "out", ["p/real.v", "p/loop.v"])
    names = ["Convattn.p.real.real", "Convattn.p.loop.loop"]
    axiom, loop = kernel.assumptions(names, names)
    assert axiom == ("Convattn.foundation.Classical_Prop.classic",)
    assert "f is assumed to be guarded" in loop[0]
