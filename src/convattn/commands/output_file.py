"""Files that a command writes: refused before the work starts, never left half-written."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from convattn.commands.usage import UsageError


def require_writable(path: Path, option: str) -> None:
    """Refuse a path that could not be written in the end.

    Args:
        path: The file to be written; it may exist.
        option: The option that names it, for the message.

    Raises:
        UsageError: If it is a directory, its directory is missing, or writing is not allowed.
    """
    try:
        path = path.resolve()
    except (OSError, RuntimeError) as error:  # a loop of links
        raise UsageError(f"{option} got {path}, which cannot be resolved: {error}") from error
    if path.is_dir():
        raise UsageError(f"{option} got {path}, which is a directory, but expected a file")
    if not path.parent.is_dir():
        raise UsageError(f"{option} got {path}, but the directory {path.parent} does not exist")
    if path.exists() and not os.access(path, os.W_OK):
        raise UsageError(f"{option} got {path}, which may not be written")
    if _is_special(path):
        return
    try:
        with tempfile.NamedTemporaryFile(prefix=f".{path.name}.", dir=path.parent):
            pass
    except OSError as error:
        raise UsageError(f"{option} got {path}, but {error.strerror}: {path.parent}") from error


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
    if _is_special(path):
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


def write_json(path: Path, document: dict[str, Any]) -> None:
    """Write a document as indented JSON; NaN and infinities are refused, not written.

    Args:
        path: The file.
        document: What `json.dumps` takes.

    Raises:
        ValueError: If a number is not finite.
    """
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    write_file(path, f"{text}\n".encode("utf-8", "backslashreplace"))


def _is_special(path: Path) -> bool:
    return path.exists() and not path.is_file()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
