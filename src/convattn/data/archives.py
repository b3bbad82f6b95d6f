"""A folder or a tar archive, seen as named byte strings; nothing is ever extracted.

A tar archive (plain, gzip, bzip2 or xz) is read once, from its first byte to its last, so that a
checksum at its end is checked too, and its regular files are kept in memory. Links and devices in
it are refused, as are names that lead out of it. A folder's files are read when they are asked for.
Hidden files (a name that starts with a dot) are left out of both.
"""

import bz2
import gzip
import lzma
import os
import tarfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from io import BufferedIOBase
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast

from convattn.data.integrity import DataIntegrityError

LARGEST_TAR = 4 * 2**30  # bytes, decompressed
MOST_FILES = 2_000_000
DEPTH = 4  # wrapper/train/CLASS/image.png

_OPENERS: tuple[tuple[bytes, Callable[[Path], BufferedIOBase]], ...] = (
    (b"\x1f\x8b", gzip.GzipFile),
    (b"BZh", bz2.BZ2File),
    (b"\xfd7zXZ\x00", lzma.LZMAFile),
)
_BROKEN = (tarfile.TarError, EOFError, OSError, zlib.error, lzma.LZMAError, ValueError)


class FolderFiles(Mapping[str, bytes]):
    """The files below a folder, by their name relative to it; the bytes are read on demand."""

    def __init__(self, folder: Path) -> None:
        """List the files, at most `DEPTH` levels down; links are followed."""
        self.folder = folder
        self._names: dict[str, None] = {}
        self._list(folder, "", DEPTH)

    def _list(self, folder: Path, prefix: str, depth: int) -> None:
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if entry.name.startswith("."):
                    continue
                if entry.is_file():
                    self._names[prefix + entry.name] = None
                elif depth > 1 and entry.is_dir():
                    self._list(Path(entry.path), f"{prefix}{entry.name}/", depth - 1)
                _refuse_more_than(MOST_FILES, len(self._names), self.folder)

    def __getitem__(self, name: str) -> bytes:
        if name not in self._names:
            raise KeyError(name)
        return (self.folder / name).read_bytes()

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class _Bounded:
    """A stream that counts what was read and refuses to go on past a limit."""

    def __init__(self, stream: BufferedIOBase, path: Path, limit: int) -> None:
        self.stream, self.path, self.limit, self.count = stream, path, limit, 0
        self.block = b""

    def read(self, size: int) -> bytes:
        block = self.block = self.stream.read(size)
        self.count += len(block)
        if self.count > self.limit:
            raise DataIntegrityError(
                f"{self.path}: more than {self.limit:,} bytes when decompressed, which is not read "
                "into memory; unpack it and pass the folder"
            )
        return block


def open_files(path: Path, *, limit: int = LARGEST_TAR) -> Mapping[str, bytes]:
    """The files in a folder or a tar archive, by name, without a folder that holds everything.

    Args:
        path: a folder, or a tar archive: plain or compressed with gzip, bzip2 or xz, whatever its
            name ends with.
        limit: the number of bytes that a tar archive may have when decompressed.

    Returns:
        File names with forward slashes to bytes. A folder around all of it is dropped from the
        names, unless it is called train or test.

    Raises:
        FileNotFoundError: nothing is there.
        DataIntegrityError: no tar archive, one that is cut short or corrupted, has a link, a device
            or a name with "..", names a file twice, or is larger than `limit`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     inner = Path(folder, "images", "train")
    ...     inner.mkdir(parents=True)
    ...     _ = (inner / "one.txt").write_bytes(b"content")
    ...     dict(open_files(Path(folder)))
    {'train/one.txt': b'content'}
    """
    if not path.exists():
        raise FileNotFoundError(
            f"{path}: no such file or folder; a folder or a tar archive was expected"
        )
    if not path.is_dir():
        return _without_wrapper(_read_tar(path, limit))
    for _ in range(DEPTH):
        only = _only_folder(path)
        if only is None or only.name in ("train", "test"):
            break
        path = only
    return FolderFiles(path)


def _only_folder(folder: Path) -> Path | None:
    shown = [entry for entry in folder.iterdir() if not entry.name.startswith(".")]
    return shown[0] if len(shown) == 1 and shown[0].is_dir() else None


def _without_wrapper(files: dict[str, bytes]) -> dict[str, bytes]:
    while True:
        first = {name.partition("/")[0] for name in files}
        if len(first) != 1 or first & {"train", "test"} or first & set(files):
            return files
        files = {name.partition("/")[2]: content for name, content in files.items()}


def _open_stream(path: Path) -> BufferedIOBase:
    with path.open("rb") as file:
        start = file.read(8)
    for magic, opener in _OPENERS:
        if start.startswith(magic):
            return opener(path)
    return path.open("rb")


def _read_tar(path: Path, limit: int) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    try:
        with _open_stream(path) as stream:
            bounded = _Bounded(stream, path, limit)
            with tarfile.open(fileobj=bounded, mode="r|") as tar:  # type: ignore[call-overload]
                while (member := tar.next()) is not None:
                    tar.members = []  # or it keeps all of them
                    _add(files, path, tar, member, limit)
                end = bounded.block[tar.offset - bounded.count + len(bounded.block) :]
            while bounded.read(2**20):
                pass
    except DataIntegrityError:
        raise
    except _BROKEN as error:
        raise DataIntegrityError(
            f"{path}: can't be read as a tar archive ({error or type(error).__name__}); a complete "
            ".tar, .tar.gz, .tar.bz2 or .tar.xz, or a folder, was expected: it may be cut short, "
            "so copy or download it again"
        ) from error
    # tarfile takes a broken header for the end of the archive; at a real end are blocks of zeros.
    if end[: tarfile.BLOCKSIZE] != tarfile.NUL * tarfile.BLOCKSIZE:
        raise DataIntegrityError(
            f"{path}: the members end without the mark of a tar archive's end; it was cut short or "
            "changed, so copy or download it again"
        )
    return files


def _add(
    files: dict[str, bytes], path: Path, tar: tarfile.TarFile, member: tarfile.TarInfo, limit: int
) -> None:
    """One member's bytes into `files`, unless it is a folder or hidden."""
    parts = PurePosixPath(member.name).parts
    if member.name.startswith("/") or ".." in parts or "\\" in member.name:
        raise DataIntegrityError(
            f"{path}: the member {member.name!r} leads out of the archive; relative names without "
            "'..' were expected: don't trust where it comes from"
        )
    if member.isdir() or any(part.startswith(".") for part in parts):
        return
    if not member.isreg():
        raise DataIntegrityError(
            f"{path}: the member {member.name!r} is a link or a device; only regular files are "
            "read: pack it with `tar --dereference`"
        )
    name = "/".join(parts)
    if name in files:
        raise DataIntegrityError(
            f"{path}: the member {name!r} is there twice, and which one counts is unclear; pack "
            "the archive again"
        )
    if member.size > limit:  # a sparse member may claim more than the archive holds
        raise DataIntegrityError(
            f"{path}: the member {name!r} claims {member.size:,} bytes, but {limit:,} are the most "
            "that is read"
        )
    files[name] = cast(BinaryIO, tar.extractfile(member)).read()
    _refuse_more_than(MOST_FILES, len(files), path)


def _refuse_more_than(most: int, count: int, path: Path) -> None:
    if count > most:
        raise DataIntegrityError(
            f"{path}: more than {most:,} files, too many for a set of images; was another folder "
            "meant?"
        )
