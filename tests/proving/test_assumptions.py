import pytest

from convattn.proving.assumptions import parse_assumptions
from convattn.proving.axioms import ALLOWED, FAMILIES, REALS, judge, stated

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
    (failure,) = judge("p/one.v", 7, ("ClassicalDedekindReals.sig_not_dec",))
    assert (failure.file, failure.line) == ("p/one.v", 7)
    assert "stands on 'ClassicalDedekindReals.sig_not_dec'" in failure.found
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
