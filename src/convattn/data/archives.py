"""A folder or a tar archive, seen as named byte strings; nothing is ever extracted.

A tar archive (plain, gzip, bzip2 or xz) is decompressed in memory, to its last byte, so that a
checksum at its end is checked, and to no more than a limit. Links, devices, sparse files and names
that are absolute or lead out are refused, as are headers that take `tarfile` long. A folder's files
are read when they are asked for; links in it are followed. An empty folder within either is
refused. Hidden files (a name that starts with a dot) are left out.

`tarfile.data_filter` is for what is extracted: it looks names up on this machine's disks, and it
comes after the headers were parsed.
"""

import bz2
import gzip
import io
import lzma
import re
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Self

from convattn.data.cifar10_slice import DataIntegrityError
from convattn.files import brief, most_unpacked

MAX_TAR = 4 * 2**30  # bytes, decompressed
MAX_FILES = 2_000_000
MAX_HEADER = 2**15
DEPTH = 4  # wrapper/train/CLASS/image.png
MAX_NAME_PARTS = 32  # of a name in an archive, with folders around all of it
MAX_RECORDS = 32  # of an extended header, and of all those that hold for the whole archive
_LONG = (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)
_EXTENDED = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE)
_RECORD = re.compile(rb"([1-9][0-9]{0,8}) ([^=]+)=")
_NUMBER = re.compile(rb"[0-9]{64}")  # no header has so long a one
_OPENERS: dict[bytes, Any] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
}
_BROKEN = (
    *(tarfile.TarError, EOFError, OSError, zlib.error, lzma.LZMAError, ValueError),
    RecursionError,  # of tarfile, from headers that announce headers
)


@dataclass(frozen=True)
class FolderFiles(Mapping[str, bytes]):
    """The files of a folder, by their name relative to it; the bytes are read on demand."""

    paths: dict[str, Path]

    def __getitem__(self, name: str) -> bytes:
        return self.paths[name].read_bytes()

    def __contains__(self, name: object) -> bool:
        return name in self.paths

    def __iter__(self) -> Iterator[str]:
        return iter(self.paths)

    def __len__(self) -> int:
        return len(self.paths)


def open_files(path: Path, *, limit: int = MAX_TAR) -> Mapping[str, bytes]:
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
    if path.is_dir():
        paths, folders = _read_folder(path)
        files: Mapping[str, bytes] = FolderFiles(paths)
    elif path.is_file():
        files, folders = _read_archive(path, limit)
    elif path.exists():
        raise DataIntegrityError(
            f"{path}: is a pipe or a device, but a folder or a tar archive was expected; copy it "
            "into a file first"
        )
    else:
        raise FileNotFoundError(
            f"{path}: no such file or folder; a folder or a tar archive was expected"
        )
    filled = {name[:end] for name in files for end, letter in enumerate(name) if letter == "/"}
    for folder in sorted(folders - filled):
        raise DataIntegrityError(
            f"{path}: the folder {folder!r} in it holds no files, but some were expected; copy "
            "what is missing, or remove the folder"
        )
    return files if path.is_dir() else _without_wrapper(files)


def _read_folder(folder: Path) -> tuple[dict[str, Path], set[str]]:
    """The files and the folders in a folder, or in one that is all it holds."""
    for _ in range(DEPTH):
        entries = list(folder.glob("[!.]*"))
        if len(entries) != 1 or not entries[0].is_dir() or entries[0].name in ("train", "test"):
            break
        (folder,) = entries
    files: dict[str, Path] = {}
    folders: set[str] = set()
    for depth in range(1, DEPTH + 1):
        for path in folder.glob("/".join(["[!.]*"] * depth)):
            name = path.relative_to(folder).as_posix()
            if path.is_file():
                files[name] = path
            elif not path.is_dir():
                raise DataIntegrityError(
                    f"{path}: is a broken link, a pipe or a device, but files and folders were "
                    "expected; copy what it stands for, or remove it"
                )
            elif depth == DEPTH:
                raise DataIntegrityError(
                    f"{path}: is a folder {DEPTH} levels down, but only files were expected there; "
                    "give the path of the folder that holds the set itself"
                )
            else:
                folders.add(name)
            if len(files) + len(folders) > MAX_FILES:
                raise DataIntegrityError(
                    f"{folder}: more than {MAX_FILES:,} files, too many for a set of images; was "
                    "another folder meant?"
                )
    return files, folders


