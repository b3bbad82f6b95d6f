"""What a proof file may say, what its theorem is, and which names it may define. No Coq."""

import pytest

from convattn_ledger.coq.rules import closure, scan, shadowing
from convattn_ledger.coq.sources import blank, read_project, sentences
from convattn_ledger.locations import coq_directory
from ledger.coq.coq_tree import DISGUISES, ONE, write_sources

BASE = "Definition mask := 0.\nRecord size := Size { width : nat; height : nat }.\n"


def scanned(text, file="p/one.v"):
    theorem, failures = scan(file, text)
    return theorem, [(failure.line, failure.found) for failure in failures]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a (* (* b *) c *) d", "a d"),
        ('a "(*" b "*)" c', 'a "  " b "  " c'),
        ('a (* "*)" b *) c', "a c"),
        ('a (* " (* " *) c', "a c"),
        ("a (* b\n c *) d", "a d"),
        ("a (* b", "a"),
        ("a *) b", "a *) b"),
        ("Adm(**)itted", "Adm itted"),
    ],
)
def test_comments_are_blanked(text, code):
    result = blank(text)
    assert result.split() == code.split()
    assert len(result) == len(text)
    assert result.count("\n") == text.count("\n")


def test_sentences_end_at_a_full_stop_before_white_space():
    text = "Lemma a x : x.1 = x.+1.\nProof. (* no. end *) by rewrite /M.f //... Qed."
    items = list(sentences(text))
    assert [(item.line, item.text) for item in items] == [
        (1, "Lemma a x : x.1 = x.+1."),
        (2, "Proof."),
        (2, "by rewrite /M.f //..."),
        (2, "Qed."),
    ]
    assert [text[item.start : item.end][-2:] for item in items] == ["1.", "f.", "..", "d."]


def test_a_file_with_one_theorem_passes():
    text = "(** Words. *)\nRequire Import Arith.\nLemma a : True. Proof. exact I. Qed.\n" + ONE
    theorem, failures = scanned(text)
    assert failures == []
    assert (theorem.name, theorem.line, theorem.statement) == ("one", 4, "Theorem one : 1 = 1.")


@pytest.mark.parametrize("name", DISGUISES)
def test_a_false_theorem_in_disguise_is_refused(name):
    text, expected = DISGUISES[name]
    assert expected in scanned(text)[1]


@pytest.mark.parametrize(
    ("planted", "word"),
    [
        ("Module M.", "'Module'"),
        ("Module M <: T := N.", "'Module'"),
        ("Module Type T.", "'Module'"),
        ("Module Nat := evil.", "'Module'"),
        ("Module Nat := evil .", "'Module'"),
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
        ("Definition s := 1. (* is *) Definition \u0455 := 2.", "not ASCII"),
        ("Lemma a : False. Proof. Admitted.", "'Admitted'"),
        ("Lemma a : False. Proof. Abort.", "'Abort'"),
        ("Axiom a : False.", "'Axiom'"),
        ("Local Axiom a : False.", "'Local'"),
        ("#[local] Parameter a : False.", "'#[local]'"),
        ("Conjecture a : False.", "'Conjecture'"),
        ("Section S. End S. Variable a : False.", "'Variable'"),
        ("Hypothesis a : False.", "'Hypothesis'"),
        ("Section S. End S. Let a := True.", "'Let'"),
        ("Declare Instance a : False.", "'Declare'"),
        ("Admit Obligations.", "'Admit'"),
        ("Unset  Guard\nChecking.", "'Unset'"),
        ("#[bypass_check(guard)] Fixpoint f (n : nat) : False := f n.", "'#[bypass_check(guard)]'"),
        ("Primitive a := #int63_add.", "'Primitive'"),
        ("Load elsewhere.", "'Load'"),
        ("From Convattn Require Import p.a(b).", "'From'"),
        ("From Convattn Require Import -(notations) p.a.", "'From'"),
        ("From Convattn Require Import p .a.", "'From'"),
        ("Require Convattn.p .a.", "'Require'"),
        ("Import a(b).", "'Import'"),
    ],
)
def test_a_command_that_is_not_known_is_refused(planted, word):
    assert (3, word) in scanned(f"{ONE}{planted}\n")[1]
    assert (1, word) in scanned(f"{planted}\n", "foundation/a.v")[1]


