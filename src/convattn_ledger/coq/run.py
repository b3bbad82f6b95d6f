"""One run over the proofs: scan, compile, ask the kernel, compare with the lock; and its report."""

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from convattn_ledger.claim import Level
from convattn_ledger.coq.axioms import ALLOWED, judge, stated
from convattn_ledger.coq.build import Coq, build, not_passed_on
from convattn_ledger.coq.kernel import Kernel
from convattn_ledger.coq.libraries import differences, used
from convattn_ledger.coq.lock import compare, meanings, read_lock
from convattn_ledger.coq.rules import (
    Theorem,
    holds_a_theorem,
    library_lines,
    names,
    scan,
    shadowing,
)
from convattn_ledger.coq.sources import LOCK, Failure, Project, digest
from convattn_ledger.coq.theorem_check import SCHEMA, TheoremCheck
from convattn_ledger.discovery import Proof


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
        lock: What the lock of these theorems would be; empty if Coq was not asked.
        notes: What is not wrong, but not as it was when the lock was made.
    """

    theorems: tuple[Proved, ...]
    failures: tuple[Failure, ...]
    seconds: float
    compiled: int
    lock: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def check_proofs(
    coq: Coq,
    project: Project,
    claims: Sequence[Proof],
    output: Path,
    jobs: int,
    only: Sequence[str] | None = None,
    finished: Callable[[str, float], None] = lambda file, seconds: None,
    locked: bool = True,
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
        locked: Whether statements and definitions must be those of the lock.
    """
    started = time.perf_counter()
    built = build(coq, project, output, jobs, only, finished)
    targets = set(project.files)
    if only is not None:
        targets = set(only).union(*(built.requires[file] for file in only))
    failures = [*project.failures, *built.failures]
    failures += [item for item in shadowing(project, built.requires) if item.file in targets]
    theorems: dict[str, Theorem] = {}
    for file in sorted(targets):
        theorem, wrong = scan(file, project.text(file))
        failures += wrong
        if theorem is not None and (only is None or file in only):
            theorems[file] = theorem
    broken = {failure.file for failure in failures}
    asked = [
        theorem
        for file, theorem in theorems.items()
        if file in built.seconds and not broken & {file, *built.requires[file]}
    ]
    assumptions: dict[str, tuple[str, ...]] = {}
    lock: dict[str, Any] = {}
    notes = [f"{name} is set, and was not passed on to Coq" for name in not_passed_on()]
    covers: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for _, claim, file, words in named_theorems(claims):
        covers[file][claim] = words
    try:
        assumptions, lock, wrong = _ask(
            project, output, built.requires, asked, sorted(built.seconds), covers
        )
        failures += wrong
        if locked:
            failures += compare(project, lock, list(theorems.values()), only is None)
            known = read_lock(project) or {"libraries": lock.get("libraries", {})}
            wrong, versions = differences(lock.get("libraries", {}), known["libraries"])
            failures += wrong
            notes += versions
    except RuntimeError as error:
        failures.append(Failure("query.v", 0, str(error), f"remove {output} and run again"))
    claims_of, wrong = _claims_of(project, theorems, claims, only)
    failures += wrong
    broken = {failure.file for failure in failures}
    proved = [
        Proved(
            theorem,
            tuple(claims_of.get(file, ())),
            tuple(sorted(built.requires[file])),
            assumptions.get(file),
            built.seconds.get(file, 0.0),
            file in assumptions and not broken & {file, LOCK, *built.requires[file]},
        )
        for file, theorem in theorems.items()
    ]
    seconds = time.perf_counter() - started
    return Outcome(tuple(proved), tuple(failures), seconds, built.anew, lock, tuple(notes))


def _ask(
    project: Project,
    output: Path,
    requires: dict[str, frozenset[str]],
    theorems: Sequence[Theorem],
    files: Sequence[str],
    covers: dict[str, dict[str, str]],
) -> tuple[dict[str, tuple[str, ...]], dict[str, Any], list[Failure]]:
    """Axioms and meanings of theorems that compile, and the names that a library has already."""
    loaded = sorted({item.file for item in theorems}.union(*(requires[t.file] for t in theorems)))
    kernel = Kernel(project, output, loaded)
    failures = []
    defined = [item for file in files for item in names(project, file)]
    library = kernel.known(library_lines(project, files), sorted({item.name for item in defined}))
    for item in defined:
        if full := library.get(item.name):
            problem = f"'{item.name}', which the imported libraries have as {full}"
            failures.append(Failure(item.file, item.line, problem, "rename it"))
    stems = {PurePosixPath(file).stem: file for file in files}
    for name, full in kernel.modules(library_lines(project, files), sorted(stems)).items():
        problem = f"the file is a module '{name}', which the imported libraries have as {full}"
        failures.append(Failure(stems[name], 0, problem, "rename it"))
    full_names = [project.qualified(item.file, item.name) for item in theorems]
    closed = [
        name for item, name in zip(theorems, full_names, strict=True) if item.file not in ALLOWED
    ]
    axioms = kernel.assumptions(full_names, closed)
    assumptions = {item.file: axioms_of for item, axioms_of in zip(theorems, axioms, strict=True)}
    for theorem in theorems:
        failures += judge(theorem.file, theorem.line, assumptions[theorem.file])
    libraries, wrong = used(kernel.libraries())
    lock = meanings(project, kernel, theorems, loaded, covers) | {"libraries": libraries}
    return assumptions, lock, [*failures, *wrong]


def named_theorems(claims: Sequence[Proof]) -> list[tuple[Proof, str, str, str]]:
    """Every naming of a theorem: the claim's file and id, the theorem's file, what it covers."""
    return [
        (proof, proof.claim.id, item.check.file, item.covers)
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
                problem = f"the evidence {item.name!r} of level PROVED names no theorem"
                failures.append(Failure(proof.label, 0, problem, 'use proved("paper/name.v")'))
    claims_of: dict[str, list[str]] = {}
    for proof, claim, file, _ in named_theorems(claims):
        if only is not None and file not in only:
            continue
        if file not in project.sources or not holds_a_theorem(file):
            remedy = "name a file of theorems that is there"
            failures.append(Failure(proof.label, 0, f"{claim} names {file}, no such file", remedy))
        elif file in theorems:
            claims_of.setdefault(file, []).append(claim)
            if claim not in theorems[file].claims:
                ids = ", ".join(theorems[file].claims) or "no claim"
                problem = f"{claim} names {file}, whose first comment begins with {ids}"
                remedy = "name a theorem of this claim, or begin that comment with its id"
                failures.append(Failure(proof.label, 0, problem, remedy))
    for theorem in theorems.values() if claims else ():
        for claim in sorted(set(theorem.claims) - set(claims_of.get(theorem.file, ()))):
            problem = f"the first comment begins with {claim}, which does not name this theorem"
            remedy = "name it in that claim's evidence, or begin the comment otherwise"
            failures.append(Failure(theorem.file, 1, problem, remedy))
    return claims_of, failures


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
        "notes": list(outcome.notes),
    }
