"""Files that a command writes: refused before the work starts, never left half-written."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from convattn.cli.usage import UsageError
from convattn.files import is_special
from convattn.files import write_file as write_file


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
    if is_special(path):
        return
    try:
        with tempfile.NamedTemporaryFile(prefix=f".{path.name}.", dir=path.parent):
            pass
    except OSError as error:
        raise UsageError(f"{option} got {path}, but {error.strerror}: {path.parent}") from error


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
