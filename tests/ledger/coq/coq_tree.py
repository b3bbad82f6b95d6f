"""Tiny trees of Coq sources and claims, and what a test needs of Coq."""

import shutil
from pathlib import Path

import pytest

from convattn_ledger.coq.build import NoCoq, find_coq
from convattn_ledger.coq.rules import closure
from convattn_ledger.coq.run import Outcome, check_proofs
from convattn_ledger.coq.sources import PROJECT, read_project
from convattn_ledger.discovery import discover
from convattn_ledger.locations import coq_directory
from ledger.proof_files import claim

needs_coq = pytest.mark.skipif(shutil.which("coqc") is None, reason="Coq is not installed")

ONE = "(** S.a: one. *) Theorem one : 1 = 1.\nProof. reflexivity. Qed.\n"


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


def copy_proofs(directory: Path, *files: str) -> None:
    """Copy these files of the project's proofs, all that they require, and ``_CoqProject``."""
    project = read_project(coq_directory())
    requires = closure(project)
    for file in {PROJECT, *files}.union(*(requires[file] for file in files)):
        (directory / file).parent.mkdir(parents=True, exist_ok=True)
        (directory / file).write_bytes(project.sources[file])


def theorem(name: str, statement: str = "1 = 1", proof: str = "reflexivity. Qed.") -> str:
    """A source with one theorem."""
    return f"Theorem {name} : {statement}.\nProof. {proof}\n"


def write_sources(directory: Path, **files: str) -> Path:
    """Write Coq sources; ``paper__name`` becomes ``paper/name.v``."""
    for name, text in files.items():
        path = directory.joinpath(*name.split("__")).with_suffix(".v")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return directory


def claim_file(id: str, file: str, covers: str = "") -> str:
    """The source of a claim that names a theorem, and has tested evidence besides."""
    tested = "Evidence('t', Level.TESTED, lambda run: '1 = 1')"
    top = "from convattn_ledger.evidence.proved import proved"
    return claim(id, f"proved({file!r}, covers={covers!r})", tested, top=top)


def prove(sources: Path, output: Path, proofs: Path | None = None, **options) -> Outcome:
    """Check a tree."""
    project = read_project(sources)
    try:
        coq = find_coq(project)
    except NoCoq as error:
        pytest.skip(str(error))
    claims = discover(proofs) if proofs else []
    return check_proofs(coq, project, claims, output, 2, **{"locked": False, **options})


def places(outcome: Outcome) -> list[tuple[str, int]]:
    """Where the failures are."""
    return [(failure.file, failure.line) for failure in outcome.failures]
