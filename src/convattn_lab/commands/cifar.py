"""The command line of `experiments/cifar.py`: choose a config, override its fields, train."""

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from convattn.cli.running import FAILED, SUCCESS, UsageError, guarded
from convattn_lab.commands.experiment import (
    Sources,
    chosen_config,
    list_configs,
    repeating_command,
    run_folder,
    spelled,
    with_images,
)
from convattn_lab.commands.hosts import FLAGS, OPTIONS, HostArguments, leave_other_processes
from convattn_lab.runs.settings import RunSettings, settings_from_json
from convattn_lab.settings import to_json

PROGRAM, DEFAULT = "experiments/cifar.py", "slice"
RESUMABLE = ("--resume", "--figures", "--no-figures", *OPTIONS, *FLAGS)


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


def _check_resume(args: Arguments, words: list[str]) -> None:
    """A run goes on with the settings that it has, so nothing else may be given."""
    others = [
        word
        for word in words
        if word.startswith("--") and spelled(word.partition("=")[0]) not in RESUMABLE
    ]
    if others:
        raise ValueError(
            f"--resume goes on with the settings of {args.resume}, but {', '.join(others)} was "
            "given too; leave it out, or start a new run"
        )


def _requested(args: Arguments, words: list[str]) -> tuple[RunSettings, str, Path]:
    """Settings, the command that repeats the run, and its folder: those of the first process."""
    from convattn_lab.runs.directory import RunDirectory
    from convattn_lab.training.hosts import from_first, is_first

    if args.resume is not None:
        _check_resume(args, words)
        stored = None
        if is_first():
            directory = RunDirectory(args.resume)
            settings, metadata = directory.read_settings(), directory.read_metadata()
            stored = [to_json(settings), metadata["command"]]
        content, command = from_first(stored)
        settings, folder = settings_from_json(content), args.resume
    else:
        settings, command = with_images(args.settings, args), repeating_command(words, PROGRAM)
        folder = args.output_dir or run_folder(args.config)
    return settings, command, Path(from_first(str(folder)))


def main(arguments: Sequence[str] | None = None, *, configs: Path) -> int:
    """Run `experiments/cifar.py`.

    Args:
        arguments: The words after the program; those of this process if None.
        configs: The folder of configs.

    Returns:
        The exit code: 0 if the run is finished, or was stopped by a signal and saved; 1 if it
        failed; 2 for wrong use.
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    return leave_other_processes(guarded(PROGRAM, lambda: _run(words, configs)))


def _run(words: list[str], configs: Path) -> int:
    try:
        args = read_arguments(words, configs)
        if args.list:
            return list_configs(configs)
        if args.hosts.multi_process:  # slow imports, before the others are kept waiting
            import convattn_lab.runs.launch  # noqa: F401
        args.hosts.start()
        return train_as_asked(args, words)
    except ValueError as error:
        raise UsageError(str(error)) from error


def train_as_asked(args: Arguments, words: list[str]) -> int:
    """Find folder and images, train, and say what came of it."""
    import jax

    from convattn.cli.output import console
    from convattn_lab.runs.launch import launch
    from convattn_lab.training.failures import NonFiniteLoss
    from convattn_lab.training.hosts import LOST, is_first

    out = console()
    settings, command, folder = _requested(args, words)
    again = f"python {PROGRAM} --resume {shlex.quote(str(folder))}"
    if args.hosts.multi_process:  # now, for JAX may end this process without a word of ours
        print(LOST.format(again), file=sys.stderr, flush=True)
    try:
        outcome = launch(settings, folder, command=command, console=out)
    except NonFiniteLoss as failure:
        print(f"{PROGRAM}: {failure}", file=sys.stderr)
        return FAILED
    except jax.errors.JaxRuntimeError as failure:
        if not args.hosts.multi_process:
            raise
        print(f"{PROGRAM}: {failure}\n{LOST.format(again)}", file=sys.stderr)
        return FAILED
    first = is_first()
    if args.hosts.multi_process:
        jax.distributed.shutdown()  # the others need not wait for the pictures
    if not first:
        return SUCCESS
    if outcome.status == "stopped":
        out.print(f"go on with: {again}")
        return SUCCESS
    if args.figures:
        from convattn_lab.analysis.figures import draw_all

        for picture in draw_all(folder):
            out.print(f"figure: {picture}")
    out.print(f"test accuracy {100 * (outcome.test_accuracy or 0):.1f} %")
    return SUCCESS
