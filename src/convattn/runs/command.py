"""The command line of `experiments/cifar.py`: choose a config, override its fields, train."""

import datetime
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from convattn.commands.guard import SUCCESS, guarded
from convattn.commands.usage import UsageError
from convattn.runs.arguments import (
    PROGRAM,
    Arguments,
    check_resume,
    read_arguments,
    repeating_command,
)
from convattn.runs.configs import find_configs
from convattn.runs.settings import RunSettings

FAILED = 1


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


def list_configs(configs: Path) -> int:
    """Print every config with its title and the paper's item."""
    from rich.table import Table

    from convattn.commands.consoles import console

    table = Table("config", "what it trains", "what it repeats")
    for config in find_configs(configs).values():
        table.add_row(config.name, config.title, config.repeats)
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

        source = download_archive(given.download, given.download_dir)
    if source is None:
        source = Path(settings.images.source) if settings.images.source else None
    if source is None:
        return settings
    images = replace(settings.images, source=str(source.resolve()))
    return replace(settings, images=images)
