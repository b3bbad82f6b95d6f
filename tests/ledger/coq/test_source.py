import pytest

from convattn.ledger.coq.source import scan
from ledger.coq.coq_tree import ONE


def found(text, file="p/one.v"):
    theorem, failures = scan(file, text)
    return theorem, [(failure.line, failure.found) for failure in failures]


def test_a_file_with_one_theorem_passes():
    text = "(** Words. *)\nRequire Import Arith.\nLemma a : True. Proof. exact I. Qed.\n" + ONE
    theorem, failures = found(text)
    assert failures == []
    assert (theorem.name, theorem.line, theorem.statement) == ("one", 4, "Theorem one : 1 = 1.")


@pytest.mark.parametrize(
    ("planted", "word"),
    [
        ("Lemma a : False. Proof. Admitted.", "'Admitted'"),
        ("Lemma a : False. Proof. admit. Qed.", "'admit'"),
        ("Lemma a : False. Proof. have : False by admit. Qed.", "'admit'"),
        ("Lemma a : False. Proof. give_up. Qed.", "'give_up'"),
        ("Lemma a : False. Proof. Abort.", "'Abort'"),
        ("Axiom a : False.", "'Axiom'"),
        ("Local Axiom a : False.", "'Axiom'"),
        ("#[local] Parameter a : False.", "'Parameter'"),
        ("Parameters (a b : False).", "'Parameters'"),
        ("Conjecture a : False.", "'Conjecture'"),
        ("Variable a : False.", "'Variable'"),
        ("Hypothesis a : False.", "'Hypothesis'"),
        ("Context (a : False).", "'Context'"),
        ("Declare Instance a : False.", "'Declare Instance'"),
        ("Admit Obligations.", "'Admit Obligations'"),
        ("Section S. End S. Variables a b : False.", "'Variables'"),
        ("Declare Module M : T.", "'Declare Module'"),
        ("Unset Guard Checking.", "'Unset Guard Checking'"),
        ("Unset  Universe\nChecking.", "'Unset Universe Checking'"),
        ("Local Unset Positivity Checking.", "'Unset Positivity Checking'"),
        ("#[bypass_check(guard)] Fixpoint f (n : nat) : False := f n.", "'bypass_check'"),
        ("Primitive a := #int63_add.", "'Primitive'"),
        ("Load elsewhere.", "'Load'"),
    ],
)
def test_whatever_is_assumed_is_found(planted, word):
    _, failures = found(f"(* comment *)\n{planted}\n{ONE}")
    assert failures == [(2, word)]
    assert found(f"{planted}\n", "foundation/a.v")[1] == [(1, word)]


@pytest.mark.parametrize(
    "harmless",
    [
        "(* Admitted. *)",
        "(* (* Axiom *) admit *)",
        "Lemma Adm (**)itted : True. Proof. exact I. Qed.",
        "Lemma admitted_not : True. Proof. exact I. Qed.",
        "Definition my_Axiom' := 0.",
        "Section S. Variables a b : nat. Hypothesis c : a = b. Let d := a. End S.",
        "Section S. Section T. End T. Variable a : nat. End S.",
        "Module M := F N.",
        "Lemma a : True. Proof. - by []. + - { exact I. } * auto. } Qed.",
        "Local Open Scope nat_scope. Local Notation f := (g 0).",
    ],
)
def test_what_only_looks_like_it_is_not(harmless):
    assert found(f"{harmless}\n{ONE}")[1] == []


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("Lemma one : 1 = 1. Proof. reflexivity. Qed.", 0, "theorems: none"),
        (ONE + ONE.replace("one", "two"), 3, "theorems: 'one', 'two'"),
        (ONE.replace("one", "two"), 1, "'Theorem two : 1 ...'"),
        (f"Local {ONE}", 1, "'Local Theorem one : ...'"),
        (f"Section S.\n{ONE}End S.", 2, "Theorem one within Section S"),
        (f"(* {ONE} *)", 0, "theorems: none"),
    ],
)
def test_there_is_one_theorem_named_as_the_file_at_the_top(text, line, words):
    assert found(text)[1] == [(line, words)]


def test_the_foundation_and_the_bridge_need_no_theorem():
    for folder in ("foundation", "bridge"):
        assert found("Lemma a : True. Proof. exact I. Qed.", f"{folder}/a.v") == (None, [])