def _read_archive(path: Path, limit: int) -> tuple[dict[str, bytes], set[str]]:
    """The files and the folders in a tar archive."""
    try:
        unpacked = _decompressed(path, min(limit, most_unpacked(path.stat().st_size)))
        with tarfile.open(fileobj=io.BytesIO(unpacked), mode="r:", tarinfo=_Member) as tar:
            files = _read_members(tar, unpacked)
            end = unpacked[tar.offset :][: tarfile.BLOCKSIZE]
        # tarfile takes a broken header for the end; at a real one are blocks of zeros.
        if end != tarfile.NUL * tarfile.BLOCKSIZE:
            raise DataIntegrityError("the members end without the mark of a tar archive's end")
    except _BROKEN as error:
        raise DataIntegrityError(
            f"{path}: cannot be read as a tar archive ({error or type(error).__name__}), but a "
            "complete .tar, .tar.gz, .tar.bz2 or .tar.xz of regular files, or a folder, was "
            "expected; copy or download it again if it was cut short, or unpack it and pass the "
            "folder"
        ) from error
    return files


def _decompressed(path: Path, limit: int) -> bytes:
    with path.open("rb") as file:
        start = file.read(8)
        file.seek(0)
        opener = next((_OPENERS[mark] for mark in _OPENERS if start.startswith(mark)), None)
        content: bytes = (opener(file) if opener else file).read(limit + 1)
    if len(content) > limit:
        raise DataIntegrityError(f"it unpacks to more than {limit:,} bytes")
    return content


def _read_members(tar: tarfile.TarFile, unpacked: bytes) -> tuple[dict[str, bytes], set[str]]:
    files: dict[str, bytes] = {}
    folders: set[str] = set()
    ended = 0  # the data of the last file
    for count, member in enumerate(tar, 1):
        if count > MAX_FILES:
            raise DataIntegrityError(f"more than {MAX_FILES:,} files")
        _require_few(len(tar.pax_headers))  # of which each member keeps a copy
        parts = PurePosixPath(member.name).parts
        name = "" if any(part.startswith(".") for part in parts) else "/".join(parts)
        start, end = member.offset_data, member.offset_data + member.size
        if member.name.startswith("/") or ".." in parts or {"\\", "\0"} & {*member.name}:
            problem = "leads out of the archive"
        elif name and len(parts) > MAX_NAME_PARTS:
            problem = f"is {len(parts) - 1} folders deep, but {MAX_NAME_PARTS - 1} are the most"
        elif member.isdir():
            folders.add(name)
            continue
        elif not member.isreg():
            problem = "is a link or a device"
        elif not start <= end <= len(unpacked):
            problem = f"claims {member.size:,} bytes, more than there are: it was cut short"
        elif start < ended:  # else a small archive may hold any number of large files
            problem = "begins within the one before"
        elif name in files:
            problem = "is there twice"
        else:
            ended = end
            if name:
                files[name] = unpacked[start:end]
            continue
        raise DataIntegrityError(f"the member {brief(member.name)} {problem}")
    return files, folders - {""}


def _without_wrapper(files: Mapping[str, bytes]) -> Mapping[str, bytes]:
    while True:
        first = {name.partition("/")[0] for name in files}
        if len(first) != 1 or first & {"train", "test", *files}:
            return files
        files = {name.partition("/")[2]: content for name, content in files.items()}


class _Member(tarfile.TarInfo):
    """A member whose headers are looked at before `tarfile` parses them.

    Its expressions for extended headers take a time that grows with the square of the length, of
    digits in a row or of records that are no records, and there can be any number of headers. So
    only records as the format has them are let through, and no map of a sparse file.
    """

    @classmethod
    def fromtarfile(cls, archive: tarfile.TarFile) -> Self:
        """The next member of an archive.

        Raises:
            DataIntegrityError: for a header that is refused.
        """
        file: Any = archive.fileobj
        start = file.tell()
        header = cls.frombuf(file.read(tarfile.BLOCKSIZE), archive.encoding, archive.errors)
        if header.type == tarfile.GNUTYPE_SPARSE:
            raise DataIntegrityError(f"the member {brief(header.name)} is a sparse file")
        if header.type in _EXTENDED + _LONG:
            if not 0 <= header.size <= MAX_HEADER:
                raise DataIntegrityError(f"a header claims {header.size:,} bytes")
            if header.type in _EXTENDED:
                _require_records(file.read(header.size))
        file.seek(start)
        return super().fromtarfile(archive)


def _require_records(content: bytes) -> None:
    """Refuse what is not records, "LENGTH KEY=VALUE\\n", with zeros after."""
    number, content, records = _NUMBER.search(content), content.rstrip(b"\0"), 0
    while content:
        record = _RECORD.match(content)
        end = int(record[1]) if record else 0
        if not record or record.end() >= end or content[end - 1 : end] != b"\n":
            raise DataIntegrityError("an extended header is not made of records")
        if record[2].startswith(b"GNU.sparse."):
            raise DataIntegrityError("a member is a sparse file")
        content, records = content[end:], records + 1
        _require_few(records)
    if number:
        raise DataIntegrityError("an extended header has a number of 64 digits or more")


def _require_few(records: int) -> None:
    if records > MAX_RECORDS:
        raise DataIntegrityError(f"extended headers of more than {MAX_RECORDS} records")
