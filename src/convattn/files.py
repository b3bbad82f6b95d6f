"""Files that are written whole or not at all, and folders that one process at a time works in.

A file is written beside its place and renamed. The lock on a folder is the system's, on the file
`lock`, and ends with the process that holds it, however that ends; the file stays, and means
nothing. Where the system or the file system has no such locks, nothing is locked.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FILE_NAME = "lock"


def write_file(path: Path, content: bytes) -> None:
    """Write beside the file and rename, so that the file is either the old one or the new one.

    A link is followed; a device or a pipe is written to directly.

    Args:
        path: The file.
        content: All of its new content.

    Raises:
        OSError: If it cannot be written; an existing file is then as it was.
    """
    path = path.resolve()
    if is_special(path):
        path.write_bytes(content)
        return
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask()
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, mode)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


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


class InUse(Exception):
    """Another process is at work in the folder; the message is its id."""


@contextmanager
def hold_folder(folder: Path, inherited: bool = False) -> Iterator[None]:
    """Hold a folder.

    Args:
        folder: It must be there.
        inherited: Whether the processes that are started meanwhile hold it, too.

    Raises:
        InUse: If another process, or another call in this one, holds it.
    """
    with (folder / FILE_NAME).open("a+") as file:
        if not _taken(file.fileno()):
            file.seek(0)
            raise InUse(file.read().strip() or "?")
        os.set_inheritable(file.fileno(), inherited)
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def _taken(descriptor: int) -> bool:
    """Whether the lock could be taken, or there are no locks."""
    try:
        import fcntl
    except ImportError:  # no POSIX system
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True
