"""A folder or a tar archive, seen as named byte strings; nothing is ever extracted.

A tar archive (plain, gzip, bzip2 or xz) is decompressed in memory, to its last byte, so that a
checksum at its end is checked, and to no more than a limit. Links, devices, sparse files and names
that are absolute or lead out are refused, as are headers that take `tarfile` long. A folder's files
are read when they are asked for; links in it are followed. An empty folder within either is
refused. Hidden files (a name that starts with a dot) are left out.
"""

import bz2
import gzip
import io
import lzma
import os
import re
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from convattn.files import most_unpacked, shown
from convattn.ledger.images.cifar10_slice import DataIntegrityError

LARGEST_TAR = 4 * 2**30  # bytes, decompressed
MOST_FILES = 2_000_000
LONGEST_HEADER = 2**15
DEPTH = 4  # wrapper/train/CLASS/image.png
MOST_PARTS = 32  # of a name in an archive, with folders around all of it
MOST_RECORDS = 32  # of an extended header, and of all those that hold for the whole archive
_NUMBER = re.compile(rb"[0-9]{64}")  # no header has so long a one
_EXTENDED = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE)
_LONG = (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)
_RECORD = re.compile(rb"([1-9][0-9]{0,8}) ")

_OPENERS: dict[bytes, Any] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
}
_BROKEN = (
    *(tarfile.TarError, EOFError, OSError, zlib.error, lzma.LZMAError, ValueError),
    RecursionError,  # of tarfile, from headers that announce headers
)


class _Headers(io.BytesIO):
    """Of an archive only headers are read through it; some take `tarfile` long to parse.

    Its expressions for extended headers take a time that grows with the square of the length, of
    digits in a row or of records that are no records, and there can be any number of headers. So
    only records as the format has them are let through, and no map of a sparse file.
    """

    _kind = b""  # of the header whose data are read next
    _lasting = 0  # records that hold for all members that follow: each keeps a copy of them

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or not 0 <= size <= LONGEST_HEADER:
            raise DataIntegrityError(f"a header claims {size:,} bytes")
        found = super().read(size)
        before, self._kind = self._kind, b""
        if before in _EXTENDED:
            records = _require_records(found)
            self._lasting += records * (before == tarfile.XGLTYPE)
            if max(records, self._lasting) > MOST_RECORDS:
                raise DataIntegrityError(f"extended headers of more than {MOST_RECORDS} records")
        elif not before and len(found) == tarfile.BLOCKSIZE:
            kind = found[156:157]
            if kind == tarfile.GNUTYPE_SPARSE:
                name = found[:100].partition(b"\0")[0].decode("utf-8", "replace")
                raise DataIntegrityError(f"the member {name!r} is a sparse file")
            self._kind = kind if kind in (*_EXTENDED, *_LONG) else b""
        return found


def _require_records(content: bytes) -> int:
    """How many records, "LENGTH KEY=VALUE\\n", an extended header is made of, with zeros after."""
    at = records = 0
    while at < len(content) and content[at]:
        length = _RECORD.match(content, at)
        record = content[at : at + int(length[1])] if length else b""
        key, equals, _ = record.partition(b" ")[2].partition(b"=")
        if not equals or not record.endswith(b"\n"):
            raise DataIntegrityError("an extended header is not made of records")
        if key.startswith(b"GNU.sparse."):
            raise DataIntegrityError("a member is a sparse file")
        at, records = at + len(record), records + 1
    if _NUMBER.search(content):
        raise DataIntegrityError("an extended header has a number of 64 digits or more")
    return records


class FolderFiles(Mapping[str, bytes]):
    """The files below a folder, by their name relative to it; the bytes are read on demand."""

    def __init__(self, folder: Path) -> None:
        """List the files, at most `DEPTH` levels down; links are followed."""
        self._paths: dict[str, Path] = {}
        for place, folders, files in os.walk(folder, followlinks=True):
            below = Path(place).relative_to(folder)
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            if len(below.parts) >= DEPTH:
                raise DataIntegrityError(
                    f"{place}: is a folder {DEPTH} levels down, but only files were expected there"
                    "; give the path of the folder that holds the set itself"
                )
            shown = sorted(name for name in files if not name.startswith("."))
            if below.parts and not folders and not shown:
                raise _empty(folder, below.as_posix())
            for name in shown:
                if not (path := Path(place, name)).is_file():
                    raise DataIntegrityError(
                        f"{path}: is a broken link, a pipe or a device, but files and folders were "
                        "expected; copy what it stands for, or remove it"
                    )
                self._paths[(below / name).as_posix()] = path
            _refuse_more_than(MOST_FILES, len(self._paths), folder)

    def __getitem__(self, name: str) -> bytes:
        return self._paths[name].read_bytes()

    def __contains__(self, name: object) -> bool:
        return name in self._paths

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)


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
    if path.is_file():
        return _without_wrapper(_read_tar(path, limit))
    if path.exists() and not path.is_dir():
        raise DataIntegrityError(
            f"{path}: is a pipe or a device, but a folder or a tar archive was expected; copy it "
            "into a file first"
        )
    if not path.exists():
        raise FileNotFoundError(
            f"{path}: no such file or folder; a folder or a tar archive was expected"
        )
    for _ in range(DEPTH):
        shown = [entry for entry in path.iterdir() if not entry.name.startswith(".")]
        if len(shown) != 1 or not shown[0].is_dir() or shown[0].name in ("train", "test"):
            break
        (path,) = shown
    return FolderFiles(path)


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


