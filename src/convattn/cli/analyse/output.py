"""What the commands of `experiments/analyse.py` share: their arguments, and where results go."""

import os
from pathlib import Path
from typing import Annotated, Any

import tyro

from convattn.cli.output import require_writable, write_json
from convattn.cli.running import SUCCESS, UsageError

PROGRAM = "experiments/analyse.py"
FAILED = 1
Run = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
Runs = Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUN [RUN …]")]
Folder = Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="")]
JsonFile = Annotated[Path | None, tyro.conf.arg(metavar="FILE", help_behavior_hint="")]


def require_runs(runs: tuple[Path, ...]) -> None:
    """Refuse to do nothing.

    Raises:
        UsageError: As described above.
    """
    if not runs:
        raise UsageError("no RUN was given; name the folder of at least one run")


def require_file(path: Path | None) -> None:
    """Refuse a `--json` that could not be written in the end.

    Raises:
        UsageError: As described above.
    """
    if path is not None:
        require_writable(path, "--json")


def require_folder(path: Path | None) -> None:
    """Refuse an `--output-dir` that cannot be a folder.

    Raises:
        UsageError: As described above.
    """
    if path is None:
        return
    for place in (path, *path.parents):
        if place.exists() or place.is_symlink():
            if not place.is_dir():
                raise UsageError(
                    f"--output-dir got {path}, but {place} is a file; give a folder, or a name "
                    "that is free"
                )
            if not os.access(place, os.W_OK):
                raise UsageError(f"--output-dir got {path}, but {place} may not be written into")
            return


def write_numbers(path: Path | None, document: dict[str, Any]) -> None:
    """Write what `--json` asks for."""
    if path is not None:
        write_json(path, document)


def save(figure: Any, run: Path, folder: Path | None, name: str) -> int:
    """Write a picture into a folder, or the run's, and say where it is."""
    from convattn.lab.analysis.picture import save_picture

    for path in save_picture(figure, run / "figures" if folder is None else folder, name):
        print(path)
    return SUCCESS
