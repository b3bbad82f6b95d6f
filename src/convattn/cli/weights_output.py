"""The file of weights that ``convattn convert`` writes, whichever way it goes."""

import os.path
from pathlib import Path
from typing import Any

from convattn.cli.consoles import console
from convattn.cli.output_file import require_writable, write_json
from convattn.cli.usage import UsageError

SUFFIXES = (".safetensors", ".npz")


def prepare_output(
    weights: Path, output: Path | None, kind: str, json: Path | None, others: dict[str, Path | None]
) -> Path:
    """The file to write, refused before the work starts if it could not be written.

    Args:
        weights: What is read.
        output: What ``--output`` says.
        kind: What the default name says of the content.
        json: What ``--json`` says.
        others: Further files that are read, by their options.

    Raises:
        UsageError: If it could not be written, has another ending, or is a file that is read, and
            if what is read is a directory.
    """
    if os.path.isdir(weights):  # which, unlike Path.is_dir, never raises
        raise UsageError(f"cannot read {weights}: it is a directory, but expected a file")
    target = output or weights.with_name(f"{weights.stem}.{kind}{SUFFIXES[0]}")
    if target.suffix not in SUFFIXES:
        raise UsageError(f"--output got {target}, but expected a name in {' or '.join(SUFFIXES)}")
    require_writable(target, "--output")
    require_distinct({"WEIGHTS": weights, **others, "--output": target, "--json": json})
    if json is not None:
        require_writable(json, "--json")
    return target


def finish(target: Path, passed: bool, json: Path | None, figures: dict[str, Any]) -> None:
    """Say whether the file was written, and write the figures.

    Args:
        target: The file.
        passed: Whether it was written.
        json: What ``--json`` says.
        figures: What it shall hold.
    """
    said = f"written to {target}" if passed else f"FAILED: nothing written to {target}"
    console().print(said, markup=False, soft_wrap=True)
    if json is not None:
        write_json(json, {"schema": 1, **figures, "written": passed})


def require_distinct(paths: dict[str, Path | None]) -> None:
    """Refuse to read and write one file, or to write two outputs to one.

    Args:
        paths: The files, by their options.

    Raises:
        UsageError: If two of the named paths are the same file.
    """
    seen: dict[Path, str] = {}
    for name, path in paths.items():
        if path is None:
            continue
        resolved = path.resolve()
        if resolved in seen and {name, seen[resolved]} & {"--output", "--json"}:
            raise UsageError(
                f"{name} and {seen[resolved]} are both {path}, but one would overwrite the other; "
                "name another file"
            )
        seen.setdefault(resolved, name)
