"""The Coq sources as they stand on the disk, and the surface of their language."""

import errno
import hashlib
import os.path
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import TypeVar

PROJECT, LOCK = "_CoqProject", "definitions.lock.json"
_MODULE = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_OPTIONS = re.compile(r"-Q\s+\.\s+(\w+)(?:\s+-arg\s+-w\s+-arg\s+([\w,+-]+))?")
_Name = TypeVar("_Name")
_END = re.compile(r"(?:(?<!\.)\.|(?<=\.\.)\.)(?=\s|\Z)")


class UnreadableSource(Exception):
    """What is named as a source cannot be read; the message says what, why and what to do."""


@dataclass(frozen=True)
class Failure:
    """Why the proofs do not pass: where, what is there, and what to do about it.

    Attributes:
        file: The file, under ``proofs/coq/`` or, for a claim, under ``proofs/``.
        line: The line, from 1; 0 for the whole file.
        found: What is there.
        remedy: What to do.

    Example:
        >>> print(Failure("sharpened/finite.v", 30, "'Admitted'", "finish the proof"))
        sharpened/finite.v:30: 'Admitted': finish the proof
    """

    file: str
    line: int
    found: str
    remedy: str

    def __str__(self) -> str:
        location = f"{self.file}:{self.line}" if self.line else self.file
        return f"{location}: {self.found}: {self.remedy}"


@dataclass(frozen=True)
class Project:
    """A folder of Coq sources, read once.

    Attributes:
        sources: The content of each, by its path in the folder.
        prefix: The logical name of the folder.
        warnings: Which warnings Coq leaves out.
        failures: What is wrong with ``_CoqProject``.
    """

    sources: dict[str, bytes]
    prefix: str = "Convattn"
    warnings: str = "default"
    failures: tuple[Failure, ...] = ()

    @property
    def files(self) -> list[str]:
        """The Coq files, in alphabetical order."""
        return sorted(name for name in self.sources if name.endswith(".v"))

    def text(self, file: str) -> str:
        """A source as text."""
        return self.sources[file].decode("utf-8", "replace")

    def qualified(self, file: str, name: str = "") -> str:
        """The logical name of a file, or of what it defines.

        Example:
            >>> Project({}).qualified("sharpened/finite.v", "finite")
            'Convattn.sharpened.finite.finite'
        """
        parts = PurePosixPath(file).with_suffix("").parts
        return ".".join([self.prefix, *parts, *([name] if name else [])])


@dataclass(frozen=True)
class Sentence:
    """One sentence: where it begins and ends, and its text without comments."""

    line: int
    start: int
    end: int
    text: str


def digest(content: bytes) -> str:
    """The SHA-256 of a source, in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def reached(uses: Mapping[_Name, Collection[_Name]], name: _Name) -> set[_Name]:
    """All that a name uses, directly or through others; itself only if that is a circle.

    Example:
        >>> sorted(reached({"a": "b", "b": "c"}, "a"))
        ['b', 'c']
    """
    visited: set[_Name] = set()
    waiting = [name]
    while waiting:
        new = set(uses.get(waiting.pop(), ())) - visited
        visited |= new
        waiting += new
    return visited


def read_project(directory: Path) -> Project:
    """Read every ``.v`` file of a folder, ``_CoqProject`` and the lock; hidden files are left out.

    Raises:
        UnreadableSource: If one of them is no file (a folder, a pipe, a dangling link), may not be
            read, or is a ``.v`` file that is not named as a module.
    """
    paths = sorted(directory.rglob("*.v"))
    paths += [directory / name for name in (PROJECT, LOCK) if os.path.lexists(directory / name)]
    sources: dict[str, bytes] = {}
    for path in paths:
        parts = path.relative_to(directory).parts
        if any(part.startswith(".") for part in parts):
            continue
        modules = [*parts[:-1], path.stem] if path.suffix == ".v" else []
        if odd := [name for name in modules if not _MODULE.fullmatch(name)]:
            raise UnreadableSource(
                f"{str(path)!r} has the part {odd[0]!r}, and make and its shell might take it for "
                "more than a name; rename it: ASCII letters, digits and _"
            )
        try:
            if path.exists() and not (path.is_file() or path.is_dir()):
                raise OSError(errno.ENODEV, "a pipe or a device")  # which may never end
            sources["/".join(parts)] = path.read_bytes()
        except OSError as error:
            reason = f"cannot be read ({error.strerror}); make it a file that can, or remove it"
            raise UnreadableSource(f"{path} {reason}") from error
    if PROJECT not in sources:
        return Project(sources)
    options = _OPTIONS.fullmatch(sources[PROJECT].decode("utf-8", "replace").strip())
    if options is None:
        remedy = "expected '-Q . NAME', and '-arg -w -arg WARNINGS' at most"
        return Project(sources, failures=(Failure(PROJECT, 0, "other options", remedy),))
    return Project(sources, options[1], options[2] or "default")


def blank(text: str) -> str:
    """The text with comments and the insides of strings overwritten; positions stay as they are.

    Comments nest, and strings count within them: ``(* "*)" *)`` is one comment.

    Example:
        >>> blank("Adm(* (* *) *)itted.").split()
        ['Adm', 'itted.']
    """
    return "".join(
        piece if not depth and not within else re.sub(r"[^\n]", " ", piece)
        for piece, depth, within in _pieces(text)
    )


def comments(text: str) -> tuple[tuple[int, str], ...]:
    """Where each comment begins, and its words, in order.

    Example:
        >>> comments("Check a. (** One,\\n  (* in *) two. *)")
        ((9, 'One, (* in *) two.'),)
    """
    result: list[tuple[int, str]] = []
    position, begun = 0, -1
    for piece, depth, _ in _pieces(text):
        if depth and begun < 0:
            begun = position
        position += len(piece)
        if begun >= 0 and depth == 1 and piece == "*)":
            words = text[begun + 2 : position - 2].lstrip("*")
            result.append((begun, " ".join(words.split())))
            begun = -1
    return tuple(result)


def _pieces(text: str) -> Iterator[tuple[str, int, bool]]:
    """Each piece, how many comments it stands in, and whether it is the inside of a string."""
    depth, quoted = 0, False
    for piece in re.split(r'(\(\*|\*\)|")', text):
        if piece == '"':
            quoted = not quoted
            yield piece, depth, False
        elif piece == "(*" and not quoted:
            depth += 1
            yield piece, depth, False
        elif piece == "*)" and not quoted and depth:
            yield piece, depth, False
            depth -= 1
        else:
            yield piece, depth, quoted


@lru_cache(maxsize=1024)
def sentences(text: str) -> tuple[Sentence, ...]:
    """The sentences of a source, in order: each ends at a full stop before white space.

    Example:
        >>> [s.text for s in sentences("Lemma a : x.1 = y. (* no. *) Proof. by []. Qed.")]
        ['Lemma a : x.1 = y.', 'Proof.', 'by [].', 'Qed.']
    """
    code, position = blank(text), 0
    result = []
    for match in _END.finditer(code):
        piece = code[position : match.end()]
        start = position + len(piece) - len(piece.lstrip())
        line = code.count("\n", 0, start) + 1
        result.append(Sentence(line, start, match.end(), piece.strip()))
        position = match.end()
    return tuple(result)
