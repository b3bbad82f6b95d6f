"""One process at a time works in a folder.

The lock is the system's, on the file `lock`, and ends with the process that holds it, however that
ends; the file stays, and means nothing. Where the system or the file system has no such locks,
nothing is locked.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FILE_NAME = "lock"


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
