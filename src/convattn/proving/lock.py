"""One run at a time compiles in a folder.

The lock is the system's, on the file `lock`, and ends with the process that holds it and every
``coqc`` that it has started, however they end; the file stays, and means nothing. Where the system
or the file system has no such locks, nothing is locked.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FILE_NAME = "lock"


class InUse(Exception):
    """Another run is at work in the folder; the message is the id of its process."""


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Hold a folder.

    Args:
        folder: It must be there.

    Raises:
        InUse: If another process, or another call in this one, holds it.
    """
    with (folder / FILE_NAME).open("a+") as file:
        if not _taken(file.fileno()):
            file.seek(0)
            raise InUse(file.read().strip() or "?")
        os.set_inheritable(file.fileno(), True)
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
