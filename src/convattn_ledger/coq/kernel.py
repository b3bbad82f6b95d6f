"""What Coq says of compiled files: axioms, statements and definitions in full, and known names.

Coq writes each answer into a file of its own, so that no answer can be taken for another's. The
files are required and not imported, so that names come qualified and a name that hides another
shows.
"""

import re
import shutil
import subprocess
import textwrap
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from convattn.files import filename_in_errors
from convattn_ledger.coq.build import clean_environment, refuse_unwritten
from convattn_ledger.coq.sources import Project

WIDTH = 110  # of a printed line
_CLOSED = "Closed under the global context"
QUALIFIED = re.compile(r"(?<![\w'.])(?:[A-Za-z_][\w']*\.)+[A-Za-z_][\w']*")
_MEANT = re.compile(r"^[A-Z][a-z]+ (\S+)(?: \(alias of (\S+)\))?$", re.MULTILINE)
_ALL = ["Set Printing All.", "Set Printing Depth 1000000.", "Set Printing Width 1000000."]


class Kernel:
    """Asks Coq about the compiled files of a project."""

    def __init__(self, project: Project, output: Path, files: Iterable[str]) -> None:
        """Ask about these files, compiled under ``output/coq/``."""
        self._words = ["coqc", "-q", "-w", "none", "-Q", "../coq", project.prefix, "query.v"]
        self._folder = output / "assumptions"
        self._required = [f"Require {project.qualified(file)}." for file in files]
        self._full: dict[str, str] = {}

    def ask(self, before: Sequence[str], questions: Sequence[str]) -> list[str]:
        """The answer to each question."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True)
        lines = [*before, *(f'Redirect "{n}" {question}.' for n, question in enumerate(questions))]
        query = self._folder / "query.v"
        with filename_in_errors(query):
            query.write_text("\n".join(lines) + "\n", "utf-8")
        done = subprocess.run(
            self._words,
            cwd=self._folder,
            env=clean_environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            refuse_unwritten(done.stderr, self._folder)
            raise RuntimeError(f"Coq does not answer: {' '.join(done.stderr.split())}")
        answers = [self._folder / f"{number}.out" for number in range(len(questions))]
        return [answer.read_text("utf-8", "replace") for answer in answers]

    def assumptions(
        self, theorems: Sequence[str], closed: Collection[str]
    ) -> list[tuple[str, ...]]:
        """The axioms, by their full names, that each theorem stands on.

        Args:
            theorems: Full names.
            closed: Those that should stand on none. They are asked about together first, which
                takes a tenth of the time; if together they stand on none, each does.
        """
        asked = list(theorems)
        if closed:
            together = f"Definition together := (I, @{', @'.join(closed)})."
            (answer,) = self.ask([*self._required, together], ["Print Assumptions together"])
            if parse_assumptions(answer) == ():
                asked = [name for name in theorems if name not in closed]
        answers = self.ask(self._required, [f"Print Assumptions {name}" for name in asked])
        axioms_of = dict(zip(asked, map(parse_assumptions, answers), strict=True))
        self._locate(
            {axiom for axioms in axioms_of.values() for axiom in axioms if " " not in axiom}
        )
        return [
            tuple(sorted(self._full.get(axiom, axiom) for axiom in axioms_of.get(name, ())))
            for name in theorems
        ]

    def printed(self, theorems: Sequence[str], definitions: Sequence[str]) -> dict[str, str]:
        """Statements and definitions, with nothing implicit and every name in full."""
        questions = [f"Check @{name}" for name in theorems] + [f"Print {d}" for d in definitions]
        answers = self.ask([*self._required, *_ALL], questions)
        bodies = [" ".join(answer.partition("\nArguments ")[0].split()) for answer in answers]
        self._locate({token for body in bodies for token in QUALIFIED.findall(body)})
        tokens = {token for body in bodies for token in QUALIFIED.findall(body)}
        if lost := sorted(tokens - self._full.keys()):
            raise RuntimeError(f"a statement or definition reaches {lost[0]}, which means nothing")
        full = [QUALIFIED.sub(lambda m: self._full[m[0]], body) for body in bodies]
        return dict(zip([*theorems, *definitions], full, strict=True))

    def readable(self, lines: Sequence[str], theorems: Sequence[str]) -> dict[str, list[str]]:
        """Statements in lines, as Coq prints them where these lines stand."""
        layout = ["Set Printing Depth 1000000.", f"Set Printing Width {WIDTH}."]
        answers = self.ask(
            [*lines, *self._required, *layout], [f"Check @{name}" for name in theorems]
        )
        texts = [textwrap.dedent(answer.partition(" : ")[2]) for answer in answers]
        return {
            name: [line.rstrip() for line in text.strip().splitlines()]
            for name, text in zip(theorems, texts, strict=True)
        }

    def known(self, lines: Sequence[str], names: Sequence[str]) -> dict[str, str]:
        """Which names mean something where these lines stand, and what."""
        answers = self.ask(lines, [f"Locate Term {name}" for name in names])
        pairs = zip(names, map(parse_location, answers), strict=True)
        return {name: full for name, full in pairs if full is not None}

    def modules(self, lines: Sequence[str], names: Sequence[str]) -> dict[str, str]:
        """Which names are modules where these lines stand, and which."""
        answers = self.ask(lines, [f"Locate Module {name}" for name in names])
        pairs = zip(
            names, (re.findall(r"^Module (\S+)", answer) for answer in answers), strict=True
        )
        return {name: full[0] for name, full in pairs if full}

    def libraries(self) -> list[Path]:
        """The compiled file of each library that these files load, directly or not.

        What is compiled under ``output/coq/`` is left out.
        """
        (answer,) = self.ask(self._required, ["Print Libraries"])
        names = re.findall(r"^  ([\w.]+)$", answer, re.MULTILINE)
        answers = self.ask(self._required, [f"Locate Library {name}" for name in names])
        files = []
        for name, answer in zip(names, answers, strict=True):
            location = re.search(r"loaded from file\s+(\S+)", answer)
            if location is None:
                raise RuntimeError(f"the library {name} is loaded, but Coq does not say from where")
            files.append(Path(location[1]).resolve())
        ours = (self._folder.parent / "coq").resolve()
        return [file for file in files if ours not in file.parents]

    def _locate(self, tokens: Collection[str]) -> None:
        """Find what qualified names mean in full."""
        new = sorted(set(tokens) - self._full.keys())
        if new:
            self._full |= self.known(self._required, new)


def parse_assumptions(answer: str) -> tuple[str, ...]:
    """The names of the axioms in an answer of ``Print Assumptions``, in alphabetical order.

    An entry that is no axiom, such as a definition that is assumed to terminate, is given whole.

    Example:
        >>> parse_assumptions("Axioms:\\nb : nat\\na\\n  : forall n : nat,\\n    n = n")
        ('a', 'b')
    """
    if answer.strip() == _CLOSED:
        return ()
    entries: list[str] = []
    for line in answer.strip().splitlines():
        if line[:1].isspace() and entries:
            entries[-1] += f" {line.strip()}"
        elif not re.fullmatch(r"[A-Z][A-Za-z -]*:", line.strip()):
            entries.append(line.strip())
    if not entries:
        raise ValueError(f"Print Assumptions answered {answer.strip()!r}, which names nothing")
    named = (re.match(r"([^\s:]+)\s+:\s", f"{entry} ") for entry in entries)
    return tuple(sorted(m[1] if m else e for m, e in zip(named, entries, strict=True)))


def parse_location(answer: str) -> str | None:
    """The full name of what a short name means, in an answer of ``Locate``; ``None`` if nothing.

    Coq lists whatever has that name, and for all but the one that is meant, how to call it.

    Example:
        >>> parse_location("Constant Coq.b.c\\nConstant Coq.a.b.c\\n  (shorter name ... is a.b.c)")
        'Coq.b.c'
    """
    meant = _MEANT.findall(re.sub(r"\n\s+", " ", answer.strip()))
    return meant[0][1] or meant[0][0] if len(meant) == 1 else None
