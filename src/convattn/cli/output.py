"""What a command prints, and the files that it writes.

Files are refused before the work starts if they could not be written in the end or would overwrite
what is read, and are never left half-written.
"""

import json
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from convattn.cli.running import FAILED, SUCCESS, UsageError, printable
from convattn.files import is_special, parse_json, read_file, write_file
from convattn.temporary import file_beside

PLAIN_WIDTH = 100
WEIGHTS = (".safetensors", ".npz")
PARTS_OF_A_RUN = (
    *("config.json", "run.json", "metrics.jsonl", "result.json", "initial.npz"),
    *("pruning.json", "conversion.json", "lock"),
    *(f"{folder}/**/*" for folder in ("checkpoints", "best", "snapshots")),
)


class _Console(Console):
    """A console whose reader may go away; rich would exit with 1, as if a check had failed."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console(stderr: bool = False) -> Console:
    """A console; where there is no terminal it prints plain text, 100 columns wide.

    Args:
        stderr: Whether to print to standard error.
    """
    file = sys.stderr if stderr else sys.stdout
    if file.isatty():
        return _Console(file=file, highlight=False, emoji=False)
    return _Console(
        file=file,
        width=PLAIN_WIDTH,
        force_terminal=False,
        color_system=None,
        highlight=False,
        emoji=False,
    )


def print_lines(lines: Iterable[str]) -> None:
    """Print lines as they are, without markup or line breaks of our own, nor those of names."""
    plain = console()
    for line in lines:
        plain.print(printable(line), markup=False, soft_wrap=True)


def require_outputs(
    outputs: Mapping[str, Path | None], inputs: Mapping[str, Path | Iterable[Path] | None]
) -> None:
    """Refuse outputs that could not be written, or would overwrite an input or each other.

    Paths are compared as files: a link to an input is that input.

    Args:
        outputs: What is to be written, by option.
        inputs: What is read, by option; of a folder the files in it.

    Raises:
        UsageError: As described above.
    """
    for option, path in outputs.items():
        if path is not None:
            require_writable(path, option)
    others = [
        (option, path)
        for option, paths in inputs.items()
        for path in ([paths] if isinstance(paths, Path) else paths or ())
    ]
    for option, path in outputs.items():
        if path is None:
            continue
        for other, read in others:
            if _same_file(path, read):
                where = path if path == read else f"{read}, the file of {path}"
                raise UsageError(
                    f"{option} and {other} are both {where}, but one would overwrite the other; "
                    "name another file"
                )
        others.append((option, path))


def require_outside(path: Path | None, option: str, folder: Path, folder_option: str) -> None:
    """Refuse an output in a folder whose files are a command's own, or in that folder's place.

    Args:
        path: The file to be written; None is not looked at.
        option: The option that names it, for the message.
        folder: Neither it nor the folders above it need be there.
        folder_option: The option that names the folder.

    Raises:
        UsageError: If the file is in the folder, is the folder, or is one above it.
    """
    if path is None:
        return
    file, own = (Path(os.path.realpath(each)) for each in (path, folder))
    if file.is_relative_to(own) or own.is_relative_to(file):
        raise UsageError(
            f"{option} got {path}, but expected a name outside of {folder}, the folder of "
            f"{folder_option}, whose files are its own; give another one"
        )


def weights_target(
    weights: Path,
    output: Path | None,
    content: str,
    others: Mapping[str, Path | None],
    json: Path | None,
) -> Path:
    """The file of weights to write, refused before the work starts if it could not be written.

    Args:
        weights: What is read.
        output: Where to write; None for the name of `weights` and `content`.
        others: What else is read, by option.

    Raises:
        UsageError: As described above.
    """
    if os.path.isdir(weights):  # which, unlike Path.is_dir, never raises
        raise UsageError(f"cannot read {weights}: it is a directory, but expected a file")
    target = output or weights.with_name(f"{weights.stem}.{content}{WEIGHTS[0]}")
    if target.suffix not in WEIGHTS:
        raise UsageError(f"--output got {target}, but expected a name in {' or '.join(WEIGHTS)}")
    require_outputs({"--output": target, "--json": json}, {"WEIGHTS": weights, **others})
    return target


def run_files(folder: Path) -> list[Path]:
    """The files of a run, and of its images, that no command may overwrite.

    Args:
        folder: Of the run.
    """
    files = [path for pattern in PARTS_OF_A_RUN for path in folder.glob(pattern) if path.is_file()]
    try:
        source = parse_json(read_file(folder / "config.json"))["images"]["source"]
        return [*files, Path(source)]
    except (OSError, KeyError, TypeError, ValueError):  # no run, or one on the bundled images
        return files


def _same_file(one: Path, other: Path) -> bool:
    try:
        return one.resolve() == other.resolve() or os.path.samefile(one, other)
    except (OSError, RuntimeError, ValueError):  # not there yet, a loop of links, or no name
        return False


def require_folder(folder: Path | None, option: str = "--output-dir") -> None:
    """Refuse a folder for results that could not be made or written into.

    Args:
        folder: It and those above it need not be there; None is not looked at.
        option: The option that names it, for the message.

    Raises:
        UsageError: If a file stands in its place or above it, or writing is not allowed.
    """
    for path in () if folder is None else (folder, *folder.parents):
        if path.exists() or path.is_symlink():
            if not path.is_dir():
                raise UsageError(
                    f"{option} got {folder}, but {path} is a file; give a folder, or a name "
                    "that is free"
                )
            if not os.access(path, os.W_OK):
                raise UsageError(f"{option} got {folder}, but {path} may not be written into")
            return


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
        with file_beside(path):
            pass
    except OSError as error:
        raise UsageError(f"{option} got {path}, but {error.strerror}: {path.parent}") from error


def write_json(path: Path | None, document: Mapping[str, Any]) -> None:
    """Write a document as indented JSON; NaN and infinities are refused, not written.

    Args:
        path: The file; nothing is written without one.
        document: What `json.dumps` takes.

    Raises:
        ValueError: If a number is not finite.
    """
    if path is not None:
        text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
        write_file(path, f"{text}\n".encode("utf-8", "backslashreplace"))


def described(arrays: dict[str, Any]) -> dict[str, Any]:
    """Shapes and dtypes, as JSON holds them."""
    return {
        name: {"shape": list(array.shape), "dtype": str(array.dtype)}
        for name, array in arrays.items()
    }


def array_lines(arrays: dict[str, Any]) -> list[str]:
    """A line for each of the `described` arrays."""
    return [
        f"  {name}  {tuple(array['shape'])}  {array['dtype']}" for name, array in arrays.items()
    ]


def finish(
    target: Path,
    content: bytes,
    passed: bool,
    json: Path | None,
    numbers: dict[str, Any],
    lines: list[str],
) -> int:
    """Print what came of a conversion, write the file if it passed, and the numbers.

    Returns:
        The exit code.
    """
    print_lines(lines)
    if passed:
        write_file(target, content)
    said = f"written to {target}" if passed else f"FAILED: nothing written to {target}"
    print_lines([said])
    if json is not None:
        write_json(json, {"schema": 1, **numbers, "written": passed})
    return SUCCESS if passed else FAILED