def _read_tar(path: Path, limit: int) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    folders: set[str] = set()
    ended = 0  # the data of the last file
    limit = min(limit, most_unpacked(path.stat().st_size))
    try:
        whole = _decompressed(path, limit)
        with tarfile.open(fileobj=_Headers(whole), mode="r:") as tar:
            while (member := tar.next()) is not None:
                name = _checked(files, member, len(whole))
                if member.isdir():
                    folders.add(name)
                elif name:
                    start = member.offset_data
                    if start < ended:  # else a small archive may hold any number of large files
                        raise DataIntegrityError(
                            f"the member {shown(name)} begins within the one before"
                        )
                    ended = start + member.size
                    files[name] = whole[start:ended]
                    _refuse_more_than(MOST_FILES, len(files), path)
            end = whole[tar.offset :][: tarfile.BLOCKSIZE]
    except _BROKEN as error:
        raise DataIntegrityError(
            f"{path}: cannot be read as a tar archive ({error or type(error).__name__}), but a "
            "complete .tar, .tar.gz, .tar.bz2 or .tar.xz of regular files, or a folder, was "
            "expected; copy or download it again if it was cut short, or unpack it and pass the "
            "folder"
        ) from error
    # tarfile takes a broken header for the end of the archive; at a real end are blocks of zeros.
    if end != tarfile.NUL * tarfile.BLOCKSIZE:
        raise DataIntegrityError(
            f"{path}: the members end without the mark of a tar archive's end; it was cut short or "
            "changed, so copy or download it again"
        )
    filled, inner = {""}, {*files}
    while inner := {name.rpartition("/")[0] for name in inner} - filled:
        filled |= inner
    for folder in sorted(folders - filled) if files else ():
        raise _empty(path, folder)
    return files


def _decompressed(path: Path, limit: int) -> bytes:
    with path.open("rb") as file:
        start = file.read(8)
        file.seek(0)
        opener = next((_OPENERS[mark] for mark in _OPENERS if start.startswith(mark)), None)
        found = (opener(file) if opener else file).read(limit + 1)
    if len(found) > limit:
        raise DataIntegrityError(f"it unpacks to more than {limit:,} bytes")
    return found


def _checked(files: Mapping[str, bytes], member: tarfile.TarInfo, length: int) -> str:
    """A member's name, "" if it is hidden.

    Raises:
        DataIntegrityError: it is no regular file or folder with a name of its own, or cut short.
    """
    if member.name.count("/") > LONGEST_HEADER // 64 or "\0" in member.name:
        raise DataIntegrityError(f"a member has the name {shown(member.name)}")
    parts = PurePosixPath(member.name).parts
    name = "" if any(part.startswith(".") for part in parts if part != "..") else "/".join(parts)
    if member.name.startswith("/") or ".." in parts or "\\" in member.name:
        problem = "leads out of the archive"
    elif name and len(parts) > MOST_PARTS:
        problem = f"is {len(parts) - 1} folders deep, but {MOST_PARTS - 1} are the most"
    elif not (member.isdir() or member.isreg()):
        problem = "is a link or a device"
    elif member.isreg() and not 0 <= member.size <= length - member.offset_data:
        problem = f"claims {member.size:,} bytes, more than there are: it was cut short"
    elif name in files:
        problem = "is there twice"
    else:
        return name
    raise DataIntegrityError(f"the member {shown(member.name)} {problem}")


def _refuse_more_than(most: int, count: int, path: Path) -> None:
    if count > most:
        raise DataIntegrityError(
            f"{path}: more than {most:,} files, too many for a set of images; was another folder "
            "meant?"
        )
