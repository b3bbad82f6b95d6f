import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from ledger.coq.coq_tree import ONE, claim_file, needs_coq, theorem, write_sources
from ledger.proof_files import write

from convattn.files import lock_directory
from convattn_ledger.coq.build import Coq
from convattn_ledger.coq.run import Outcome
from convattn_ledger.coq.sources import LOCK, digest


@pytest.fixture
def tree(tmp_path):
    """One theorem and the claim that names it."""
    write_sources(tmp_path / "coq", p__one=ONE, p__two=theorem("two"))
    write(tmp_path / "proofs", p__a=claim_file("S.a", "p/one.v"))
    return tmp_path


@pytest.fixture
def prove(convattn_command, tree):
    def command(*words):
        options = ("--coq", tree / "coq", "--proofs", tree / "proofs", "--output", tree / "out")
        return convattn_command("prove", *options, *words)

    return command


@needs_coq
@pytest.mark.slow
def test_prove_prints_a_table_and_writes_the_report(prove, tree):
    without = prove()
    assert without.code == 1
    assert "FAILED  definitions.lock.json: the lock of the definitions is not there" in without.out
    done = prove("--lock")
    assert done.code == 0
    assert (tree / "coq" / "definitions.lock.json").is_file()
    assert prove().code == 0
    rows = [line.split() for line in done.out.splitlines()]
    assert rows[0] == ["claim", "file", "theorem", "assumptions", "seconds"]
    assert rows[1][:4] == ["S.a", "p/one.v", "one", "closed"]
    assert rows[2][:4] == ["-", "p/two.v", "two", "closed"]
    assert "2 of 2 theorems checked by Coq" in done.out
    assert "for 1 claims; 0 failures; 0 files compiled" in done.out
    report = json.loads((tree / "out" / "report.json").read_text())
    assert report["passed"] is True
    assert list(report["theorems"]) == ["p/one.v", "p/two.v"]


@needs_coq
@pytest.mark.slow
def test_a_failure_exits_1_with_place_reason_and_remedy(prove, tree):
    assert prove("--lock").code == 0
    lock = (tree / "coq" / "definitions.lock.json").read_bytes()
    write_sources(tree / "coq", p__two="\nAxiom two : 1 = 1.\n")
    done = prove("--json", tree / "also.json")
    assert done.code == 1
    assert "FAILED  p/two.v:2: 'Axiom': leave it out" in done.out
    assert "FAILED  p/two.v: theorems: none" in done.out
    report = json.loads((tree / "out" / "report.json").read_text())
    assert json.loads((tree / "also.json").read_text()) == report
    assert report["passed"] is False
    assert [failure["line"] for failure in report["failures"]][:2] == [2, 0]
    assert prove("--lock").code == 1
    assert (tree / "coq" / "definitions.lock.json").read_bytes() == lock


@needs_coq
@pytest.mark.slow
def test_files_are_named_from_anywhere_and_write_no_report(prove, tree, monkeypatch):
    assert prove("--lock").code == 0
    (tree / "out" / "report.json").unlink()
    monkeypatch.chdir(tree / "coq" / "p")
    for name in ("p/two.v", "two.v", tree / "coq" / "p" / "two.v"):
        done = prove("--jobs", 1, "--json", "-", name)
        assert done.code == 0
        assert list(json.loads(done.out)["theorems"]) == ["p/two.v"]
        assert "1 of 1 theorems" in done.err
    assert not (tree / "out" / "report.json").exists()


def test_without_coq_it_exits_3_and_says_how_to_install_it(prove, tree, monkeypatch):
    monkeypatch.setenv("PATH", os.path.dirname(sys.executable))
    if shutil.which("coqc"):
        pytest.skip("Coq stands beside Python")
    done = prove()
    assert (done.code, done.out) == (3, "")
    assert "Coq is not installed" in done.err
    assert "apt-get install --no-install-recommends coq libcoq-mathcomp-algebra" in done.err
    assert not (tree / "out").exists()


