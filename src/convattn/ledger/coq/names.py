"""Names that mean two things: a file must not define again what it, or its reader, has already.

A statement is read with the definitions of its own file, of ``foundation/`` and of the files that
it requires. A second definition by the same name would be the one that Coq takes.
"""

import re
from collections.abc import Iterator

from convattn.ledger.coq.failure import Failure
from convattn.ledger.coq.lexing import Sentence, sentences
from convattn.ledger.coq.project import Project

_DEFINED = re.compile(r"(?:Definition|Fixpoint|Record|Notation|Canonical|Lemma|Let)\s+([\w']+)")
_SEEN_BY_OTHERS = re.compile(r"Definition|Fixpoint|Record|Notation|Canonical")
_WITHIN_RECORD = re.compile(r"(?::=|[{;])\s*([\w']+)(?=\s*(?:\{|:))")
_ALSO = re.compile(r"\bwith\s+([\w']+)")
_REQUIRE = re.compile(r"(?:From\s+(\S+)\s+)?Require\s+(?:Import\s+|Export\s+)?(.*)\.", re.DOTALL)


def shadowing(project: Project) -> list[Failure]:
    """What is defined again.

    Args:
        project: The sources.
    """
    names = {file: list(_names(project.text(file))) for file in project.files}
    seen = {file: {name for _, name, others in found if others} for file, found in names.items()}
    required = {file: set(_required(project, file)) for file in project.files}
    foundation = {file for file in project.files if file.startswith("foundation/")}
    failures = []
    for file in project.files:
        above, waiting = set(foundation), [file]
        while waiting:
            new = required[waiting.pop()] - above
            above |= new
            waiting += new
        owners = {name: other for other in sorted(above - {file}) for name in seen[other]}
        failures += [
            Failure(file, line, f"'{name}', which {owners[name]} defines", "take another name")
            for line, name, _ in names[file]
            if name in owners
        ]
    return failures


def _names(text: str) -> Iterator[tuple[int, str, bool]]:
    """Line and name of whatever a source defines, and whether other files see it."""
    for sentence in sentences(text):
        if defined := _DEFINED.match(sentence.command):
            others = bool(_SEEN_BY_OTHERS.match(sentence.command))
            others &= not sentence.text.startswith("Local")
            for name in (defined[1], *_besides(sentence)):
                yield sentence.line, name, others


def _besides(sentence: Sentence) -> list[str]:
    """What a record or a mutual definition defines besides its name."""
    if sentence.command.startswith("Record"):
        return _WITHIN_RECORD.findall(sentence.command)
    return _ALSO.findall(sentence.command) if sentence.command.startswith("Fixpoint") else []


def _required(project: Project, file: str) -> Iterator[str]:
    for sentence in sentences(project.text(file)):
        if required := _REQUIRE.match(sentence.command):
            for module in required[2].split():
                name = f".{required[1] or ''}.{module}".replace("..", ".")
                for other in project.files:
                    if f".{project.qualified(other)}".endswith(name):
                        yield other
