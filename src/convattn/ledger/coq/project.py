"""The sources of the proofs, as they stand on the disk, and how they are given to Coq."""

import hashlib
import os.path
import shlex
from dataclasses import dataclass
from pathlib import Path

from convattn.ledger.coq.failure import Failure

PROJECT = "_CoqProject"


class UnreadableSource(Exception):
    """What is named as a source cannot be read; the message says what, why and what to do."""


@dataclass(frozen=True)
class Project:
    """A folder of Coq sources, read once.

    Attributes:
        sources: The content of each, by its path in the folder.
        prefix: The logical name of the folder.
        options: What ``coqc`` is given.
        failures: What is wrong with ``_CoqProject``.
    """

    sources: dict[str, bytes]
    prefix: str
    options: tuple[str, ...]
    failures: tuple[Failure, ...]

    @property
    def files(self) -> list[str]:
        """The Coq files, in alphabetical order."""
        return sorted(name for name in self.sources if name != PROJECT)

    def text(self, file: str) -> str:
        """A source as text."""
        return self.sources[file].decode("utf-8", "replace")

    def qualified(self, file: str) -> str:
        """The logical name of a file.

        Example:
            >>> Project({}, "Convattn", (), ()).qualified("sharpened/finite.v")
            'Convattn.sharpened.finite'
        """
        return ".".join([self.prefix, *Path(file).with_suffix("").parts])


def digest(content: bytes) -> str:
    """The SHA-256 of a source, in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def read_project(directory: Path) -> Project:
    """Read ``_CoqProject`` and every ``.v`` file of a folder; hidden ones are left out.

    Args:
        directory: The folder.

    Raises:
        UnreadableSource: If one of them is a folder, a dangling link or may not be read.
    """
    sources: dict[str, bytes] = {}
    for path in sorted(directory.rglob("*.v")):
        parts = path.relative_to(directory).parts
        if not any(part.startswith(".") for part in parts):
            sources["/".join(parts)] = _content(path)
    prefix, options, failures = "Convattn", ["-Q", ".", "Convattn"], []
    if os.path.lexists(directory / PROJECT):
        sources[PROJECT] = _content(directory / PROJECT)
        text = sources[PROJECT].decode("utf-8", "replace")
        try:
            words = shlex.split(text, comments=True)
        except ValueError as error:
            words = []
            failures.append(Failure(PROJECT, 0, f"{error}", "close the quotation mark"))
        while words:
            match words:
                case ["-Q", ".", name, *words]:
                    prefix, options[2] = name, name
                case ["-arg", "-w", "-arg", warnings, *words]:
                    options += ["-w", warnings]
                case [word, *words]:
                    remedy = "expected '-Q . NAME', and '-arg -w -arg WARNINGS' at most"
                    failures.append(Failure(PROJECT, 0, f"'{word}'", remedy))
    return Project(sources, prefix, tuple(options), tuple(failures))


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UnreadableSource(
            f"{path} cannot be read ({error.strerror}); make it a file that can, or remove it"
        ) from error
