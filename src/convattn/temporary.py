"""Files and folders that a process has for a while, and that the next one removes if it is killed.

Each is locked by the process that made it, as long as it has it; the system ends the lock with the
process. One that nobody holds was left by a process that was killed, and is removed by the next
that makes one of the same name. Where there are no locks, what was left stays.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

LOCK_NAME = "lock"  # in a folder, the file that is locked
ENDING = ".part"
ALONE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)  # no link, and no pipe


def lock(descriptor: int) -> bool | None:
    """Lock a file for this process, and those that inherit the descriptor.

    Returns:
        Whether it is locked now, and not by another one; None if there are no locks.
    """
    try:
        import fcntl
    except ImportError:  # no POSIX system
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return None
    return True


@contextmanager
def file_beside(path: Path) -> Iterator[str]:
    """A new, empty file in the folder of another, for what is to take its place.

    Args:
        path: The other; it need not be there.

    Yields:
        Its name. What has that name in the end is removed.

    Raises:
        OSError: If it cannot be made; it names `path`.
    """
    _remove_beside(path)
    try:
        name, descriptor = _held_file(path)
    except OSError as problem:
        raise OSError(problem.errno, problem.strerror, str(path)) from problem
    try:
        yield name
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name)
        if descriptor is not None:
            os.close(descriptor)


def is_beside(name: str, others: Collection[str]) -> bool:
    """Whether a name is that of a file beside one of the others, left by a process that was killed.

    >>> is_beside(".config.json.0a_b1c2d.part", ["config.json"])
    True
    >>> is_beside(".config.json.original", ["config.json"])
    False
    """
    match = re.fullmatch(rf"\.(.+)\.[a-z0-9_]{{8}}{re.escape(ENDING)}", name, re.DOTALL)
    return match is not None and match[1] in others


def _held_file(path: Path) -> tuple[str, int | None]:
    while True:
        descriptor, name = tempfile.mkstemp(ENDING, f".{path.name}.", path.parent)
        locked = lock(descriptor)
        if locked and os.path.exists(name):
            return name, descriptor
        os.close(descriptor)
        if locked is None:
            return name, None
        # Another process took it for one that was left.


def _remove_beside(path: Path) -> None:
    """Remove what killed processes have left beside a file."""
    names: list[str] = []
    with suppress(OSError), os.scandir(path.parent) as entries:
        names = [entry.path for entry in entries if is_beside(entry.name, [path.name])]
    for name in names:
        with suppress(OSError):
            descriptor = os.open(name, os.O_RDWR | ALONE)
            try:
                if lock(descriptor):
                    os.unlink(name)
            finally:
                os.close(descriptor)


@contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """A new folder where the system has such, removed in the end.

    Args:
        prefix: Its name begins with it; what else does there, and is a folder of this user's that
            nobody holds, is removed first.
    """
    for left in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        _remove_left(left)
    folder, descriptor = _held_folder(prefix)
    try:
        yield folder
    finally:
        _remove_folder(folder)
        os.close(descriptor)


def _held_folder(prefix: str) -> tuple[Path, int]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=prefix))
        with suppress(FileNotFoundError):  # another process took it for one that was left
            descriptor = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            if lock(descriptor) is not False and (folder / LOCK_NAME).exists():
                return folder, descriptor
            os.close(descriptor)


def _remove_left(folder: Path) -> None:
    """Remove a folder that nobody holds: one that is empty, too, as its maker holds it at once."""
    with suppress(OSError):
        owner = getattr(os, "getuid", None)
        if owner is None or folder.is_symlink() or folder.stat().st_uid != owner():
            return
        if not any(folder.iterdir()):
            folder.rmdir()
            return
        descriptor = os.open(folder / LOCK_NAME, os.O_RDWR | ALONE)
        try:
            if lock(descriptor):
                _remove_folder(folder)
        finally:
            os.close(descriptor)


def _remove_folder(folder: Path) -> None:
    """Remove a folder that this process holds, and last the file by which it does."""
    with suppress(OSError):
        for path in folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            elif path.name != LOCK_NAME:
                path.unlink()
        (folder / LOCK_NAME).unlink()
        folder.rmdir()
