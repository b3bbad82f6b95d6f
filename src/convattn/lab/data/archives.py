"""A folder or a tar archive, seen as named byte strings; nothing is ever extracted.

A tar archive (plain, gzip, bzip2 or xz) is read once, from its first byte to its last, so that a
checksum at its end is checked too, and its regular files are kept in memory. What `tarfile`'s data
filter refuses is refused, as are links, sparse files and absolute names; and no more bytes are
unpacked than a member claims. A folder's files are read when they are asked for; links in it are
followed, and what is no file then, or deeper than a set of images is, is refused. An empty folder
within either is refused, as something is missing there. Hidden files (a name that starts with a
dot) are left out of both.
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

from convattn.ledger.images.cifar10_slice import DataIntegrityError

LARGEST_TAR = 4 * 2**30  # bytes, decompressed
UNSUSPICIOUS, RATIO = 2**26, 100  # a larger archive unpacks to at most so many times its size
HEADERS = 2**15  # bytes of headers before a member, at most, with what the reader takes in advance
MOST_FILES = 2_000_000
DEPTH = 4  # wrapper/train/CLASS/image.png

_OPENERS: tuple[tuple[bytes, Callable[[Path], BufferedIOBase]], ...] = (
    (b"\x1f\x8b", gzip.GzipFile),
    (b"BZh", bz2.BZ2File),
    (b"\xfd7zXZ\x00", lzma.LZMAFile),
)
_BROKEN = (
    *(tarfile.TarError, EOFError, OSError, zlib.error, lzma.LZMAError, ValueError),
    RecursionError,  # of tarfile, from headers that announce headers
)


class FolderFiles(Mapping[str, bytes]):
    """The files below a folder, by their name relative to it; the bytes are read on demand."""

    def __init__(self, folder: Path) -> None:
        """List the files, at most `DEPTH` levels down; links are followed."""
        self.folder = folder
        self._names: dict[str, None] = {}
        self._list(folder, "", DEPTH)

    def _list(self, folder: Path, prefix: str, depth: int) -> None:
        with os.scandir(folder) as found:
            entries = [entry for entry in found if not entry.name.startswith(".")]
        if prefix and not entries:
            raise _empty(self.folder, prefix)
        for entry in sorted(entries, key=lambda entry: entry.name):
            name = prefix + entry.name
            if entry.is_file():
                self._names[name] = None
            elif not entry.is_dir():
                raise DataIntegrityError(
                    f"{self.folder / name}: is a broken link, a pipe or a device, but files and "
                    "folders were expected; copy what it stands for, or remove it"
                )
            elif depth > 1:
                self._list(Path(entry.path), f"{name}/", depth - 1)
            else:
                raise DataIntegrityError(
                    f"{self.folder / name}: is a folder {DEPTH} levels down, but only files were "
                    "expected there; give the path of the folder that holds the set itself"
                )
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
    """A stream that refuses to be read past a limit, which moves from member to member."""

    def __init__(self, stream: BufferedIOBase) -> None:
        self.stream, self.count, self.limit, self.block = stream, 0, HEADERS, b""

    def allow(self, more: int) -> None:
        self.limit = self.count + more

    def read(self, size: int) -> bytes:
        self.block = self.stream.read(min(size, self.limit + 1 - self.count))
        self.count += len(self.block)
        if self.count > self.limit:
            raise DataIntegrityError("there are more bytes in it than its members claim")
        return self.block


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
        DataIntegrityError: no tar archive, one that is cut short or corrupted, has a link, a
            device, a sparse file or a name with "..", names a file twice, or is larger than
            `limit`; a folder with a broken link, a pipe or a device, or too deep; an empty folder
            in either.

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
    if not path.is_dir() and not path.is_file():
        raise DataIntegrityError(
            f"{path}: is a pipe or a device, but a folder or a tar archive was expected; copy it "
            "into a file first"
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


def _empty(path: Path, name: str) -> DataIntegrityError:
    return DataIntegrityError(
        f"{path}: the folder {name!r} in it holds no files, but some were expected; copy what is "
        "missing, or remove the folder"
    )


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
    folders: list[str] = []
    total = 0
    limit = min(limit, max(UNSUSPICIOUS, RATIO * path.stat().st_size))
    try:
        with _open_stream(path) as stream:
            bounded = _Bounded(stream)
            with tarfile.open(fileobj=bounded, mode="r|") as tar:  # type: ignore[call-overload]
                while (member := tar.next()) is not None:
                    tar.members = []  # or it keeps all of them
                    name, total = _checked(files, member, total, limit)
                    if member.isdir():
                        folders.append(name)
                        continue
                    bounded.allow(member.size + HEADERS)
                    content = cast(BinaryIO, tar.extractfile(member)).read()
                    bounded.allow(HEADERS)
                    if name:
                        files[name] = content
                        _refuse_more_than(MOST_FILES, len(files), path)
                end = bounded.block[tar.offset - bounded.count + len(bounded.block) :]
            bounded.allow(limit)
            while bounded.read(2**20):
                pass
    except _BROKEN as error:
        raise DataIntegrityError(
            f"{path}: cannot be read as a tar archive ({error or type(error).__name__}), but a "
            "complete .tar, .tar.gz, .tar.bz2 or .tar.xz of regular files, or a folder, was "
            "expected; copy or download it again if it was cut short, or unpack it and pass the "
            "folder"
        ) from error
    # tarfile takes a broken header for the end of the archive; at a real end are blocks of zeros.
    if end[: tarfile.BLOCKSIZE] != tarfile.NUL * tarfile.BLOCKSIZE:
        raise DataIntegrityError(
            f"{path}: the members end without the mark of a tar archive's end; it was cut short or "
            "changed, so copy or download it again"
        )
    filled = {str(parent) for name in files for parent in PurePosixPath(name).parents}
    for folder in folders:
        if files and folder and folder not in filled:
            raise _empty(path, folder)
    return files


def _checked(
    files: Mapping[str, bytes], member: tarfile.TarInfo, total: int, limit: int
) -> tuple[str, int]:
    """A member's name, "" if it is hidden, and the bytes of all members up to it.

    Raises:
        DataIntegrityError: it is no regular file or folder with a name of its own, or too large;
            `tarfile.FilterError` for what the data filter refuses.
    """
    parts = PurePosixPath(member.name).parts
    name = "" if any(part.startswith(".") for part in parts if part != "..") else "/".join(parts)
    size = 0 if member.isdir() else member.size
    if member.name.startswith("/") or ".." in parts or "\\" in member.name:
        problem = "leads out of the archive"
    elif not (member.isdir() or member.isreg()):
        problem = "is a link or a device"
    elif member.issparse():  # a few bytes in the archive may stand for any number of zeros
        problem = "is a sparse file"
    elif size < 0 or total + size > limit:
        problem = f"claims {size:,} bytes, {total + size:,} with the ones before, of {limit:,}"
    elif name in files:
        problem = "is there twice"
    else:
        tarfile.data_filter(member, "/")
        return name, total + size
    raise DataIntegrityError(f"the member {member.name!r} {problem}")


def _refuse_more_than(most: int, count: int, path: Path) -> None:
    if count > most:
        raise DataIntegrityError(
            f"{path}: more than {most:,} files, too many for a set of images; was another folder "
            "meant?"
        )
