"""Files that are read and written whole, and folders that one process at a time works in.

A pipe or a device may never end, or never begin, and is not read. What a compressed file unpacks to
is bounded.

A file is written beside its place and renamed. The lock on a folder is the system's, on the file
`lock`, and ends with the process that holds it, however that ends; the file stays, and means
nothing. Where the system or the file system has no such locks, nothing is locked.

A folder may come from somebody else, and a link in it may lead anywhere. `lock_directory` refuses
one in which something is a symbolic link; `open_inside` opens, and `write_inside` replaces, only
what is a regular file of the folder itself.
"""

import errno
import json
import os
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from convattn.temporary import file_beside, is_beside, lock

FILE_NAME = "lock"
MAX_DIGITS = 20  # of an integer in a JSON file: 2^64 - 1 has as many
UNSUSPICIOUS, RATIO = 2**26, 100  # a larger compressed file unpacks to so many times its size


def read_file(path: Path, most: int | None = None) -> bytes:
    """The content of a regular file, or of a link to one.

    Args:
        path: The file.
        most: How many bytes are read at most; all if not given.

    Raises:
        OSError: If it is a pipe, a device or a folder, is missing, or cannot be read.
    """
    if is_special(path) and not path.is_dir():
        raise OSError(
            errno.EINVAL,
            "is a pipe or a device, but expected a file; copy it into a file first",
            str(path),
        )
    with path.open("rb") as file:
        return file.read(-1 if most is None else most)


def parse_json(content: str | bytes) -> Any:
    """What a JSON text holds.

    Raises:
        ValueError: If it is none, nests too deep, or has an integer of more than `MAX_DIGITS`
            digits, which no array and no computation here could hold.

    >>> parse_json("[1, 2.5]")
    [1, 2.5]
    """
    try:
        return json.loads(content, parse_int=_integer)
    except RecursionError as error:
        raise ValueError("its brackets nest too deep") from error


def _integer(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise ValueError(f"it has an integer of {len(text)} digits, expected up to {MAX_DIGITS}")
    return int(text)


SCRIPT_FOLLOWS = "convert it with this script:\n\n"  # the end of a message before its lines


def brief(value: object, most: int = 200) -> str:
    """What a message shows of something that a file holds: as Python writes it, cut if it is long.

    >>> brief("ab"), brief("ab" * 200, 10)
    ("'ab'", "'ababababa… (402 characters)")
    """
    text = repr(value)
    return text if len(text) <= most else f"{text[:most]}… ({len(text):,} characters)"


def most_unpacked(size: int) -> int:
    """To how many bytes a compressed file of so many may unpack: 64 MiB, or 100 times its size.

    >>> most_unpacked(10), most_unpacked(10**9)
    (67108864, 100000000000)
    """
    return max(UNSUSPICIOUS, RATIO * size)


def write_file(path: Path, content: bytes) -> None:
    """Write beside the file and rename, so that the file is either the old one or the new one.

    A link is followed; a device or a pipe is written to directly.

    Args:
        path: The file.
        content: All of its new content.

    Raises:
        OSError: If it cannot be written; an existing file is then as it was. It names the file.
    """
    path = path.resolve()
    if is_special(path):
        path.write_bytes(content)
        return
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask()
    with file_beside(path) as name:
        try:
            with open(name, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(name, mode)
            os.replace(name, path)
        except OSError as problem:
            message = f"{problem.strerror}: it was not written, and what stood there is as it was"
            raise OSError(problem.errno, message, str(path)) from problem


@contextmanager
def filename_in_errors(path: Path) -> Iterator[None]:
    """Name the file in an error that does not, as on a full disk.

    Args:
        path: The file that is written meanwhile.

    Raises:
        OSError: What is raised within, with the file.
    """
    try:
        yield
    except OSError as problem:
        if problem.filename is not None:
            raise
        raise OSError(problem.errno, problem.strerror or str(problem), str(path)) from problem


def is_special(path: Path) -> bool:
    """Whether this is there and is a device, a pipe or a directory.

    Args:
        path: Any path.
    """
    return path.exists() and not path.is_file()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def open_inside(path: Path) -> int:
    """A descriptor to append to a file of a folder, and to read it; the file is made if missing.

    Args:
        path: The file. Its folder may be a link; the file may not.

    Raises:
        ValueError: If it is a link, also a hard one, or no regular file; nothing is written then.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_NONBLOCK", 0)
    try:
        descriptor = os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)
    except OSError as problem:
        if problem.errno not in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
            raise
        raise _not_inside(path) from problem
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        os.close(descriptor)
        raise _not_inside(path)
    return descriptor


def write_inside(path: Path, content: bytes) -> None:
    """`write_file` for a file of a folder.

    Args:
        path: The file. Its folder may be a link; the file may not.
        content: All of its new content.

    Raises:
        ValueError: If it is a symbolic link or no regular file; nothing is written then.
    """
    if path.is_symlink() or is_special(path):
        raise _not_inside(path)
    write_file(path, content)


def _not_inside(path: Path) -> ValueError:
    kind = "no regular file"
    if path.is_symlink():
        kind = "a symbolic link"
    elif path.is_file():
        kind = "one of several names of its file"
    return ValueError(
        f"{path} is {kind}, but expected a file of the folder itself; remove it, or take another "
        "folder"
    )


class DirectoryLockedError(ValueError):
    """Another process is at work in a folder.

    Attributes:
        process: Its id.
    """

    def __init__(self, folder: Path, process: str) -> None:
        self.process = process
        super().__init__(
            f"process {process} is at work in {folder}; wait for its end, stop it, or take another "
            "folder"
        )


def require_own(folder: Path, names: Collection[str]) -> None:
    """Refuse a folder that holds something else than files of these names, or is none.

    What a process that was killed left beside one of them is no other's.

    Raises:
        ValueError: Names what it holds, or why it cannot be read.
    """
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file, but expected a directory; name another one")
    try:
        stored_names = {path.name for path in folder.iterdir()} if folder.exists() else set()
    except OSError as error:
        raise ValueError(f"cannot use {folder}: {error.strerror}") from error
    others = sorted(name for name in stored_names - {*names} if not is_beside(name, names))
    if others:
        raise ValueError(
            f"{folder} holds {others[0]!r}, but expected a new directory, or one that an earlier "
            "run has written; name another one"
        )


@contextmanager
def lock_directory(folder: Path, inherited: bool = False) -> Iterator[None]:
    """Lock a directory; it is created if it is missing.

    Args:
        folder: Where one process at a time is to work.
        inherited: Whether the processes that are started meanwhile hold it, too.

    Raises:
        DirectoryLockedError: If another process, or another call in this one, holds it.
        ValueError: If something in it is a symbolic link, or `lock` no regular file of its own.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for inside, folders, names in os.walk(folder):
        for path in (Path(inside, name) for name in (*folders, *names)):
            if path.is_symlink():
                raise _not_inside(path)
    with os.fdopen(open_inside(folder / FILE_NAME), "ab+", buffering=0) as file:
        if lock(file.fileno()) is False:
            file.seek(0)
            owner = file.read(MAX_DIGITS).decode("ascii", "replace")
            raise DirectoryLockedError(folder, owner.strip() or "?")
        os.set_inheritable(file.fileno(), inherited)
        with filename_in_errors(folder / FILE_NAME):
            file.truncate(0)
            file.write(str(os.getpid()).encode())
        yield
