"""What was compiled, of which sources: the copies, the compiled files and the record of both.

The record vouches for a compiled file by its SHA-256, and is written before the file is touched, so
that it never vouches for what a run that was killed has left.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from convattn.files import write_file
from convattn.ledger.coq.project import PROJECT, Project, digest

_SUFFIXES = frozenset({".v", ".vo", ".vos", ".vok", ".vio", ".glob"})


class ForeignFiles(Exception):
    """The folder for the copies has Coq files that were not put there by a run."""


@dataclass(frozen=True)
class Entry:
    """What is known of a compiled file.

    Attributes:
        key: What it was compiled from.
        seconds: How long that took.
        compiled: Its SHA-256.
    """

    key: str
    seconds: float
    compiled: str


class Record:
    """The record ``output/compiled.json`` of the compiled files under ``output/coq/``."""

    def __init__(self, output: Path, files: Iterable[str]) -> None:
        """Read what is recorded of these files; what makes no sense counts as absent."""
        self._path, self._tree = output / "compiled.json", output / "coq"
        try:
            read = json.loads(self._path.read_text("utf-8"))
        except (OSError, ValueError, RecursionError):
            read = {}
        read = read if isinstance(read, dict) else {}
        found = {file: _entry(read.get(file)) for file in files}
        self._entries = {file: entry for file, entry in found.items() if entry is not None}

    def find(self, file: str, key: str) -> Entry | None:
        """The entry of a file, if it is compiled from what the key says.

        Args:
            file: The source.
            key: What it would be compiled from now.
        """
        entry = self._entries.get(file)
        if entry is None or entry.key != key or entry.compiled != self._digest(file):
            return None
        return entry

    def forget(self, file: str) -> None:
        """Vouch no longer for a file, which is about to be compiled.

        Args:
            file: The source.
        """
        if self._entries.pop(file, None) is not None:
            self._write()
        (self._tree / file).with_suffix(".vo").unlink(missing_ok=True)

    def add(self, file: str, key: str, seconds: float) -> Entry:
        """Vouch for a file that was compiled.

        Args:
            file: The source.
            key: What it was compiled from.
            seconds: How long that took.
        """
        entry = self._entries[file] = Entry(key, seconds, self._digest(file))
        self._write()
        return entry

    def _digest(self, file: str) -> str:
        try:
            return digest((self._tree / file).with_suffix(".vo").read_bytes())
        except OSError:
            return "absent"

    def _write(self) -> None:
        entries = {file: asdict(entry) for file, entry in sorted(self._entries.items())}
        write_file(self._path, json.dumps(entries, indent=1).encode())


def copy(project: Project, output: Path) -> None:
    """Bring the copy of the sources up to date; no other source stays, nor what was compiled of it.

    Args:
        project: The sources.
        output: The folder; they are copied to ``output/coq/``.

    Raises:
        ForeignFiles: If others are there, and no record that a run has put them there.
    """
    tree, record = output / "coq", output / "compiled.json"
    stems = {Path(file).with_suffix("") for file in project.files}
    for path in sorted(tree.rglob("*")):
        if path.suffix not in _SUFFIXES or path.relative_to(tree).with_suffix("") in stems:
            continue
        if path.is_dir() and not path.is_symlink():
            continue
        if not record.is_file():
            raise ForeignFiles(f"{path} was not put there by convattn prove, which would remove it")
        path.unlink()
    tree.mkdir(parents=True, exist_ok=True)
    if not record.is_file():
        write_file(record, b"{}")
    for file, content in project.sources.items():
        path = tree / file
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_file() or path.read_bytes() != content:
            path.write_bytes(content)
    if PROJECT not in project.sources:
        (tree / PROJECT).unlink(missing_ok=True)


def _entry(read: object) -> Entry | None:
    match read:
        case {"key": str(key), "seconds": int(seconds) | float(seconds), "compiled": str(compiled)}:
            return Entry(key, float(seconds), compiled)
    return None
