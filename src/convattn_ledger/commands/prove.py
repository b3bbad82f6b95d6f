"""``convattn prove``: compile the machine-checked proofs, and check that the claims name them."""

import json
import os.path
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import Positional

from convattn.cli.output import console, require_outputs, require_writable, write_json
from convattn.cli.running import (
    FAILED,
    SUCCESS,
    Proofs,
    UsageError,
    option,
    termination_raises,
)
from convattn.files import DirectoryLockedError, lock_directory, write_file
from convattn_ledger.commands.verify import find_proofs
from convattn_ledger.coq.build import ForeignFiles, NoCoq, find_coq
from convattn_ledger.coq.document import render, with_table
from convattn_ledger.coq.lock import written
from convattn_ledger.coq.rules import holds_a_theorem
from convattn_ledger.coq.run import Outcome, as_report, check_proofs
from convattn_ledger.coq.sources import LOCK, Project, UnreadableSource, read_project
from convattn_ledger.environment import cores
from convattn_ledger.locations import checkout, coq_directory, proofs_directory

NO_COQ = 3
STANDARD_OUTPUT = Path("-")


@dataclass(frozen=True)
class Prove:
    """Check the machine-checked proofs with Coq, and that the claims name them.

    Exits 0 if all is proved, 1 if not, 2 on wrong use, 3 without Coq or one of its libraries.

    Attributes:
        files: Files of theorems such as sharpened/finite.v; default: all. Only a run over all
            writes report.json.
        coq: Sources <paper>/<name>.v; default: proofs/coq of the checkout or wheel.
        output: Where to compile, and where report.json is written; default: build/prove of the
            checkout, where convattn verify looks for it.
        jobs: Files at a time; default: one for each core.
        json: Write the report here too; - for standard output.
        table: Compile nothing; bring the tables in this document up to date (- prints them).
        lock: Write definitions.lock.json anew, if all else is right: then read its diff.
    """

    files: Annotated[Positional[tuple[Path, ...]], option("FILES")] = ()
    coq: Annotated[Path | None, option("DIR")] = None
    output: Annotated[Path | None, option("DIR")] = None
    jobs: Annotated[int | None, option("N")] = None
    json: Annotated[Path | None, option("FILE")] = None
    table: Annotated[Path | None, option("FILE")] = None
    proofs: Proofs = None
    lock: bool = False

    def __call__(self) -> int:
        """Check the proofs, print a table of them and write ``report.json``.

        Returns:
            0 if everything is proved, 1 if not, 3 if Coq or one of its libraries is missing.
        """
        project = _read(self.coq)
        if self.table is not None:
            return _write_table(self.table, project, self.proofs)
        target = _output_folder(self.output, self.coq)
        if self.jobs is not None and self.jobs < 1:
            raise UsageError(f"--jobs got {self.jobs}, but expected at least 1")
        if self.lock and self.files:
            raise UsageError("--lock is for all files, but some are named")
        to_stdout = self.json == STANDARD_OUTPUT
        if not to_stdout:
            read = {
                "--coq": (self.coq or coq_directory()).rglob("*"),
                "--proofs": (self.proofs or proofs_directory()).rglob("*"),
            }
            read["--output"] = (p for p in target.rglob("*") if p.name != "report.json")
            require_outputs({"--json": self.json}, read)
        only = [_named(file, project, self.coq) for file in self.files] or None
        claims = find_proofs(self.proofs)
        try:
            coq = find_coq(project)
        except NoCoq as error:
            print(f"convattn prove: {error}", file=sys.stderr)
            return NO_COQ

        def finished(file: str, seconds: float) -> None:
            print(f"  compiled {file}  {seconds:.1f} s", file=sys.stderr, flush=True)

        jobs = self.jobs or cores()
        with termination_raises(), _lock_output(target):
            outcome = check_proofs(
                coq, project, claims, target, jobs, only, finished, locked=not self.lock
            )
            if self.lock and not outcome.failures:
                content = written(outcome.lock)
                write_file((self.coq or coq_directory()) / LOCK, content)
                project = replace(project, sources={**project.sources, LOCK: content})
            report = as_report(coq, project, outcome)
            if only is None:
                write_json(target / "report.json", report)
        _print(outcome, coq.version, to_stderr=to_stdout)
        if to_stdout:
            print(json.dumps(report, indent=2, ensure_ascii=False))
        else:
            write_json(self.json, report)
        return FAILED if outcome.failures else SUCCESS


def _read(coq: Path | None) -> Project:
    """The sources in the folder that ``--coq`` names, or in the checkout."""
    directory = coq or coq_directory()
    option = "--coq got" if coq else "the sources are expected in"
    if not directory.is_dir():
        raise UsageError(f"{option} {directory}, which is not a directory")
    try:
        project = read_project(directory)
    except UnreadableSource as error:
        raise UsageError(f"{option} {directory}, but {error}") from error
    if not any(holds_a_theorem(file) for file in project.files):
        raise UsageError(f"{option} {directory}, but it has no theorems <paper>/<name>.v")
    return project


