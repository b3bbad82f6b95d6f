"""A file must not define again what its reader knows by that name."""

import pytest

from convattn.ledger.coq.names import shadowing
from convattn.ledger.coq.project import read_project
from convattn.ledger.locations import coq_directory
from ledger.coq.coq_tree import ONE, write_sources

BASE = "Definition mask := 0.\nRecord size := Size { width : nat; height : nat }.\n"


def found(tmp_path, **files):
    sources = write_sources(tmp_path / "coq", foundation__base=BASE, **files)
    return [(item.file, item.line, item.found) for item in shadowing(read_project(sources))]


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
    assert found(tmp_path, p__one=f"{definition}\n{ONE}") == expected


@pytest.mark.parametrize("line", ["From Convattn.p Require Import a.", "Require Convattn.p.a."])
def test_a_name_of_a_file_that_is_required_is_not_defined_again(line, tmp_path):
    again = f"Definition own := 2.\n{ONE}"
    files = {
        "p__a": "Definition own := 1.",
        "p__b": f"{line}\nDefinition other := own.",
        "p__c": again,
    }
    assert found(tmp_path, **files, p__one=f"From Convattn.p Require b.\n{again}") == [
        ("p/one.v", 2, "'own', which p/a.v defines")
    ]


def test_what_others_do_not_see_may_have_the_name(tmp_path):
    base = "Local Notation k := 1.\nLemma l : 1 = 1. Proof. auto. Qed.\n"
    text = "Definition k := 2.\nLemma l : 1 = 1. Proof. auto. Qed.\n"
    assert found(tmp_path, foundation__more=base, p__one=f"{text}{ONE}") == []


def test_the_proofs_define_each_name_once():
    assert shadowing(read_project(coq_directory())) == []
