"""What a proof file may hold, and the theorem that it proves.

A file of theorems, ``proofs/coq/<paper>/<name>.v``, holds exactly one ``Theorem``, named as the
file and outside any section, so that its text alone is its statement. What else it may say is in
`convattn.ledger.coq.commands`; what Coq's kernel says about assumptions is asked besides
(`convattn.ledger.coq.assumptions`).
"""

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from convattn.ledger.coq.commands import in_sections, refused
from convattn.ledger.coq.failure import Failure
from convattn.ledger.coq.lexing import Sentence, blank

SUPPORT = ("foundation", "bridge")
_THEOREM = re.compile(r"Theorem\s+([^\s:({\[@]+)")


@dataclass(frozen=True)
class Theorem:
    """The theorem of a file.

    Attributes:
        file: The file, under ``proofs/coq/``.
        name: The theorem's name, which is the file's.
        line: The line on which it begins.
        text: Its statement from ``Theorem`` to the full stop, without comments.
    """

    file: str
    name: str
    line: int
    text: str

    @property
    def statement(self) -> str:
        """The statement on one line."""
        return " ".join(self.text.split())


def holds_a_theorem(file: str) -> bool:
    """Whether a file under ``proofs/coq/`` is one of theorems, and not what these stand on."""
    return PurePosixPath(file).parts[0] not in SUPPORT


def scan(file: str, text: str) -> tuple[Theorem | None, list[Failure]]:
    """Look through a source.

    Args:
        file: Its path under ``proofs/coq/``.
        text: Its content.

    Returns:
        Its theorem, if it must have one and has, and what is wrong.

    Example:
        >>> scan("p/one.v", "Theorem one : 1 = 1. Proof. admit. Admitted.")[1][0].found
        "'admit'"
        >>> scan("p/one.v", "(* Admitted *) Theorem one : 1 = 1. Proof. by []. Qed.")[0].statement
        'Theorem one : 1 = 1.'
    """
    failures = list(refused(file, text))
    theorems: list[tuple[Sentence, str]] = []
    for sentence, within in in_sections(text):
        if match := _THEOREM.match(sentence.command):
            theorems.append((sentence, match[1]))
            if within and holds_a_theorem(file):
                where = f"Theorem {match[1]} within Section {within[-1]}"
                remedy = "close that first, so that the statement stands alone"
                failures.append(Failure(file, sentence.line, where, remedy))
    if not holds_a_theorem(file):
        return None, failures
    name = PurePosixPath(file).stem
    if len(theorems) != 1:
        names = ", ".join(f"'{named}'" for _, named in theorems) or "none"
        line = theorems[1][0].line if theorems else 0
        remedy = f"expected exactly one, 'Theorem {name}'; the others are lemmas, or other files"
        failures.append(Failure(file, line, f"theorems: {names}", remedy))
        return None, failures
    ((sentence, named),) = theorems
    if named != name or not sentence.text.startswith("Theorem"):
        found = f"'{' '.join(sentence.text.split()[:4])} ...'"
        remedy = f"expected 'Theorem {name}', named as the file and without attributes"
        failures.append(Failure(file, sentence.line, found, remedy))
        return None, failures
    lines = blank(text)[sentence.start : sentence.end].splitlines()
    whole = "\n".join(line.rstrip() for line in lines if line.strip())
    return Theorem(file, name, sentence.line, whole), failures
