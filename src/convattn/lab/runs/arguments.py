"""The arguments of `experiments/cifar.py`, and the command that repeats a run."""

import datetime
import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from convattn.lab.runs.configs import Config, get_config
from convattn.lab.runs.hosts import FLAGS, OPTIONS, HostArguments
from convattn.lab.runs.settings import RunSettings, settings_from_json
from convattn.lab.settings import to_json

DEFAULT = "slice"
PROGRAM = "experiments/cifar.py"
RESUMABLE = ("--resume", "--figures", "--no-figures", *OPTIONS, *FLAGS)
OUTPUTS = ("--output-dir", "--json", *OPTIONS)
PATHS = ("--data", "--download-dir", "--images.source")
MAY_BE_NONE = ("--data", "--images.source")
Archive = Literal["cifar10-binary", "cifar100-binary"]


@dataclass(frozen=True)
class Sources:
    """Where a config, the images and the results are."""

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
    """The folder of the results; default: under runs/, named after config and time. Repeating the
    command with it goes on where it stopped."""
    figures: bool = True
    """Draw pictures into the folder at the end."""


@dataclass(frozen=True)
class Arguments(Sources):
    """Train a model on CIFAR-10, and draw what its attention has learned.

    Without arguments: on the bundled slice of CIFAR-10, in a few minutes on two cores.
    """

    settings: Annotated[RunSettings, tyro.conf.arg(name="")] = field(default_factory=RunSettings)
    resume: Annotated[Path | None, tyro.conf.arg(metavar="RUN")] = None
    """Go on with the run in this folder, with the settings that it has."""
    hosts: Annotated[HostArguments, tyro.conf.arg(name="")] = field(default_factory=HostArguments)


def read_arguments(words: Sequence[str], configs: Path) -> Arguments:
    """The arguments, over the config that they name.

    Raises:
        ValueError: For an unknown config; `SystemExit` for what tyro refuses.
    """
    config = chosen_config(words, configs, DEFAULT)
    chosen = Arguments(config.name, settings=config.load())
    return tyro.cli(Arguments, default=chosen, args=list(words), prog=f"python {PROGRAM}")


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


def with_images(settings: Any, given: Sources) -> Any:
    """Settings with `images`, and these with the source that --data or --download name.

    Raises:
        ValueError: If both are given.
    """
    if given.data is not None and given.download is not None:
        raise ValueError("--data and --download exclude each other: give one of them")
    source = given.data
    if given.download is not None:
        from convattn.lab.data.download import download_archive

        source = download_archive(given.download, given.download_dir)
    if source is None and settings.images.source:
        source = Path(settings.images.source)
    if source is None:
        return settings
    return replace(settings, images=replace(settings.images, source=str(source.resolve())))


def repeating_command(words: Sequence[str], *, program: str = PROGRAM) -> str:
    """The one line that repeats a run from the root of a checkout, into a new folder.

    Paths are made absolute, so that it does not matter where the run was started; `--output-dir`
    and `--json` are left out, so that the repetition overwrites nothing, and so are the processes
    that shared the work.

    Args:
        words: After the program. If the first is a subcommand, every option takes one value, and
            what is neither is the path of a run.
        program: From the root of a checkout.

    >>> repeating_command(["--config", "slice", "--output_dir", "runs/a", "--training.seed=3"])
    'python experiments/cifar.py --config slice --training.seed=3'
    >>> repeating_command(["--data", "/images/../flowers"])
    'python experiments/cifar.py --data /flowers'
    >>> repeating_command(["prune", "/a/../b", "--epochs", "2"], program="experiments/analyse.py")
    'python experiments/analyse.py prune /b --epochs 2'
    """
    subcommand = bool(words) and not words[0].startswith("-")
    kept: list[str] = list(words[:1]) if subcommand else []
    waiting = iter(words[len(kept) :])
    for word in waiting:
        if not word.startswith("--"):
            kept.append(os.path.realpath(word) if subcommand else word)
            continue
        option, assigned, value = word.partition("=")
        option = spelled(option)
        if option in FLAGS:
            continue
        if option in OUTPUTS + PATHS or (subcommand and not assigned):
            value = value if assigned else next(waiting, "")
            if option in OUTPUTS:
                continue
            if option in PATHS and not (option in MAY_BE_NONE and value == "None"):
                value = os.path.realpath(value)
            kept += [option, value]
        else:
            kept.append(option + assigned + value)
    return shlex.join(["python", program, *kept])


def spelled(option: str) -> str:
    """The option with hyphens, where underscores are accepted too.

    >>> spelled("--output_dir")
    '--output-dir'
    """
    return option.replace("_", "-")


def check_resume(given: Arguments, words: list[str]) -> None:
    """A run goes on with the settings that it has, so nothing else may be given.

    Raises:
        ValueError: As described above.
    """
    others = [
        word
        for word in words
        if word.startswith("--") and spelled(word.partition("=")[0]) not in RESUMABLE
    ]
    if others:
        raise ValueError(
            f"--resume goes on with the settings of {given.resume}, but {', '.join(others)} was "
            "given too; leave it out, or start a new run"
        )


def requested(given: Arguments, words: list[str]) -> tuple[RunSettings, str, Path]:
    """The settings, the command that repeats the run, and its folder: those of the first process.

    Raises:
        ValueError: For a folder that is not one of a run, and for what `check_resume` refuses.
    """
    from convattn.lab.runs.directory import RunDirectory
    from convattn.lab.training.hosts import from_first, is_first

    if given.resume is not None:
        check_resume(given, words)
        stored = None
        if is_first():
            directory = RunDirectory(given.resume)
            settings, facts = directory.read_settings(), directory.read_facts()
            stored = [to_json(settings), facts["command"]]
        content, command = from_first(stored)
        settings, folder = settings_from_json(content), given.resume
    else:
        settings, command = with_images(given.settings, given), repeating_command(words)
        folder = given.output_dir or run_folder(given.config)
    return settings, command, Path(from_first(str(folder)))
