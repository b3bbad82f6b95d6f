"""The command line of `experiments/cifar.py`: choose a config, override its fields, train."""

import datetime
import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal

import tyro

from convattn.commands.guard import SUCCESS, guarded
from convattn.commands.usage import UsageError
from convattn.runs.configs import find_configs, get_config
from convattn.runs.settings import RunSettings

DEFAULT = "slice"
PROGRAM = "experiments/cifar.py"
FAILED = 1
Archive = Literal["cifar10-binary", "cifar10-python", "cifar100-python", "cifar100-binary"]


@dataclass(frozen=True)
class Arguments:
    """Train a model on CIFAR-10, and draw what its attention has learned.

    Without arguments: on the bundled slice of CIFAR-10, in a few minutes on two cores.
    """

    settings: Annotated[RunSettings, tyro.conf.arg(name="")] = field(default_factory=RunSettings)
    config: Annotated[str, tyro.conf.arg(metavar="NAME")] = DEFAULT
    """Start from this file of experiments/configs/; any of its fields can be overridden."""
    list: Annotated[bool, tyro.conf.arg(name="list"), tyro.conf.FlagCreatePairsOff] = False
    """Show the configs and exit."""
    data: Annotated[Path | None, tyro.conf.arg(metavar="PATH")] = None
    """Train on an official archive of CIFAR-10 or CIFAR-100, or on image folders."""
    download: Archive | None = None
    """Fetch this official archive into --download-dir first, check it, and train on it."""
    download_dir: Path = Path("data")
    """Where --download puts the archive."""
    output_dir: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """The folder of the run; default: runs/CONFIG-DATE-TIME."""
    resume: Annotated[Path | None, tyro.conf.arg(metavar="RUN")] = None
    """Go on with the run in this folder, with the settings that it has."""
    figures: bool = True
    """Draw pictures into the folder of the run at the end."""


def main(arguments: Sequence[str] | None = None, *, configs: Path) -> int:
    """Run `experiments/cifar.py`.

    **Arguments:**

    - `arguments`: the words after the program; those of this process if None.
    - `configs`: the folder of configs.

    **Returns:** the exit code: 0 if the run is finished, or was stopped by a signal and saved; 1 if
    it failed; 2 for wrong use.
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    return guarded(PROGRAM, lambda: _run(words, configs))


def _run(words: list[str], configs: Path) -> int:
    try:
        given = read_arguments(words, configs)
        if given.list:
            return list_configs(configs)
        return train_as_asked(given, words)
    except ValueError as error:
        raise UsageError(str(error)) from error


def read_arguments(words: list[str], configs: Path) -> Arguments:
    """The arguments, over the config that they name.

    **Raises:** `ValueError` for an unknown config; `SystemExit` for what tyro refuses.
    """
    named = [after for word, after in pairwise(words) if word == "--config"]
    named += [word.partition("=")[2] for word in words if word.startswith("--config=")]
    name = named[-1] if named else DEFAULT
    chosen = Arguments(get_config(configs, name).load(), config=name)
    return tyro.cli(
        Arguments,
        default=chosen,
        args=words,
        prog=f"python {PROGRAM}",
    )


def list_configs(configs: Path) -> int:
    """Print every config with the first line of its description."""
    from rich.table import Table

    from convattn.commands.consoles import console

    table = Table("config", "what it repeats")
    for config in find_configs(configs).values():
        table.add_row(config.name, config.title)
    console().print(table)
    return SUCCESS


def train_as_asked(given: Arguments, words: list[str]) -> int:
    """Find folder and images, train, and say what came of it."""
    from convattn.commands.consoles import console
    from convattn.runs.directory import RunDirectory
    from convattn.runs.launch import launch
    from convattn.training.failures import CheckpointNotWritten, NonFiniteLoss

    out = console()
    settings, folder = given.settings, given.output_dir
    command = repeating_command(words)
    if given.resume is not None:
        check_resume(given, words)
        settings = RunDirectory(given.resume).read_settings()
        command = RunDirectory(given.resume).read_facts()["command"]
        folder = given.resume
    else:
        settings = with_images(settings, given)
    if folder is None:
        now = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
        folder = Path("runs") / f"{given.config}-{now}"
    out.print(f"run: {folder}")
    try:
        outcome = launch(settings, folder, command=command, console=out)
    except (CheckpointNotWritten, NonFiniteLoss) as failure:
        print(f"{PROGRAM}: {failure}", file=sys.stderr)
        return FAILED
    if outcome.status == "stopped":
        out.print(f"go on with: python {PROGRAM} --resume {shlex.quote(str(folder))}")
        return SUCCESS
    if given.figures:
        from convattn.analysis.figures import draw_all

        for picture in draw_all(folder):
            out.print(f"figure: {picture}")
    result = RunDirectory(folder).read_result() or {}
    out.print(f"images: {result['images']}")
    out.print(f"test accuracy {100 * (outcome.test_accuracy or 0):.1f} %")
    return SUCCESS


def with_images(settings: RunSettings, given: Arguments) -> RunSettings:
    """The settings with the images that --data or --download name.

    **Raises:** `ValueError` if both are given.
    """
    if given.data is not None and given.download is not None:
        raise ValueError("--data and --download exclude each other: give one of them")
    source = given.data
    if given.download is not None:
        from convattn.data.download import download_archive

        given.download_dir.mkdir(parents=True, exist_ok=True)
        source = download_archive(given.download, given.download_dir)
    if source is None:
        source = Path(settings.images.source) if settings.images.source else None
    if source is None:
        return settings
    images = replace(settings.images, source=str(source.resolve()))
    return replace(settings, images=images)


def repeating_command(words: Sequence[str]) -> str:
    """The one line that repeats a run from the root of a checkout, into a new folder.

    Paths are made absolute, so that it does not matter where the run was started; the folder of the
    run is left out, so that the repetition gets one of its own.

    >>> repeating_command(["--config", "slice", "--output-dir", "runs/a", "--training.seed=3"])
    'python experiments/cifar.py --config slice --training.seed=3'
    >>> repeating_command(["--data", "/images/../flowers"])
    'python experiments/cifar.py --data /flowers'
    """
    kept: list[str] = []
    waiting = iter(words)
    for word in waiting:
        option, assigned, value = word.partition("=")
        if option in PATHS | {FOLDER}:
            value = value if assigned else next(waiting, "")
            if option in PATHS:
                kept += [option, os.path.realpath(value)]
        else:
            kept.append(word)
    return shlex.join(["python", PROGRAM, *kept])


def check_resume(given: Arguments, words: list[str]) -> None:
    """A run goes on with the settings that it has, so nothing else may be given.

    **Raises:** `ValueError`.
    """
    others = [
        word for word in words if word.startswith("--") and word.partition("=")[0] not in RESUMABLE
    ]
    if others:
        raise ValueError(
            f"--resume goes on with the settings of {given.resume}, but {', '.join(others)} was "
            "given too; leave it out, or start a new run"
        )


RESUMABLE = ("--resume", "--figures", "--no-figures")
FOLDER = "--output-dir"
PATHS = {"--data", "--download-dir", "--images.source"}
