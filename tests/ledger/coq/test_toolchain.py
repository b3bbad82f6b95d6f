import shutil
from pathlib import Path

import pytest

from convattn.ledger.coq import toolchain
from convattn.ledger.coq.toolchain import INSTALL, PACKAGES, NoCoq, find_coq

ROOT = Path(__file__).parents[3]
REQUIRING = {
    "libcoq-mathcomp-algebra": "From mathcomp Require Import all_ssreflect all_algebra.",
    "libcoq-mathcomp-algebra-tactics": "From mathcomp Require Import ring.",
    "libcoq-mathcomp-zify": "From mathcomp Require Import lra zify.",
    "libcoq-interval": "From Coq Require Import Reals.\nFrom Interval Require Import Tactic.",
}


def fake_coq(directory, *packages):
    """A Coq that says its version and place, with these libraries."""
    for name in ("coqc", "coqdep"):
        path = directory / name
        path.write_text(
            f'#!/bin/sh\n[ "$1" = -where ] && echo {directory} || '
            "echo The Coq Proof Assistant, version 8.16.1\n"
        )
        path.chmod(0o755)
    for package in packages:
        library = directory / "user-contrib" / toolchain._LIBRARIES[package]
        library.parent.mkdir(parents=True, exist_ok=True)
        library.touch()


def test_without_coq_it_says_how_to_install_it(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoCoq, match="coqc is not on PATH") as caught:
        find_coq([])
    assert INSTALL in str(caught.value)


def test_a_coq_that_does_not_run_is_none(monkeypatch, tmp_path):
    fake_coq(tmp_path)
    (tmp_path / "coqc").write_text("#!/bin/sh\nexit 1\n")
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    with pytest.raises(NoCoq, match="does not say its version"):
        find_coq([])


@pytest.mark.parametrize("package", REQUIRING)
def test_a_missing_library_is_named_by_its_package(package, monkeypatch, tmp_path):
    others = [name for name in REQUIRING if name != package]
    fake_coq(tmp_path, *others)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    monkeypatch.delenv("COQPATH", raising=False)
    assert find_coq(["Lemma a : True."]).version == "8.16.1"
    with pytest.raises(NoCoq, match=f"the proofs require {package};"):
        find_coq([f"{REQUIRING[package]} (* comment *)"])
    assert find_coq([f"(* {REQUIRING[package]} *)"])
    fake_coq(tmp_path, package)
    assert find_coq(REQUIRING.values()).coqc == str(tmp_path / "coqc")


def test_the_same_packages_are_named_wherever_coq_is_installed():
    for name in (".ci/run", "docs/proofs.md"):
        assert " ".join(PACKAGES) in (ROOT / name).read_text("utf-8")


@pytest.mark.skipif(shutil.which("dpkg-query") is None, reason="no dpkg-query")
def test_versions_of_packages_are_those_that_the_system_knows():
    assert set(toolchain._package_versions()) <= set(PACKAGES)
