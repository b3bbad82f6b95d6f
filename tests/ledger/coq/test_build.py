"""Finding Coq; what a build may take over from the last one, and what it must not."""

import dataclasses
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from convattn_ledger.coq import build, kernel
from convattn_ledger.coq.build import INSTALL, PACKAGES, ForeignFiles, NoCoq, find_coq
from convattn_ledger.coq.run import check_proofs
from convattn_ledger.coq.sources import Project, read_project
from ledger.coq.coq_tree import ONE, needs_coq, places, prove, theorem, write_sources

ROOT = Path(__file__).parents[3]
BASE = "Lemma base : 1 = 1.\nProof. reflexivity. Qed.\n"
TWO = "From Convattn.foundation Require Import base.\n" + theorem("two", proof="exact base. Qed.")
REQUIRING = {
    "libcoq-mathcomp-algebra": "From mathcomp Require Import all_ssreflect all_algebra.",
    "libcoq-mathcomp-algebra-tactics": "From mathcomp Require Import ring.",
    "libcoq-mathcomp-zify": "From mathcomp Require Import lra zify.",
    "libcoq-interval": "From Coq Require Import Reals.\nFrom Interval Require Import Tactic.",
}
slow = pytest.mark.slow


def sources(*texts):
    return Project({f"p/{number}.v": text.encode() for number, text in enumerate(texts)})


def fake_coq(directory, *packages):
    """A Coq that says its version and place, with these libraries."""
    for name in ("coqc", "coqdep", "coq_makefile", "make"):
        path = directory / name
        path.write_text(
            f'#!/bin/sh\n[ "$1" = -where ] && echo {directory} || '
            "echo The Coq Proof Assistant, version 8.16.1\n"
        )
        path.chmod(0o755)
    for package in packages:
        library = directory / "user-contrib" / build._LIBRARIES[package][1]
        library.parent.mkdir(parents=True, exist_ok=True)
        library.touch()


def test_without_coq_it_says_how_to_install_it(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoCoq, match="coqc is not on PATH") as caught:
        find_coq(sources())
    assert INSTALL in str(caught.value)


def test_a_coq_that_does_not_run_is_none(monkeypatch, tmp_path):
    fake_coq(tmp_path)
    (tmp_path / "coqc").write_text("#!/bin/sh\nexit 1\n")
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    with pytest.raises(NoCoq, match="does not say its version"):
        find_coq(sources())


@pytest.mark.parametrize("package", REQUIRING)
def test_a_missing_library_is_named_by_its_package(package, monkeypatch, tmp_path):
    others = [name for name in REQUIRING if name != package]
    fake_coq(tmp_path, *others)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    assert find_coq(sources("Lemma a : True.")).version == "8.16.1"
    with pytest.raises(NoCoq, match=f"the proofs require {package}, not found in"):
        find_coq(sources(REQUIRING[package]))
    fake_coq(tmp_path, package)
    assert find_coq(sources(*REQUIRING.values())).version == "8.16.1"


def test_the_same_packages_are_named_wherever_coq_is_installed():
    for name in (".ci/run", "docs/proofs.md"):
        assert " ".join(PACKAGES) in (ROOT / name).read_text("utf-8")


@pytest.fixture
def tree(tmp_path):
    """Two theorems, compiled; one stands on a foundation."""
    write_sources(tmp_path / "coq", foundation__base=BASE, p__one=ONE, p__two=TWO)
    assert check(tmp_path).failures == ()
    return tmp_path


def check(tree, **options):
    return prove(tree / "coq", tree / "out", **options)


@needs_coq
@slow
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


@needs_coq
@slow
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


def test_a_run_killed_while_it_copies_does_not_stand_in_the_way(tmp_path, monkeypatch):
    project, requires = sources(ONE, theorem("two")), {f"p/{n}.v": frozenset[str]() for n in (0, 1)}

    def killed(path, content):
        raise KeyboardInterrupt

    with monkeypatch.context() as planted:
        planted.setattr(Path, "write_bytes", killed)
        with pytest.raises(KeyboardInterrupt):
            build._prepare(project, tmp_path, "key", requires)
    (tmp_path / "coq" / "p" / "0.v").write_text("Theor")  # half of it
    assert build._prepare(project, tmp_path, "key", requires) == {}
    for name, content in project.sources.items():
        assert (tmp_path / "coq" / name).read_bytes() == content


@pytest.mark.parametrize("reason", ["No space left on device", "Read-only file system"])
def test_where_coq_could_not_write_nothing_is_said_of_the_proofs(tmp_path, reason):
    said = 'File "./p/0.v", line 1, characters 0-5:\nError: cannot write p/0.vo: {}.\n'
    build.refuse_unwritten(said.format("no such theorem"), tmp_path)
    with pytest.raises(OSError, match=f"{reason}: Coq could not write; make room") as caught:
        build.refuse_unwritten(said.format(reason), tmp_path)
    assert caught.value.filename == str(tmp_path)


