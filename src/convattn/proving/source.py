"""What a proof file may hold, and the theorem that it proves.

A file of theorems, ``proofs/coq/<paper>/<name>.v``, holds exactly one ``Theorem``, named as the
file and outside any section and module, so that its text alone is its statement. Whatever assumes
what is not proved, or weakens the kernel, is refused by its word; what Coq's kernel says about
assumptions is asked besides (`convattn.proving.assumptions`).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from convattn.proving.failure import Failure
from convattn.proving.lexing import Sentence, blank, sentences

SUPPORT = ("foundation", "bridge")
_PROVE = "prove it, or leave it out"
_KERNEL = "leave it out: the kernel must check everything"
_WHOLE = "leave it out: what is checked must be what stands in the scanned files"
_FORBIDDEN = {
    "Admitted": "finish the proof",
    "admit": "finish the proof",
    "give_up": "finish the proof",
    "Abort": "leave the draft out",
    "Axiom": _PROVE,
    "Axioms": _PROVE,
    "Parameter": _PROVE,
    "Parameters": _PROVE,
    "Conjecture": _PROVE,
    "Conjectures": _PROVE,
    "Primitive": _PROVE,
    "Declare Module": _PROVE,
    "Unset Guard Checking": _KERNEL,
    "Unset Positivity Checking": _KERNEL,
    "Unset Universe Checking": _KERNEL,
    "Set Definitional UIP": _KERNEL,
    "bypass_check": _KERNEL,
    "Declare ML Module": _WHOLE,
    "Add LoadPath": _WHOLE,
    "Add Rec LoadPath": _WHOLE,
    "Add ML Path": _WHOLE,
    "Load": _WHOLE,
    "Redirect": _WHOLE,
    "Extraction": _WHOLE,
}
_WORDS = re.compile(
    r"(?<![\w'])(?:"
    + "|".join(words.replace(" ", r"\s+") for words in sorted(_FORBIDDEN, key=len, reverse=True))
    + r")(?![\w'])"
)
_ASSUMPTION = re.compile(r"(Hypothesis|Hypotheses|Variables?|Context)\b")
_OPENING = re.compile(r"(?:(Section)|(Module)(?:\s+(?:Type|Import|Export))*)\s+([^\s.(:<]+)")
_CLOSING = re.compile(r"End\s+(\S+?)\s*\.")
_THEOREM = re.compile(r"Theorem\s+([^\s:({\[@]+)")


@dataclass(frozen=True)
class Theorem:
    """The theorem of a file.

    Attributes:
        file: The file, under ``proofs/coq/``.
        name: The theorem's name, which is the file's.
        line: The line on which it begins.
        statement: Its text from ``Theorem`` to the full stop, without comments, on one line.
    """

    file: str
    name: str
    line: int
    statement: str


def normalised(statement: str) -> str:
    """A statement on one line: comments gone, each run of white space one space.

    Example:
        >>> normalised("Theorem a :\\n  forall n, (* any *) n = n.")
        'Theorem a : forall n, n = n.'
    """
    return " ".join(blank(statement).split())


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
    failures = list(_forbidden(file, text))
    theorems: list[tuple[Sentence, str]] = []
    open_: list[tuple[str, str]] = []
    for sentence in sentences(text):
        opening, closing = _OPENING.match(sentence.command), _CLOSING.match(sentence.command)
        if opening and not (opening[2] and ":=" in sentence.command):
            open_.append((opening[1] or opening[2], opening[3]))
        elif closing and open_:
            open_.pop()
        elif (word := _ASSUMPTION.match(sentence.command)) and not _in_section(open_):
            remedy = "outside a section this is an axiom; open a Section, or prove it"
            failures.append(Failure(file, sentence.line, f"'{word[1]}'", remedy))
        elif stated := _THEOREM.match(sentence.command):
            theorems.append((sentence, stated[1]))
            if open_ and holds_a_theorem(file):
                found = f"Theorem {stated[1]} within {' '.join(open_[-1])}"
                remedy = "close that first, so that the statement stands alone"
                failures.append(Failure(file, sentence.line, found, remedy))
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
    statement = normalised(text[sentence.start : sentence.end])
    return Theorem(file, name, sentence.line, statement), failures


def _forbidden(file: str, text: str) -> Iterator[Failure]:
    code = blank(text, strings=True)
    for match in _WORDS.finditer(code):
        words = " ".join(match[0].split())
        line = code.count("\n", 0, match.start()) + 1
        yield Failure(file, line, f"'{words}'", _FORBIDDEN[words])


def _in_section(open_: list[tuple[str, str]]) -> bool:
    return any(kind == "Section" for kind, _ in open_)