def test_the_report_is_of_the_sources_that_coq_has_seen(prove, tree, monkeypatch):
    """Also where one was edited meanwhile, and the lock is written."""

    def edited(coq, project, *rest, **options):
        write_sources(tree / "coq", p__one=theorem("edited"))
        return Outcome((), (), 1.0, 0, {"definitions": {}})

    monkeypatch.setattr("convattn_ledger.commands.prove.find_coq", lambda project: Coq("8", {}))
    monkeypatch.setattr("convattn_ledger.commands.prove.check_proofs", edited)
    compiled = (tree / "coq" / "p" / "one.v").read_bytes()
    assert prove("--lock").code == 0
    report = json.loads((tree / "out" / "report.json").read_text())
    lock = (tree / "coq" / LOCK).read_bytes()
    assert (report["sources"]["p/one.v"], report["sources"][LOCK]) == (
        digest(compiled),
        digest(lock),
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--jobs", "0"], "--jobs got 0, but expected at least 1"),
        (["--coq", "/nowhere"], "--coq got /nowhere, which is not a directory"),
        (["--proofs", "/nowhere"], "--proofs got /nowhere, which is not a directory"),
        (["--json", "/nowhere/j.json"], "--json got /nowhere/j.json, but the directory"),
        (["--output", "/dev/null"], "--output got /dev/null, which is not a directory"),
        (["--lock", "p/one.v"], "--lock is for all files, but some are named"),
        (["three.v"], "three.v is no file of theorems such as"),
        (["--table", "/nowhere/x.md"], "--table got /nowhere/x.md, but the directory"),
    ],
)
def test_wrong_use_exits_2_with_one_line(prove, words, message):
    done = prove(*words)
    assert (done.code, done.out) == (2, "")
    (line,) = done.err.splitlines()
    assert line.startswith("convattn prove: ")
    assert message in line


@pytest.mark.parametrize("place", ["", "coq", "coq/deeper", "out"])
def test_sources_are_never_compiled_in_their_place(prove, tree, place):
    if place == "out":  # by a link
        (tree / "out").mkdir()
        (tree / "out" / "coq").symlink_to(tree / "coq")
    done = prove("--output", tree / place)
    assert done.code == 2
    assert "must stand apart" in done.err


def test_a_folder_without_theorems_exits_2(prove, tree):
    shutil.rmtree(tree / "coq" / "p")
    write_sources(tree / "coq", foundation__base="Lemma a : True.")
    done = prove()
    assert done.code == 2
    assert "it has no theorems" in done.err


def test_the_table_is_put_between_its_marks(prove, tree):
    printed = prove("--table", "-")
    assert printed.code == 0
    row = "| [S.a](ledger.md#sa) | [`p/one.v`](../proofs/coq/p/one.v)"
    assert row in printed.out
    document: Path = tree / "proofs.md"
    marks = ("<!-- table: convattn prove --table docs/proofs.md -->", "<!-- end of the table -->")
    document.write_text(f"Before.\n{marks[0]}\nold\n{marks[1]}\nAfter.\n")
    assert prove("--table", document).code == 0
    assert document.read_text() == f"Before.\n{marks[0]}\n\n{printed.out}\n{marks[1]}\nAfter.\n"
    document.write_text("No marks.")
    done = prove("--table", document)
    assert done.code == 2
    assert "must have the lines" in done.err
    assert document.read_text() == "No marks."
    write_sources(tree / "coq", p__one="Lemma one : 1 = 1.")
    assert "theorems: none" in prove("--table", "-").err


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
        ("coq/p/three.v", os.mkfifo, "three.v cannot be read (a pipe or a device); make it a file"),
        ("coq/_CoqProject", os.mkfifo, "_CoqProject cannot be read (a pipe or a device)"),
        ("coq/p/`>x`.v", make_file, "has the part '`>x`', and make and its shell might take it"),
        ("coq/x&>y&/three.v", make_file, "has the part 'x&>y&', and make"),
        ("coq/COQC=echo.v", make_file, "has the part 'COQC=echo', and make"),
        ("coq/p/a\nb.v", make_file, r"has the part 'a\nb', and make"),
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
    with lock_directory(tree / "out"):
        done = prove()
    assert (done.code, done.out) == (2, "")
    assert f"another convattn prove is running in it (process {os.getpid()}" in done.err
    assert (tree / "out" / "report.json").read_bytes() == report
    assert prove().code == 0