@needs_coq
@slow
@pytest.mark.parametrize("at", ["compile", "ask"])
def test_a_full_disk_is_no_failure_of_a_proof(tree, monkeypatch, at):
    place, condition = tree / "bin", '*" query.v"' if at == "ask" else '*"/one.v"'
    shutil.rmtree(tree / "out")
    place.mkdir()
    (place / "coqc").write_text(
        f'#!/bin/sh\ncase "$*" in {condition})\n'
        "  echo Error: No space left on device >&2; exit 1 ;;\nesac\n"
        f'exec {shutil.which("coqc")} "$@"\n'
    )
    (place / "coqc").chmod(0o755)
    monkeypatch.setenv("COQBIN", f"{place}/")
    monkeypatch.setenv("PATH", str(place), prepend=os.pathsep)
    with pytest.raises(OSError, match="No space left on device: Coq could not write"):
        check(tree)


@needs_coq
@slow
@pytest.mark.parametrize("name", ["GNUMAKEFLAGS", "Makefile.coq.local", "Makefile.coq.local-late"])
def test_nobody_else_tells_make_what_to_run(name, tmp_path, monkeypatch):
    write_sources(tmp_path / "coq", p__one=ONE)
    if name.startswith("Makefile"):
        (tmp_path / "out/coq").mkdir(parents=True)
        (tmp_path / "out/coq" / name).write_text("COQC := false\n")
    else:
        monkeypatch.setenv(name, "COQC=false")
    assert check(tmp_path).failures == ()


@needs_coq
@slow
def test_files_of_someone_else_are_never_removed(tree):
    own = write_sources(tree / "else" / "coq", mine="Lemma mine : True.") / "mine.v"
    with pytest.raises(ForeignFiles, match=r"mine\.v was not put there by convattn prove"):
        prove(tree / "coq", tree / "else")
    assert own.read_text() == "Lemma mine : True."


@needs_coq
@slow
def test_a_compiled_file_is_taken_over_only_byte_for_byte(tree):
    """Even one that Coq would load: that of the same file with a weaker statement."""
    write_sources(tree / "else", p__one=theorem("one", "True", "exact I. Qed."))
    assert prove(tree / "else", tree / "built").failures == ()
    shutil.copy(tree / "built" / "coq" / "p" / "one.vo", tree / "out" / "coq" / "p" / "one.vo")
    assert check(tree).compiled == 1


@needs_coq
@slow
def test_what_stands_on_a_file_compiled_anew_fits_to_it(tree):
    (tree / "out" / "coq" / "foundation" / "base.vo").unlink()
    outcome = check(tree)
    assert outcome.failures == ()
    assert outcome.compiled in (1, 2)


@needs_coq
@slow
@pytest.mark.parametrize(
    "content", ['{"p/one.v": 3}', '{"key": 1, "files": {"p/one.v": []}}', "[]"]
)
def test_a_record_that_makes_no_sense_counts_as_none(content, tree):
    (tree / "out" / "compiled.json").write_text(content)
    outcome = check(tree)
    assert (outcome.compiled, outcome.failures) == (3, ())


@needs_coq
@slow
def test_another_version_of_a_library_compiles_all_anew(tree):
    coq = find_coq(sources())
    newer = dataclasses.replace(coq, packages={**coq.packages, "coq": "another"})
    project = read_project(tree / "coq")
    assert check_proofs(newer, project, [], tree / "out", 2).compiled == 3
    assert check_proofs(newer, project, [], tree / "out", 2).compiled == 0


@needs_coq
@slow
def test_compiled_files_that_do_not_fit_together_are_to_be_removed(tree, monkeypatch):
    """As after a library of which the system has no version was compiled anew."""
    library = installed(tree, monkeypatch)
    write_sources(
        tree / "coq",
        foundation__base="From Elsewhere Require Import a.\n" + BASE,
        p__two="From Elsewhere Require Import a.\n" + TWO,
    )
    assert all("no installed package" in item.found for item in check(tree).failures)
    install(library, "2 = 2")
    write_sources(tree / "coq", p__two="From Elsewhere Require Import a.\n\n" + TWO)
    (failure,) = check(tree).failures
    assert failure.file == "p/two.v"
    assert "inconsistent assumptions" in failure.found
    assert failure.remedy.endswith(f"remove {tree / 'out'} and run again")
    shutil.rmtree(tree / "out")
    assert all("no installed package" in item.found for item in check(tree).failures)


@needs_coq
@slow
def test_nor_does_the_kernel_take_them(tree, monkeypatch):
    """Where no source has changed, so that nothing was compiled."""
    library = installed(tree, monkeypatch)
    write_sources(tree / "coq", foundation__base="From Elsewhere Require Import a.\n" + BASE)
    assert all("no installed package" in item.found for item in check(tree).failures)
    install(library, "2 = 2")
    outcome = check(tree)
    assert not any(item.checked for item in outcome.theorems)
    (failure,) = outcome.failures
    assert failure.remedy.endswith(f"remove {tree / 'out'} and run again")


def installed(tree, monkeypatch):
    """The folder of a library that Coq finds, though its environment is its own."""
    library = tree / "libraries" / "Elsewhere"
    environment = {"COQPATH": str(library.parent), **build.clean_environment()}
    for module in (build, kernel):
        monkeypatch.setattr(module, "clean_environment", lambda: environment)
    install(library, "1 = 1")
    return library


def install(library, statement):
    """A library of one lemma, compiled."""
    library.mkdir(parents=True, exist_ok=True)
    (library / "a.v").write_text(f"Lemma a : {statement}. Proof. reflexivity. Qed.\n")
    words = ["coqc", "-q", "-Q", ".", "Elsewhere", "a.v"]
    subprocess.run(words, cwd=library, check=True)
