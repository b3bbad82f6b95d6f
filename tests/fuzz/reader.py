"""What all readers of outside data share: their description, folders as inputs, and commands.

A reader whose input is a folder is given a ZIP archive of it. Where two readers read the same
format, they are compared, and `Disagreement` is raised if they differ.
"""

import contextlib
import functools
import io
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


class Disagreement(Exception):
    """Two readers of one format read different things, or only one of them refuses."""


@dataclass(frozen=True)
class Reader:
    """A reader of outside data.

    Attributes:
        name: What it is called on the command line.
        call: Reads one input; it may write below the folder that it is given.
        refusals: What it may raise.
        make_seeds: Inputs that it takes.
        folder: Whether an input is a ZIP archive that stands for a folder.
        allowed: Audit events that are its own, such as the connection to its own server.
    """

    name: str
    call: Callable[[bytes, Path], None]
    refusals: tuple[type[Exception], ...]
    make_seeds: Callable[[], list[bytes]]
    folder: bool = False
    allowed: tuple[str, ...] = ()

    @functools.cached_property
    def seeds(self) -> list[bytes]:
        """Inputs that it takes, made once."""
        return self.make_seeds()


def same(one: Any, other: Any, what: str) -> None:
    """Raise a `Disagreement` if two things that were read differ."""
    if one != other:
        raise Disagreement(f"{what}: {str(one)[:200]} and {str(other)[:200]}")


def chosen(content: bytes, one_in: int) -> bool:
    """Whether an input is one of the few for which a slow comparison is made."""
    return zlib.crc32(content) % one_in == 0


def packed(files: Mapping[str, bytes]) -> bytes:
    """A folder as an input."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return buffer.getvalue()


def folder_bytes(path: Path) -> bytes:
    """The same of a folder on the disk."""
    files = {
        p.relative_to(path).as_posix(): p.read_bytes()
        for p in sorted(path.rglob("*"))
        if p.is_file()
    }
    return packed(files)


def unpacked(content: bytes, folder: Path) -> Path:
    """The folder that an input stands for; names that lead out of it are left out."""
    folder = folder / "given"
    folder.mkdir()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for info in archive.infolist():
            parts = [part for part in info.filename.split("/") if part not in ("", ".", "..")]
            path = folder.joinpath(*parts)
            with contextlib.suppress(OSError, ValueError):  # a name that no file can have
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(archive.read(info))
    return folder


def command(folder: Path, content: bytes, *words: str) -> str:
    """What a command says of a file that it refuses; "" if it takes it.

    Raises:
        Disagreement: If it ends in any other way than commands do.
    """
    from convattn.cli.__main__ import main

    path = folder / "given"
    path.write_bytes(content)
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([*words[0].split(), str(path), *words[1:]])
    message = err.getvalue()
    if code not in (0, 1, 2) or (code == 2) != bool(message) or message.count("\n") > 1:
        raise Disagreement(f"{' '.join(words)} exits with {code} and says {message[:500]!r}")
    return message
