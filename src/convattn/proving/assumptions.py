"""What Coq's kernel says a theorem stands on (``Print Assumptions``).

One run of Coq loads every compiled file and writes the answer for each theorem into a file of its
own, so that no answer can be taken for another's.
"""

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from convattn.proving.failure import Failure
from convattn.proving.project import Project
from convattn.proving.source import Theorem
from convattn.proving.toolchain import Coq

_CLOSED = "Closed under the global context"
_HEADING = re.compile(r"[A-Z][A-Za-z -]*:")
_AXIOM = re.compile(r"([^\s:]+)\s+:\s")
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

    Args:
        coq: The compiler.
        project: The sources, which are compiled under ``output/coq/``.
        output: A folder; ``output/assumptions/`` is written anew.
        theorems: The theorems of compiled files.

    Returns:
        The assumptions of each theorem, by its file, and whom Coq does not know.
    """
    folder = output / "assumptions"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    asked, failures = list(theorems), []
    while asked:
        lines = [f"Require {project.qualified(theorem.file)}." for theorem in asked]
        lines += [
            f'Redirect "{number}" Print Assumptions {project.qualified(theorem.file)}.'
            f"{theorem.name}."
            for number, theorem in enumerate(asked)
        ]
        (folder / "query.v").write_text("\n".join(lines) + "\n", "utf-8")
        words = [coq.coqc, "-q", "-Q", "../coq", project.prefix, "query.v"]
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
        if not done.returncode:
            break
        place = _LINE.search(done.stderr)
        if place is None:
            raise RuntimeError(f"coqc could not print the assumptions: {done.stderr.strip()}")
        theorem = asked.pop((int(place[1]) - 1) % len(asked))
        said = " ".join(done.stderr[place.end() :].split())
        remedy = "state it at the top of its file, outside sections and modules"
        failures.append(
            Failure(theorem.file, theorem.line, f"Coq does not find it ({said})", remedy)
        )
    found: dict[str, tuple[str, ...]] = {}
    for number, theorem in enumerate(asked):
        answer = (folder / f"{number}.out").read_text("utf-8", "replace")
        try:
            found[theorem.file] = parse_assumptions(answer)
        except ValueError as error:
            failures.append(Failure(theorem.file, theorem.line, str(error), "look at the theorem"))
    return found, failures
