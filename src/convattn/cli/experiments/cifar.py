"""The command line of `experiments/cifar.py`: choose a config, override its fields, train."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from convattn.cli.experiments.experiment import FAILED, list_configs
from convattn.cli.running import SUCCESS, UsageError, guarded
from convattn.lab.runs.arguments import PROGRAM, Arguments, read_arguments, requested
from convattn.lab.runs.hosts import part


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
    return part(guarded(PROGRAM, lambda: _run(words, configs)))


def _run(words: list[str], configs: Path) -> int:
    try:
        given = read_arguments(words, configs)
        if given.list:
            return list_configs(configs)
        if given.hosts.given:  # what takes long to import, before the others are kept waiting
            import convattn.lab.runs.launch  # noqa: F401
        given.hosts.start()
        return train_as_asked(given, words)
    except ValueError as error:
        raise UsageError(str(error)) from error


def train_as_asked(given: Arguments, words: list[str]) -> int:
    """Find folder and images, train, and say what came of it."""
    import jax

    from convattn.cli.output import console
    from convattn.lab.runs.launch import launch
    from convattn.lab.training.failures import NonFiniteLoss
    from convattn.lab.training.hosts import LOST, is_first

    out = console()
    settings, command, folder = requested(given, words)
    again = f"python {PROGRAM} --resume {shlex.quote(str(folder))}"
    if given.hosts.given:  # now, for JAX may end this process without a word of ours
        print(LOST.format(again), file=sys.stderr, flush=True)
    try:
        outcome = launch(settings, folder, command=command, console=out)
    except NonFiniteLoss as failure:
        print(f"{PROGRAM}: {failure}", file=sys.stderr)
        return FAILED
    except jax.errors.JaxRuntimeError as failure:
        if not given.hosts.given:
            raise
        print(f"{PROGRAM}: {failure}\n{LOST.format(again)}", file=sys.stderr)
        return FAILED
    first = is_first()
    if given.hosts.given:
        jax.distributed.shutdown()  # the others need not wait for the pictures
    if not first:
        return SUCCESS
    if outcome.status == "stopped":
        out.print(f"go on with: {again}")
        return SUCCESS
    if given.figures:
        from convattn.lab.analysis.figures import draw_all

        for picture in draw_all(folder):
            out.print(f"figure: {picture}")
    out.print(f"test accuracy {100 * (outcome.test_accuracy or 0):.1f} %")
    return SUCCESS
