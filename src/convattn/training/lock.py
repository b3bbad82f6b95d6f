"""One process at a time trains in a folder.

The lock is the system's, on the file `lock`, and ends with the process that holds it, however that
ends; the file stays, and means nothing. Where the system or the file system has no such locks,
nothing is locked.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from convattn.training.failures import FolderInUse

FILE_NAME = "lock"


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Hold the folder of a run; it is made if it is missing.

    **Raises:** `FolderInUse` if another process, or another call in this one, holds it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / FILE_NAME).open("a+") as file:
        if not _taken(file.fileno()):
            file.seek(0)
            raise FolderInUse(
                f"process {file.read().strip() or '?'} is training in {folder}; wait for its end, "
                "stop it, or take another folder"
            )
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
