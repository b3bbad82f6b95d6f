"""``convattn prove``: compile the machine-checked proofs, and check that the claims name them."""

import json as json_module
import os.path
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from convattn.cli.consoles import console
from convattn.cli.output_file import require_writable, write_file, write_json
from convattn.cli.prove_folder import held, output_folder
from convattn.cli.termination import termination_raises
from convattn.cli.usage import UsageError
from convattn.cli.verify import find_proofs
from convattn.ledger.coq.document import render, with_table
from convattn.ledger.coq.project import Project, UnreadableSource, read_project
from convattn.ledger.coq.run import Outcome, as_report, check_proofs
from convattn.ledger.coq.source import holds_a_theorem
from convattn.ledger.coq.toolchain import NoCoq, find_coq
from convattn.ledger.environment import cores
from convattn.ledger.locations import coq_directory

NO_COQ = 3
STANDARD_OUTPUT = Path("-")


def prove(
    files: Sequence[Path] = (),
    coq: Path | None = None,
    output: Path | None = None,
    jobs: int | None = None,
    proofs: Path | None = None,
    table: Path | None = None,
    json: Path | None = None,
) -> int:
    """Check the proofs, print a table of them and write ``report.json``.

    Args:
        files: The files of theorems to check; all if empty, and only then a report is written.
        coq: The folder of the sources.
        output: Where to compile, and where the report is written.
        jobs: How many files are compiled at a time.
        proofs: The directory of the claims.
        table: A document to bring up to date; nothing is compiled then.
        json: Where to write what the report says; ``-`` for standard output.

    Returns:
        0 if everything is proved, 1 if not, 3 if Coq or one of its libraries is missing.

    Raises:
        UsageError: If the wishes cannot be carried out.
    """
    project = _read(coq)
    if table is not None:
        return _write_table(table, project, proofs)
    target = output_folder(output, coq)
    if jobs is not None and jobs < 1:
        raise UsageError(f"--jobs got {jobs}, but expected at least 1")
    if json is not None and json != STANDARD_OUTPUT:
        require_writable(json, "--json")
    only = [_named(file, project, coq) for file in files] or None
    claims = find_proofs(proofs)
    try:
        found = find_coq(project.text(file) for file in project.files)
    except NoCoq as error:
        print(f"convattn prove: {error}", file=sys.stderr)
        return NO_COQ

    def finished(file: str, seconds: float) -> None:
        print(f"  compiled {file}  {seconds:.1f} s", file=sys.stderr, flush=True)

    with termination_raises(), held(target):
        outcome = check_proofs(found, project, claims, target, jobs or cores(), only, finished)
        report = as_report(found, project, outcome)
        if only is None:
            write_json(target / "report.json", report)
    _print(outcome, found.version, to_stderr=json == STANDARD_OUTPUT)
    if json == STANDARD_OUTPUT:
        print(json_module.dumps(report, indent=2, ensure_ascii=False))
    elif json is not None:
        write_json(json, report)
    return 1 if outcome.failures else 0


def _read(coq: Path | None) -> Project:
    """The sources in the folder that ``--coq`` names, or in the checkout."""
    directory = coq or coq_directory()
    option = "--coq got" if coq else "the sources are expected in"
    if not directory.is_dir():
        hint = "" if coq else "; they do not come with an installed package, only with a checkout"
        raise UsageError(f"{option} {directory}, which is not a directory{hint}")
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
