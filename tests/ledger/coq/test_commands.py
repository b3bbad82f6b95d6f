"""Only commands that are known to be harmless may stand in a proof file."""

import pytest

from convattn.ledger.coq.commands import refused
from convattn.ledger.coq.source import scan
from ledger.coq.coq_tree import ONE, needs_coq, prove, write_sources

# False theorems that Coq accepts, or sees where a reader sees another; and what gives them away.
DISGUISES = {
    "a module that a signature seems to make an alias": (
        """From Coq Require Import Structures.Equalities.
Class Empty := cheat : False.
Module M : Typ with Definition t := nat.
Definition t := nat.
Declare Instance falso : Empty.
Theorem one : 1 = 2.
Proof. destruct falso. Qed.
End M.
Lemma one : True.
Proof. exact I. Qed.
""",
        (3, "'Module'"),
    ),
    "a module behind an unknown prefix": (
        """Class Empty := cheat : False.
Timeout 9 Module M.
Declare Instance falso : Empty.
Theorem one : 1 = 2.
Proof. destruct falso. Qed.
End M.
Lemma one : True.
Proof. exact I. Qed.
""",
        (2, "'Timeout'"),
    ),
    "a theorem that is taken back": (
        """Theorem one : 1 = 2.
Proof.
Undo.
Reset one.
Lemma one : True.
Proof. exact I. Qed.
""",
        (4, "'Reset'"),
    ),
    "everything taken back": (
        """Theorem one : 1 = 2.
Proof. Reset Initial.
Lemma one : True. Proof. exact I. Qed.
""",
        (2, "'Reset'"),
    ),
    "a section behind an unknown prefix": (
        """Timeout 9 Section S.
Timeout 9 Variable h : False.
Theorem one : 1 = 2.
Proof. destruct h. Qed.
Timeout 9 End S.
""",
        (2, "'Timeout'"),
    ),
    "a comment that is none": (
        """Notation "@( '*' x" := x (at level 200, x constr at level 0).
Notation "x *)" := x (at level 1).
Check @(* I. Module M. Axiom h : False. Check I *) .
Theorem one : 1 = 2.
Proof. destruct h. Qed.
Check @(* I. End M. Lemma one : True. Proof. exact I. Qed. Check I *) .
""",
        (3, "'(*'"),
    ),
}


def found(text):
    return [(failure.line, failure.found) for failure in refused("p/one.v", text)]


@needs_coq
@pytest.mark.parametrize("name", DISGUISES)
def test_a_false_theorem_in_disguise_is_refused_though_coq_accepts_the_file(name, tmp_path):
    text, expected = DISGUISES[name]
    write_sources(tmp_path / "coq", p__one=text)
    outcome = prove(tmp_path / "coq", tmp_path / "out")
    assert outcome.compiled == 1
    assert expected in [(failure.line, failure.found) for failure in outcome.failures]
    assert not any(item.checked for item in outcome.theorems)


@pytest.mark.parametrize("name", DISGUISES)
def test_a_false_theorem_in_disguise_is_refused_without_coq(name):
    text, expected = DISGUISES[name]
    assert expected in found(text)


@pytest.mark.parametrize(
    ("planted", "word"),
    [
        ("Module M.", "'Module'"),
        ("Module M <: T := N.", "'Module'"),
        ("Module Type T.", "'Module'"),
        ("Context (a : nat).", "'Context'"),
        ("Class A := a : nat.", "'Class'"),
        ("Reset Initial.", "'Reset'"),
        ("Set Nested Proofs Allowed.", "'Set'"),
        ("Unset Implicit Arguments.", "'Unset'"),
        ("Program Definition a : nat := 1.", "'Program'"),
        ("Definition a : nat.", "'Definition'"),
        ("Ltac a := idtac.", "'Ltac'"),
        ("#[local] Definition a := 1.", "'#[local]'"),
        ("Fail Lemma a : 1 = 2.", "'Fail'"),
        ("Elpi Command a.", "'Elpi'"),
        ("Section S. Local End S.", "'Local'"),
        ("by [].", "'by'"),
        ("Lemma a : True. by []. Proof. Qed.", "'by'"),
        ("Lemma a : True. Proof using. by []. Qed.", "'Proof'"),
        ("Lemma a : True. Proof. by []. Defined.", "'Defined'"),
        ("Lemma a : True. Proof. { Undo. } auto. Qed.", "'Undo'"),
        ("Lemma a : True. Proof. - + Reset a. auto. Qed.", "'Reset'"),
        ("Lemma a : True. Proof. 1:{ Reset a. } auto. Qed.", "'1'"),
        ('Definition a := "b".', "'\"'"),
        ("Definition a(* b *) := 1.", "'(*'"),
        ("Definition a := lp:{{ (* }}.", "':('"),
    ],
)
def test_a_command_that_is_not_known_is_refused(planted, word):
    assert (3, word) in found(f"{ONE}{planted}\n")


def test_a_string_in_a_statement_is_refused_since_its_white_space_counts():
    text = 'Theorem one : "a  b" = "a  b".\nProof. reflexivity. Qed.\n'
    assert [failure.found for failure in scan("p/one.v", text)[1]] == ["'\"'"]


def test_the_remedy_goes_with_the_place():
    for text, words in {
        "Reset a.": "only the commands listed",
        "Lemma a : True. auto. Qed.": "write 'Proof.'",
        "Lemma a : True. Proof. Lemma b : True. Qed.": "only tactics and bullets",
    }.items():
        (failure, *_) = refused("p/one.v", text)
        assert words in failure.remedy
