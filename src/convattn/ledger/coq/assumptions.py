"""What Coq's kernel says a theorem stands on (``Print Assumptions``).

Coq loads every compiled file and writes the answer to each question into a file of its own, so that
no answer can be taken for another's.
"""

import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from convattn.ledger.coq.axioms import ALLOWED
from convattn.ledger.coq.failure import Failure
from convattn.ledger.coq.messages import remedy_for
from convattn.ledger.coq.project import Project
from convattn.ledger.coq.source import Theorem
from convattn.ledger.coq.toolchain import Coq

_CLOSED = "Closed under the global context"
_HEADING = re.compile(r"[A-Z][A-Za-z -]*:")
_AXIOM = re.compile(r"([^\s:]+)\s+:\s")
_MEANT = re.compile(r"^[A-Z][a-z]+ (\S+)$", re.MULTILINE)
_LINE = re.compile(r'^File "[^"]*query\.v", line (\d+)', re.MULTILINE)


def parse_assumptions(answer: str) -> tuple[str, ...]:
    """The names of the axioms in an answer of ``Print Assumptions``, in alphabetical order.

    An entry that is no axiom, such as a definition that is assumed to terminate, is given whole.

    Args:
        answer: What Coq wrote.

    Raises:
        ValueError: If that is no such answer.

    Example:
        >>> parse_assumptions("Closed under the global context")
        ()
        >>> parse_assumptions("Axioms:\\nb : nat\\na\\n  : forall n : nat,\\n    n = n")
        ('a', 'b')
    """
    if answer.strip() == _CLOSED:
        return ()
    entries: list[str] = []
    for line in answer.strip().splitlines():
        if line[:1].isspace() and entries:
            entries[-1] += f" {line.strip()}"
        elif not _HEADING.fullmatch(line.strip()):
            entries.append(line.strip())
    if not entries:
        raise ValueError(f"Print Assumptions answered {answer.strip()!r}, which names nothing")
    named = (_AXIOM.match(f"{entry} ") for entry in entries)
    return tuple(sorted(m[1] if m else e for m, e in zip(named, entries, strict=True)))


def print_assumptions(
    coq: Coq, project: Project, output: Path, theorems: Sequence[Theorem]
) -> tuple[dict[str, tuple[str, ...]], list[Failure]]:
    """Ask the kernel about each theorem.

    Those that may stand on no axiom are first asked about all at once, which takes a tenth of the
    time; if together they stand on none, each does.

    Args:
        coq: The compiler.
        project: The sources, which are compiled under ``output/coq/``.
        output: A folder; ``output/assumptions/`` is written anew.
        theorems: The theorems of compiled files.

    Returns:
        The assumptions of each theorem, by its file, axioms by their full names, and whom Coq does
        not know.
    """
    folder = output / "assumptions"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    names = {item.file: f"{project.qualified(item.file)}.{item.name}" for item in theorems}
    closed = [names[item.file] for item in theorems if item.file not in ALLOWED]
    answers: dict[str, tuple[str, ...]] = {}
    if closed:
        together = f"Definition together := (I, @{', @'.join(closed)})."
        lines = [*_required(closed), together, 'Redirect "together" Print Assumptions together.']
        if not _ask(coq, project, folder, lines) and _answer(folder / "together.out") == ():
            answers = {item.file: () for item in theorems if item.file not in ALLOWED}
    asked = [item for item in theorems if item.file not in answers]
    failures = []
    while asked:
        lines = _required(names[item.file] for item in asked)
        lines += [
            f'Redirect "{number}" Print Assumptions {names[item.file]}.'
            for number, item in enumerate(asked)
        ]
        if not (error := _ask(coq, project, folder, lines)):
            break
        place = _LINE.search(error)
        if place is None:
            raise RuntimeError(f"coqc could not print the assumptions: {error.strip()}")
        theorem = asked.pop((int(place[1]) - 1) % len(asked))
        found = f"Coq does not find it ({' '.join(error[place.end() :].split())})"
        outside = "state it at the top of its file, outside sections and modules"
        remedy = remedy_for(error, output, outside)
        failures.append(Failure(theorem.file, theorem.line, found, remedy))
    for number, theorem in enumerate(asked):
        try:
            answers[theorem.file] = _answer(folder / f"{number}.out")
        except ValueError as error:
            failures.append(Failure(theorem.file, theorem.line, str(error), "look at the theorem"))
    required = _required(names[item.file] for item in asked)
    short = sorted({name for found in answers.values() for name in found if " " not in name})
    full = _full_names(coq, project, folder, required, short)
    in_full = {
        file: tuple(sorted(full.get(name, name) for name in axioms))
        for file, axioms in answers.items()
    }
    return in_full, failures


def parse_location(answer: str) -> str | None:
    """The full name of what a short name means, in an answer of ``Locate``.

    Args:
        answer: What Coq wrote. It lists whatever has that name, and for all but the one that is
            meant, how to call it.

    Returns:
        The full name; ``None`` if not exactly one is meant.

    Example:
        >>> parse_location("Constant Coq.b.c\\nConstant Coq.a.b.c\\n  (shorter name ... is a.b.c)")
        'Coq.b.c'
    """
    meant = _MEANT.findall(re.sub(r"\n\s+", " ", answer.strip()))
    return meant[0] if len(meant) == 1 else None


def _full_names(
    coq: Coq, project: Project, folder: Path, required: Sequence[str], short: Sequence[str]
) -> dict[str, str]:
    """What short names mean where these files are required, as far as Coq says it."""
    asked = [f'Redirect "name{i}" Locate Term {name}.' for i, name in enumerate(short)]
    if not short or _ask(coq, project, folder, [*required, *asked]):
        return {}
    located = [parse_location(_read(folder / f"name{i}.out")) for i in range(len(short))]
    return {name: full for name, full in zip(short, located, strict=True) if full is not None}


def _required(names: Iterable[str]) -> list[str]:
    return [f"Require {name.rpartition('.')[0]}." for name in names]


def _ask(coq: Coq, project: Project, folder: Path, lines: Sequence[str]) -> str:
    """Run these lines; what Coq says against them, empty if it accepts them."""
    (folder / "query.v").write_text("\n".join(lines) + "\n", "utf-8")
    words = [coq.coqc, "-q", "-Q", "../coq", project.prefix, "query.v"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    return done.stderr or f"exit code {done.returncode}" if done.returncode else ""


def _answer(path: Path) -> tuple[str, ...]:
    return parse_assumptions(_read(path))


def _read(path: Path) -> str:
    return path.read_text("utf-8", "replace")
