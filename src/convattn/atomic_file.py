"""Files that are either the old ones or the new ones, never half-written."""

import os
import tempfile
from pathlib import Path


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