@pytest.mark.parametrize(
    "harmless",
    [
        "(* Admitted. é *)",
        "(* (* Axiom *) admit *)",
        "Lemma admitted_not : True. Proof. exact I. Qed.",
        "Definition my_Axiom' := 0.",
        "Section S. Variables a b : nat. Hypothesis c : a = b. Let d := a. End S.",
        "Section S. Section T. End T. Variable a : nat. End S.",
        "Module M := F N.",
        "Lemma a : True. Proof. - by []. + - { exact I. } * auto. } Qed.",
        "From mathcomp Require Import ssreflect\n (* and *) ssralg .\nImport GRing.Theory.",
        "Local Open Scope nat_scope. Local Notation f := (g 0).",
    ],
)
def test_what_only_looks_like_it_is_not(harmless):
    assert scanned(f"{harmless}\n{ONE}")[1] == []


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
    assert scanned(text)[1] == [(line, words)]


def test_the_foundation_and_the_bridge_need_no_theorem():
    for folder in ("foundation", "bridge"):
        assert scanned("Lemma a : True. Proof. exact I. Qed.", f"{folder}/a.v") == (None, [])


def test_the_remedy_goes_with_the_place():
    for text, words in {
        "Reset a.": "only the commands listed",
        "Lemma a : True. auto. Qed.": "write 'Proof.'",
        "Lemma a : True. Proof. Lemma b : True. Qed.": "only tactics and bullets",
    }.items():
        assert words in scan("foundation/a.v", text)[1][0].remedy


def defined_again(tmp_path, **files):
    sources = write_sources(tmp_path / "coq", foundation__base=BASE, **files)
    project = read_project(sources)
    failures = shadowing(project, closure(project))
    return [(item.file, item.line, item.found) for item in failures]


@pytest.mark.parametrize(
    ("definition", "name"),
    [
        ("Definition mask := 1.", "mask"),
        ("Local Definition mask := 1.", "mask"),
        ("Local Notation mask := 1.", "mask"),
        ("Fixpoint f (n : nat) : nat := 0 with mask (n : nat) : nat := 1.", "mask"),
        ("Lemma mask : nat. Proof. exact 1. Qed.", "mask"),
        ("Record mask := Mask { }.", "mask"),
        ("Record other := Other { depth : nat; height : nat }.", "height"),
        ("Record other := Size { depth : nat }.", "Size"),
    ],
)
def test_a_name_of_the_foundation_is_not_defined_again(definition, name, tmp_path):
    expected = [("p/one.v", 1, f"'{name}', which foundation/base.v defines")]
    assert defined_again(tmp_path, p__one=f"{definition}\n{ONE}") == expected


@pytest.mark.parametrize("line", ["From Convattn.p Require Import a.", "Require Convattn.p.a."])
def test_a_name_of_a_file_that_is_required_is_not_defined_again(line, tmp_path):
    again = f"Definition own := 2.\n{ONE}"
    files = {
        "p__a": "Definition own := 1.",
        "p__b": f"{line}\nDefinition other := own.",
        "p__c": again,
    }
    assert defined_again(tmp_path, **files, p__one=f"From Convattn.p Require b.\n{again}") == [
        ("p/one.v", 2, "'own', which p/a.v defines")
    ]


def test_what_others_do_not_see_may_have_the_name(tmp_path):
    base = "Local Notation k := 1.\nLemma l : 1 = 1. Proof. auto. Qed.\n"
    text = "Definition k := 2.\nLemma l : 1 = 1. Proof. auto. Qed.\n"
    assert defined_again(tmp_path, foundation__more=base, p__one=f"{text}{ONE}") == []


@pytest.mark.slow
def test_the_proofs_define_each_name_once():
    project = read_project(coq_directory())
    assert shadowing(project, closure(project)) == []
