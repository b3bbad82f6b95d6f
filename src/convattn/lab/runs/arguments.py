"""The arguments of `experiments/cifar.py`, and the command that repeats a run."""

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal

import tyro

from convattn.lab.runs.configs import get_config
from convattn.lab.runs.hosts import FLAGS, OPTIONS, HostArguments
from convattn.lab.runs.settings import RunSettings

DEFAULT = "slice"
PROGRAM = "experiments/cifar.py"
RESUMABLE = ("--resume", "--figures", "--no-figures", *OPTIONS, *FLAGS)
OUTPUTS = ("--output-dir", "--json", *OPTIONS)
PATHS = ("--data", "--download-dir", "--images.source")
MAY_BE_NONE = ("--data", "--images.source")
Archive = Literal["cifar10-binary", "cifar100-binary"]


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
    hosts: Annotated[HostArguments, tyro.conf.arg(name="")] = field(default_factory=HostArguments)


def read_arguments(words: list[str], configs: Path) -> Arguments:
    """The arguments, over the config that they name.

    Raises:
        ValueError: For an unknown config; `SystemExit` for what tyro refuses.
    """
    named = [after for word, after in pairwise(words) if word == "--config"]
    named += [word.partition("=")[2] for word in words if word.startswith("--config=")]
    name = named[-1] if named else DEFAULT
    chosen = Arguments(get_config(configs, name).load(), config=name)
    return tyro.cli(Arguments, default=chosen, args=words, prog=f"python {PROGRAM}")


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
