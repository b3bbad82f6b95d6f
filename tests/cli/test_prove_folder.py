"""What stands in the way of a run is named, with the option, before anything is compiled."""

import os

import pytest
from ledger.coq.coq_tree import ONE, naming, needs_coq, write_sources
from ledger.proof_files import write

from convattn.files import hold_folder


@pytest.fixture
def tree(tmp_path):
    """One theorem and the claim that names it."""
    write_sources(tmp_path / "coq", p__one=ONE)
    write(tmp_path / "proofs", p__a=naming("S.a", "p/one.v"))
    return tmp_path


@pytest.fixture
def prove(convattn_command, tree):
    def command(*words):
        options = ("--coq", tree / "coq", "--proofs", tree / "proofs", "--output", tree / "out")
        return convattn_command("prove", *options, *words)

    return command


def make_folder(path):
    path.mkdir(parents=True)


def make_file(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()


def make_dangling(path):
    path.symlink_to(path.with_name("nowhere"))


@needs_coq
@pytest.mark.parametrize(
    ("place", "make", "message"),
    [
        ("coq/p/three.v", make_folder, "three.v cannot be read (Is a directory); make it a file"),
        ("coq/p/three.v", make_dangling, "three.v cannot be read (No such file or directory)"),
        ("coq/_CoqProject", make_folder, "_CoqProject cannot be read (Is a directory)"),
        ("coq/_CoqProject", make_dangling, "_CoqProject cannot be read (No such file"),
        ("out/report.json", make_folder, "report.json, which is a directory, but expected a file"),
        ("out/compiled.json", make_folder, "compiled.json, which is a directory, but expected"),
        ("out/lock", make_folder, "lock, which is a directory, but expected a file"),
        ("out/coq", make_file, "coq is not a directory; remove it"),
        ("out/assumptions", make_file, "assumptions is not a directory; remove it"),
        ("out/coq/other.v", make_file, "other.v was not put there by convattn prove"),
        ("out", make_dangling, "out, which cannot be made: File exists; name another folder"),
        ("out", lambda path: path.symlink_to("out"), "out, which cannot be"),
    ],
)
def test_what_stands_in_the_way_is_named_before_anything_is_compiled(
    prove, tree, place, make, message
):
    make(tree / place)
    done = prove()
    assert (done.code, done.out) == (2, "")
    (line,) = done.err.splitlines()
    assert line.startswith(f"convattn prove: --{'coq' if place < 'out' else 'output'} got {tree}")
    assert message in line
    assert not list(tree.glob("out/coq/**/*.vo"))


@needs_coq
def test_a_folder_that_cannot_be_made_is_refused(prove):
    done = prove("--output", "/proc/convattn")
    assert (done.code, done.out) == (2, "")
    assert "--output got /proc/convattn, which cannot be made" in done.err


@needs_coq
@pytest.mark.slow
def test_an_unclosed_quotation_mark_in_the_project_is_a_failure(prove, tree):
    (tree / "coq" / "_CoqProject").write_text('-Q . Convattn\n-arg "-w\n')
    done = prove()
    assert done.code == 1
    assert "FAILED  _CoqProject: other options: expected '-Q . NAME'" in done.out


@needs_coq
@pytest.mark.slow
def test_another_run_in_the_folder_is_waited_for_by_the_user(prove, tree):
    assert prove("--lock").code == 0
    report = (tree / "out" / "report.json").read_bytes()
    with hold_folder(tree / "out"):
        done = prove()
    assert (done.code, done.out) == (2, "")
    assert f"another convattn prove is running in it (process {os.getpid()}" in done.err
    assert (tree / "out" / "report.json").read_bytes() == report
    assert prove().code == 0


def test_sources_are_never_compiled_in_their_place_by_a_link(prove, tree):
    (tree / "out").mkdir()
    (tree / "out" / "coq").symlink_to(tree / "coq")
    done = prove()
    assert done.code == 2
    assert "must stand apart" in done.err
