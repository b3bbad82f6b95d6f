"""What a run may take over from the last one, and what it must not."""

import dataclasses
import json
import shutil
import subprocess

import pytest

from convattn.ledger.coq.coqc import Compilers
from convattn.ledger.coq.project import read_project
from convattn.ledger.coq.record import ForeignFiles, Record
from convattn.ledger.coq.run import check_proofs
from convattn.ledger.coq.toolchain import find_coq
from ledger.coq.coq_tree import ONE, needs_coq, places, prove, theorem, write_sources

pytestmark = needs_coq

BASE = "Lemma base : 1 = 1.\nProof. reflexivity. Qed.\n"
TWO = "From Convattn.foundation Require Import base.\n" + theorem("two", proof="exact base. Qed.")


@pytest.fixture
def tree(tmp_path):
    """Two theorems, compiled; one stands on a foundation."""
    write_sources(tmp_path / "coq", foundation__base=BASE, p__one=ONE, p__two=TWO)
    assert check(tmp_path).failures == ()
    return tmp_path


def check(tree, **options):
    return prove(tree / "coq", tree / "out", **options)


def test_what_a_deleted_file_has_left_is_not_found(tree):
    """Also where the file had not compiled at last, so that the record does not know it."""
    write_sources(tree / "coq", foundation__base=BASE.replace("reflexivity", "fail"))
    assert places(check(tree)) == [("foundation/base.v", 2), ("p/two.v", 0)]
    shutil.copy(tree / "out" / "coq" / "p" / "one.vo", tree / "out/coq/foundation/base.vo")
    (tree / "coq" / "foundation" / "base.v").unlink()
    outcome = check(tree)
    assert places(outcome) == [("p/two.v", 1)]
    assert [item.checked for item in outcome.theorems] == [True, False]
    assert list((tree / "out" / "coq").glob("foundation/[!.]*")) == []


@pytest.mark.parametrize("name", ["p/old.vo", "deeper/p/old.vio", "p/.hidden/old.v", "old.vos"])
def test_no_other_source_stays_and_nothing_compiled_of_it(name, tree):
    path = tree / "out" / "coq" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    beside = path.with_name("notes.txt")
    beside.touch()
    assert check(tree).compiled == 0
    assert not path.exists()
    assert beside.exists()


def test_files_of_someone_else_are_never_removed(tree):
    own = write_sources(tree / "else" / "coq", mine="Lemma mine : True.") / "mine.v"
    with pytest.raises(ForeignFiles, match=r"mine\.v was not put there by convattn prove"):
        prove(tree / "coq", tree / "else")
    assert own.read_text() == "Lemma mine : True."


def test_a_run_that_was_ended_vouches_for_nothing_that_it_left(tree, monkeypatch):
    compile_file = Compilers.compile

    def ended(self, file):
        assert compile_file(self, file)[1] == ""
        raise KeyboardInterrupt

    write_sources(tree / "coq", p__one=theorem("one", "2 = 2"))
    with monkeypatch.context() as patch:
        patch.setattr(Compilers, "compile", ended)
        with pytest.raises(KeyboardInterrupt):
            check(tree)
    write_sources(tree / "coq", p__one=ONE)
    assert check(tree).compiled == 1
    assert check(tree).compiled == 0


def test_the_record_is_on_the_disk_before_a_file_is_compiled(tree, monkeypatch):
    compile_file = Compilers.compile
    seen = []

    def noting(self, file):
        recorded = json.loads((tree / "out" / "compiled.json").read_text())
        seen.append((file, sorted(recorded)))
        return compile_file(self, file)

    monkeypatch.setattr(Compilers, "compile", noting)
    write_sources(tree / "coq", p__one=theorem("one", "2 = 2"))
    assert check(tree).compiled == 1
    assert seen == [("p/one.v", ["foundation/base.v", "p/two.v"])]


def test_a_compiled_file_is_taken_over_only_byte_for_byte(tree):
    """Even one that Coq would load: that of the same file with a weaker statement."""
    write_sources(tree / "else", p__one=theorem("one", "True", "exact I. Qed."))
    assert prove(tree / "else", tree / "built").failures == ()
    shutil.copy(tree / "built" / "coq" / "p" / "one.vo", tree / "out" / "coq" / "p" / "one.vo")
    assert check(tree).compiled == 1


def test_what_stands_on_a_file_compiled_anew_fits_to_it(tree):
    (tree / "out" / "coq" / "foundation" / "base.vo").unlink()
    outcome = check(tree)
    assert outcome.failures == ()
    assert outcome.compiled in (1, 2)


@pytest.mark.parametrize(
    "content",
    [
        '{"p/one.v": 3}',
        '{"p/one.v": {"key": 1, "seconds": "x"}}',
        '{"p/one.v": {"key": "", "seconds": []}, "../../x.v": {}}',
        "[]",
        "null",
        "{",
        "[" * 100_000,
    ],
)
def test_a_record_that_makes_no_sense_counts_as_none(content, tree):
    (tree / "out" / "compiled.json").write_text(content)
    assert Record(tree / "out", ["p/one.v"]).find("p/one.v", "") is None
    outcome = check(tree)
    assert (outcome.compiled, outcome.failures) == (3, ())


def test_another_version_of_a_library_compiles_all_anew(tree):
    coq = find_coq([])
    newer = dataclasses.replace(coq, packages={**coq.packages, "coq": "another"})
    project = read_project(tree / "coq")
    assert check_proofs(newer, project, [], tree / "out", 2).compiled == 3
    assert check_proofs(newer, project, [], tree / "out", 2).compiled == 0


def test_compiled_files_that_do_not_fit_together_are_to_be_removed(tree, monkeypatch):
    """As after a library of which the system has no version was compiled anew."""
    library = tree / "libraries" / "Elsewhere"
    monkeypatch.setenv("COQPATH", str(library.parent))
    install(library, "1 = 1")
    write_sources(
        tree / "coq",
        foundation__base="From Elsewhere Require Import a.\n" + BASE,
        p__two="From Elsewhere Require Import a.\n" + TWO,
    )
    assert check(tree).failures == ()
    install(library, "2 = 2")
    write_sources(tree / "coq", p__two="From Elsewhere Require Import a.\n\n" + TWO)
    (failure,) = check(tree).failures
    assert failure.file == "p/two.v"
    assert "inconsistent assumptions" in failure.found
    assert failure.remedy.endswith(f"remove {tree / 'out'} and run again")
    shutil.rmtree(tree / "out")
    assert check(tree).failures == ()


def test_nor_does_the_kernel_take_them(tree, monkeypatch):
    """Where no source has changed, so that nothing was compiled."""
    library = tree / "libraries" / "Elsewhere"
    monkeypatch.setenv("COQPATH", str(library.parent))
    install(library, "1 = 1")
    write_sources(tree / "coq", foundation__base="From Elsewhere Require Import a.\n" + BASE)
    assert check(tree).failures == ()
    install(library, "2 = 2")
    outcome = check(tree)
    assert [item.checked for item in outcome.theorems] == [True, False]
    (failure,) = outcome.failures
    assert failure.file == "p/two.v"
    assert failure.remedy.endswith(f"remove {tree / 'out'} and run again")


def install(library, statement):
    """A library of one lemma, compiled."""
    library.mkdir(parents=True, exist_ok=True)
    (library / "a.v").write_text(f"Lemma a : {statement}. Proof. reflexivity. Qed.\n")
    words = ["coqc", "-q", "-Q", ".", "Elsewhere", "a.v"]
    subprocess.run(words, cwd=library, check=True)