def _named(file: Path, project: Project, coq: Path | None) -> str:
    """A file as it is named within the folder of the sources."""
    name = file.as_posix()
    if name not in project.sources:
        directory = (coq or coq_directory()).resolve()
        name = Path(os.path.relpath(os.path.realpath(file), directory)).as_posix()
    if name not in project.sources or not holds_a_theorem(name):
        raise UsageError(f"{file} is no file of theorems such as sharpened/finite.v")
    return name


def _write_table(table: Path, project: Project, proofs: Path | None) -> int:
    claims = find_proofs(proofs)
    try:
        text = render(project, claims)
        if table == STANDARD_OUTPUT:
            sys.stdout.write(text)
            return 0
        require_writable(table, "--table")
        if not table.is_file():
            raise UsageError(f"--table got {table}, which is not there: it holds the text around")
        content = with_table(table.read_text("utf-8"), text)
    except ValueError as error:
        raise UsageError(f"--table: {error}") from error
    write_file(table, content.encode())
    return 0


def _print(outcome: Outcome, version: str, to_stderr: bool) -> None:
    from rich.table import Table
    from rich.text import Text

    plain = console(stderr=to_stderr)
    table = Table(show_edge=False, pad_edge=False, box=None)
    for column in ("claim", "file", "theorem", "assumptions"):
        table.add_column(column, overflow="fold")
    table.add_column("seconds", justify="right")
    for proved in outcome.theorems:
        table.add_row(
            Text(", ".join(proved.claims) or "-"),
            Text(proved.theorem.file),
            Text(proved.theorem.name),
            Text(_assumptions(proved)),
            f"{proved.seconds:.1f}",
        )
    plain.print(table)
    for failure in outcome.failures:
        plain.print(f"FAILED  {failure}", markup=False, soft_wrap=True)
    for note in outcome.notes:
        plain.print(f"note    {note}", markup=False, soft_wrap=True)
    checked = sum(proved.checked for proved in outcome.theorems)
    claims = {claim for proved in outcome.theorems if proved.checked for claim in proved.claims}
    plain.print(
        f"{checked} of {len(outcome.theorems)} theorems checked by Coq {version}, for "
        f"{len(claims)} claims; {len(outcome.failures)} failures; {outcome.compiled} files "
        f"compiled; {outcome.seconds:.1f} s"
    )


def _assumptions(proved: Any) -> str:
    if proved.assumptions is None:
        return "not compiled"
    count = len(proved.assumptions)
    words = "closed" if not count else f"{count} axioms"
    return words if proved.checked else f"FAILED ({words})"


def _output_folder(output: Path | None, coq: Path | None) -> Path:
    """Where to compile; nothing is made yet."""
    root = checkout()
    if output is None and root is None:
        raise UsageError("outside a checkout, --output must say where to compile")
    target = output or Path(root or "", "build", "prove")
    if target.exists() and not target.is_dir():
        raise UsageError(f"--output got {target}, which is not a directory")
    try:
        sources, resolved = (coq or coq_directory()).resolve(), target.resolve()
        copies = (resolved / "coq").resolve()
    except (OSError, RuntimeError) as error:  # a loop of links
        raise UsageError(f"--output got {target}, which cannot be resolved: {error}") from error
    if sources in (resolved, copies, *resolved.parents, *copies.parents) or copies in (
        *sources.parents,
    ):
        raise UsageError(f"--output got {target}, but the sources {sources} must stand apart of it")
    return target


@contextmanager
def _lock_output(target: Path) -> Iterator[None]:
    """Make the folder, and hold it against other runs."""
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = f"which cannot be made: {error.strerror}; name another folder"
        raise UsageError(f"--output got {target}, {reason}") from error
    for name in ("lock", "compiled.json", "report.json"):
        require_writable(target / name, "--output")
    if (target / "lock").is_symlink():
        raise UsageError(f"--output got {target}, but its lock is a symbolic link; remove it")
    for name in ("coq", "assumptions"):
        path = target / name
        if (path.exists() or path.is_symlink()) and not path.is_dir():
            raise UsageError(f"--output got {target}, but {path} is not a directory; remove it")
    try:
        with lock_directory(target, inherited=True):
            yield
    except DirectoryLockedError as error:
        raise UsageError(
            f"--output got {target}, but another convattn prove is running in it (process "
            f"{error.process}, or a coqc that it has started); wait for its end, or name another "
            "folder"
        ) from error
    except ForeignFiles as error:
        raise UsageError(f"--output got {target}, but {error}; name another folder") from error
