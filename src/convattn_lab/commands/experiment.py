"""What the scripts of experiments/ that train share: options, a folder, exit codes."""

import argparse
import datetime
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from convattn.cli.running import FAILED, SUCCESS, UsageError, guarded
from convattn_lab.commands.hosts import FLAGS, OPTIONS
from convattn_lab.runs.configs import Config, find_configs, get_config

OUTPUTS = ("--output-dir", *OPTIONS)
PATHS = ("--data", "--download-dir", "--images.source")
MAY_BE_NONE = ("--data", "--images.source")
Archive = Literal["cifar10-binary", "cifar100-binary"]


@dataclass(frozen=True)
class Sources:
    """Where a config, the images and the results are."""

    config: Annotated[str, tyro.conf.arg(metavar="NAME")] = "slice"
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
    """The folder of the results; default: under runs/, named after config and time. Repeating the
    command with it goes on where it stopped."""
    figures: bool = True
    """Draw pictures into the folder at the end."""


def chosen_config(words: Sequence[str], configs: Path, default: str) -> Config:
    """The config that --config names, the last one if there are several.

    Raises:
        ValueError: For an unknown config.
    """
    named = [after for word, after in pairwise(words) if word == "--config"]
    named += [word.partition("=")[2] for word in words if word.startswith("--config=")]
    return get_config(configs, named[-1] if named else default)


def run_folder(name: str) -> Path:
    """Where results go if no folder is named: under runs/, with the time."""
    return Path("runs") / f"{name}-{datetime.datetime.now():%Y%m%d-%H%M%S}"


def with_images(settings: Any, sources: Sources) -> Any:
    """Settings with `images`, and these with the source that --data or --download name.

    Raises:
        ValueError: If both are given.
    """
    if sources.data is not None and sources.download is not None:
        raise ValueError("--data and --download exclude each other: give one of them")
    source = sources.data
    if sources.download is not None:
        from convattn_lab.data.download import download_archive

        source = download_archive(sources.download, sources.download_dir)
    if source is None and settings.images.source:
        source = Path(settings.images.source)
    if source is None:
        return settings
    return replace(settings, images=replace(settings.images, source=str(source.resolve())))


def repeating_command(words: Sequence[str], program: str) -> str:
    """The one line that repeats a run from the root of a checkout, into a new folder.

    Paths are made absolute, so that it does not matter where the run was started, and stand last;
    `--output-dir` is left out, so that the repetition overwrites nothing, and so are the processes
    that shared the work.

    Args:
        words: After the program.
        program: From the root of a checkout.

    >>> words = ["--config", "slice", "--output_dir", "runs/a", "--training.seed=3"]
    >>> repeating_command(words, "experiments/cifar.py")
    'python experiments/cifar.py --config slice --training.seed=3'
    >>> repeating_command(["--data", "/images/../flowers"], "experiments/cifar.py")
    'python experiments/cifar.py --data /flowers'
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for option in (*OUTPUTS, *PATHS):
        parser.add_argument(option, option.replace("-", "_").replace("__", "--"))
    for option in FLAGS:
        parser.add_argument(option, action="store_true")
    parsed, remaining = parser.parse_known_args(list(words))
    for option in PATHS:
        value = getattr(parsed, option.removeprefix("--").replace("-", "_"))
        if value is not None:
            absent = option in MAY_BE_NONE and value == "None"
            remaining += [option, value if absent else os.path.realpath(value)]
    return shlex.join(["python", program, *remaining])


def spelled(option: str) -> str:
    """The option with hyphens, where underscores are accepted too.

    >>> spelled("--output_dir")
    '--output-dir'
    """
    return option.replace("_", "-")


def run_experiment(
    program: str,
    arguments: type[Any],
    train: Callable[..., Any],
    report: Callable[[dict[str, Any]], Sequence[str]],
    words: Sequence[str] | None = None,
) -> int:
    """Run a script that trains one model with its settings as options.

    Args:
        program: The script, from the root of a checkout.
        arguments: A dataclass with `settings` and `output_dir`; its docstring is the help.
        train: Called as `train(settings, folder, command=…, console=…)`; gives the outcome.
        report: The result → the lines that are printed at the end.
        words: After the program; those of this process if None.

    Returns:
        0 if the run is finished, or was stopped by a signal and saved; 1 if it failed; 2 for wrong
        use.
    """
    from convattn_lab.training.failures import NonFiniteLoss

    def body() -> int:
        argv = list(sys.argv[1:] if words is None else words)
        try:
            chosen = tyro.cli(arguments, args=argv, prog=f"python {program}")
            return _run(program, chosen, argv, train, report)
        except NonFiniteLoss as failure:
            print(f"{program}: {failure}", file=sys.stderr)
            return FAILED
        except ValueError as error:
            raise UsageError(str(error)) from error

    return guarded(program, body)


def _run(program: str, args: Any, words: list[str], train: Any, report: Any) -> int:
    from convattn.cli.output import console
    from convattn_lab.runs.directory import RESULT, read_json
    from convattn_lab.training.hosts import one_process_alone

    out = console()
    folder = args.output_dir or run_folder(Path(program).stem)
    command = repeating_command(words, program)
    one_process_alone(program)
    outcome = train(args.settings, folder, command=command, console=out)
    if outcome.status == "stopped":
        out.print(f"go on with: {command} {shlex.join(['--output-dir', str(folder)])}")
        return SUCCESS
    for line in report(read_json(folder / RESULT)):
        out.print(line)
    return SUCCESS


def list_configs(configs: Path) -> int:
    """Print every config with its title and the paper's item."""
    from rich.table import Table

    from convattn.cli.output import console

    table = Table("config", "what it trains", "what it repeats")
    for config in find_configs(configs).values():
        table.add_row(config.name, config.title, config.repeats)
    console().print(table)
    return SUCCESS
