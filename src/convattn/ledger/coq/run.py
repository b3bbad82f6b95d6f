"""One run over the proofs: scan, compile, ask the kernel, and compare what the claims name."""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from convattn.ledger.claim import Level
from convattn.ledger.coq.assumptions import print_assumptions
from convattn.ledger.coq.axioms import judge, stated
from convattn.ledger.coq.compilation import compile_project
from convattn.ledger.coq.failure import Failure
from convattn.ledger.coq.names import shadowing
from convattn.ledger.coq.project import Project, digest
from convattn.ledger.coq.report import SCHEMA
from convattn.ledger.coq.source import Theorem, holds_a_theorem, scan
from convattn.ledger.coq.theorem_check import TheoremCheck
from convattn.ledger.coq.toolchain import Coq
from convattn.ledger.discovery import Proof


@dataclass(frozen=True)
class Proved:
    """What became of one theorem.

    Attributes:
        theorem: The theorem.
        claims: The ids of the claims that name it.
        requires: All files that its file requires.
        assumptions: The axioms that it stands on; ``None`` if Coq was not asked.
        seconds: How long its file took to compile, when that was done.
        checked: Whether nothing is wrong with it.
    """

    theorem: Theorem
    claims: tuple[str, ...]
    requires: tuple[str, ...]
    assumptions: tuple[str, ...] | None
    seconds: float
    checked: bool


@dataclass(frozen=True)
class Outcome:
    """What a run found.

    Attributes:
        theorems: Every theorem, in the order of the files.
        failures: Everything that is wrong.
        seconds: How long it took.
        compiled: How many files were compiled, and not taken over from the last run.
    """

    theorems: tuple[Proved, ...]
    failures: tuple[Failure, ...]
    seconds: float
    compiled: int


def check_proofs(
    coq: Coq,
    project: Project,
    claims: Sequence[Proof],
    output: Path,
    jobs: int,
    only: Sequence[str] | None = None,
    finished: Callable[[str, float], None] = lambda file, seconds: None,
) -> Outcome:
    """Check the proofs.

    Args:
        coq: The compiler.
        project: The sources.
        claims: The claims, which may name theorems.
        output: The folder in which files are compiled.
        jobs: How many at a time.
        only: The files of theorems wanted; all if ``None``.
        finished: Is told each file that was compiled, and the seconds.
    """
    started = time.perf_counter()
    failures = list(project.failures)
    compiled = compile_project(coq, project, output, jobs, only, finished)
    failures += compiled.failures
    wanted = set(project.files)
    if only is not None:
        wanted = set(only).union(*(compiled.requires[file] for file in only))
    failures += [failure for failure in shadowing(project) if failure.file in wanted]
    theorems: dict[str, Theorem] = {}
    for file in sorted(wanted):
        theorem, wrong = scan(file, project.text(file))
        failures += wrong
        if theorem is not None and (only is None or file in only):
            theorems[file] = theorem
    asked = [theorem for file, theorem in theorems.items() if file in compiled.seconds]
    assumptions, unknown = print_assumptions(coq, project, output, asked)
    failures += unknown
    for file, names in assumptions.items():
        failures += judge(file, theorems[file].line, names)
    naming, wrong = _claims_of(project, theorems, claims, only)
    failures += wrong
    broken = {failure.file for failure in failures}
    proved = [
        Proved(
            theorem,
            tuple(naming.get(file, ())),
            tuple(sorted(compiled.requires[file])),
            assumptions.get(file),
            compiled.seconds.get(file, 0.0),
            file in assumptions and not broken & {file, *compiled.requires[file]},
        )
        for file, theorem in theorems.items()
    ]
    seconds = time.perf_counter() - started
    return Outcome(tuple(proved), tuple(failures), seconds, compiled.anew)


def named_theorems(claims: Sequence[Proof]) -> list[tuple[Proof, str, str]]:
    """Every naming of a theorem: the claim's file, the claim's id and the theorem's file."""
    return [
        (proof, proof.claim.id, item.check.file)
        for proof in claims
        if proof.claim is not None
        for item in proof.claim.evidence
        if isinstance(item.check, TheoremCheck)
    ]


def _claims_of(
    project: Project,
    theorems: dict[str, Theorem],
    claims: Sequence[Proof],
    only: Sequence[str] | None,
) -> tuple[dict[str, list[str]], list[Failure]]:
    """Which claims name each theorem, and what is wrong with the naming."""
    failures = [
        Failure(proof.label, 0, proof.problem.partition("\n")[0], "convattn verify shows more")
        for proof in claims
        if proof.problem
    ]
    for proof in claims:
        for item in proof.claim.evidence if proof.claim else ():
            if item.level is Level.PROVED and not isinstance(item.check, TheoremCheck):
                found = f"the evidence {item.name!r} of level PROVED names no theorem"
                failures.append(Failure(proof.label, 0, found, 'use proved("paper/name.v")'))
    naming: dict[str, list[str]] = {}
    for proof, claim, file in named_theorems(claims):
        if only is not None and file not in only:
            continue
        if file not in project.sources or not holds_a_theorem(file):
            remedy = "name a file of theorems that is there"
            failures.append(Failure(proof.label, 0, f"{claim} names {file}, no such file", remedy))
        elif file in theorems:
            naming.setdefault(file, []).append(claim)
    return naming, failures


def as_report(coq: Coq, project: Project, outcome: Outcome) -> dict[str, Any]:
    """A run as a JSON document."""
    return {
        "schema": SCHEMA,
        "passed": not outcome.failures,
        "versions": {"coq": coq.version, "packages": coq.packages},
        "seconds": round(outcome.seconds, 2),
        "sources": {name: digest(content) for name, content in sorted(project.sources.items())},
        "theorems": {
            proved.theorem.file: {
                "theorem": proved.theorem.name,
                "statement": proved.theorem.statement,
                "claims": list(proved.claims),
                "requires": list(proved.requires),
                "assumptions": None if proved.assumptions is None else list(proved.assumptions),
                "stands_on": stated(proved.theorem.file),
                "seconds": proved.seconds,
                "checked": proved.checked,
            }
            for proved in outcome.theorems
        },
        "failures": [asdict(failure) for failure in outcome.failures],
    }
