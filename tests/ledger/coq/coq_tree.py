"""Tiny trees of Coq sources and claims, and what a test needs of Coq."""

import shutil
from pathlib import Path

import pytest

from convattn.ledger.coq.project import read_project
from convattn.ledger.coq.run import Outcome, check_proofs
from convattn.ledger.coq.toolchain import NoCoq, find_coq
from convattn.ledger.discovery import discover
from ledger.proof_files import claim

needs_coq = pytest.mark.skipif(shutil.which("coqc") is None, reason="Coq is not installed")

ONE = "Theorem one : 1 = 1.\nProof. reflexivity. Qed.\n"


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


def naming(id: str, file: str) -> str:
    """The source of a claim that names a theorem, and has tested evidence besides."""
    tested = "Evidence('t', Level.TESTED, lambda run: '1 = 1')"
    top = "from convattn.ledger.evidence.proved import proved"
    return claim(id, f"proved({file!r})", tested, top=top)


def prove(sources: Path, output: Path, proofs: Path | None = None, **options) -> Outcome:
    """Check a tree."""
    project = read_project(sources)
    try:
        coq = find_coq(project.text(file) for file in project.files)
    except NoCoq as error:
        pytest.skip(str(error))
    claims = discover(proofs) if proofs else []
    return check_proofs(coq, project, claims, output, 2, **options)


def places(outcome: Outcome) -> list[tuple[str, int]]:
    """Where the failures are."""
    return [(failure.file, failure.line) for failure in outcome.failures]
