"""A library that is not the installed one is not read, or it is refused."""

import json
import subprocess

import pytest

from convattn_ledger.coq import build, kernel, libraries
from convattn_ledger.coq.lock import written
from convattn_ledger.coq.sources import LOCK
from ledger.coq.coq_tree import needs_coq, prove, theorem, write_sources

pytestmark = [needs_coq, pytest.mark.slow]

CHEAT = "From mathcomp Require Import all_algebra.\n" + theorem("one", "1 = 2", "exact cheat. Qed.")


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """A library mathcomp.algebra.all_algebra that proves too much, compiled."""
    folder = tmp_path_factory.mktemp("planted")
    library = folder / "coq" / "mathcomp" / "algebra"
    library.mkdir(parents=True)
    text = "Class Cheat := it : 1 = 2.\nAxiom cheat : 1 = 2.\n"
    (library / "all_algebra.v").write_text(text)
    words = ["coqc", "-q", "-Q", ".", "mathcomp", "algebra/all_algebra.v"]
    subprocess.run(words, cwd=library.parent, check=True)
    return folder


@pytest.mark.parametrize(
    ("variable", "place"),
    [("COQPATH", "coq"), ("XDG_DATA_HOME", ""), ("XDG_DATA_DIRS", ""), ("HOME", "home")],
)
def test_a_library_beside_the_installed_one_is_not_read(
    planted, tmp_path, monkeypatch, variable, place
):
    if variable == "HOME":
        (planted / "home" / ".local").mkdir(parents=True, exist_ok=True)
        (planted / "home" / ".local" / "share").symlink_to(planted)
    sources = write_sources(tmp_path / "coq", p__one=CHEAT)
    monkeypatch.setenv(variable, str(planted / place))
    outcome = prove(sources, tmp_path / "out")
    assert "The reference cheat was not found" in outcome.failures[0].found
    assert not outcome.theorems[0].checked
    assert [note.partition(" ")[0] for note in outcome.notes] == (
        ["COQPATH"] if variable == "COQPATH" else []
    )


def test_a_library_of_no_package_is_refused(planted, tmp_path, monkeypatch):
    environment = {"COQPATH": str(planted / "coq"), **build.clean_environment()}
    for module in (build, kernel):
        monkeypatch.setattr(module, "clean_environment", lambda: environment)
    sources = write_sources(
        tmp_path / "coq", p__one="From mathcomp Require all_algebra.\n" + theorem("one")
    )
    outcome = prove(sources, tmp_path / "out")
    (failure,) = outcome.failures
    file = planted / "coq" / "mathcomp" / "algebra" / "all_algebra.vo"
    assert failure.found == f"{file} was loaded, which belongs to no installed package"
    assert not outcome.theorems[0].checked


def test_a_program_of_no_package_is_refused(tmp_path, monkeypatch):
    program = tmp_path / "bin" / "coqc"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\nexec /usr/bin/coqc "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    sources = write_sources(tmp_path / "coq", p__one=theorem("one"))
    (failure,) = prove(sources, tmp_path / "out").failures
    assert failure.found == f"{program} was loaded, which belongs to no installed package"


def test_files_are_those_of_the_lock_and_other_versions_are_named(tmp_path):
    sources = write_sources(tmp_path / "coq", p__one=theorem("one"))
    outcome = prove(sources, tmp_path / "out")
    assert outcome.failures == ()
    lock = json.loads(written(outcome.lock))
    (core,) = [name for name in lock["libraries"] if "stdlib" in name]
    entry = lock["libraries"][core]
    (file, *_) = [name for name in entry["files"] if name.endswith("Init/Logic.vo")]

    def check():
        (sources / LOCK).write_bytes(written(lock))
        return prove(sources, tmp_path / "out", locked=True)

    assert (check().failures, check().notes) == ((), ())
    entry["files"][file] = "0" * 64
    outcome = check()
    assert [failure.file for failure in outcome.failures] == [LOCK]
    assert outcome.failures[0].found == f"{file} of {core} {entry['version']}, not as in the lock"
    assert not outcome.theorems[0].checked
    here, entry["version"] = entry["version"], "9.0 riscv64"
    outcome = check()
    assert outcome.failures == ()
    assert outcome.notes == (f"{core} is {here}, the lock was made with 9.0 riscv64",)
    del lock["libraries"][core]
    assert "was loaded, not in the lock" in check().failures[0].found


def test_plugins_and_programs_are_among_the_files(tmp_path):
    sources = write_sources(tmp_path / "coq", p__one=theorem("one"))
    entries = prove(sources, tmp_path / "out").lock["libraries"]
    files = {file for entry in entries.values() for file in entry["files"]}
    assert {"/usr/bin/coqc", "/usr/bin/coqdep", "/usr/bin/coq_makefile"} <= files
    assert any(file.endswith("plugins/ltac/ltac_plugin.cmxs") for file in files)
    assert libraries.differences(entries, entries) == ([], [])
