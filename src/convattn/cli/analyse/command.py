"""The command line of `experiments/analyse.py`: numbers, tables and pictures from runs."""

import difflib
import sys
from collections.abc import Sequence

import tyro

from convattn.cli.analyse.attention import attention
from convattn.cli.analyse.numbers import prune, table
from convattn.cli.analyse.output import PROGRAM
from convattn.cli.analyse.pictures import centers, convolution, curves, figures, motion
from convattn.cli.running import UsageError, guarded

COMMANDS = {
    function.__name__: function
    for function in (curves, centers, motion, attention, table, prune, convolution, figures)
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `experiments/analyse.py`.

    Args:
        arguments: The words after the program; those of this process if None.

    Returns:
        The exit code: 0 for success, 1 if training on failed, 2 for wrong use.
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    return guarded(" ".join([PROGRAM, *words[:1]]), lambda: _run(words))


def _run(words: list[str]) -> int:
    if words and not words[0].startswith("-") and words[0] not in COMMANDS:
        near = difflib.get_close_matches(words[0], COMMANDS, n=1, cutoff=0.5)
        hint = f", did you mean {near[0]!r}?" if near else ""
        raise UsageError(
            f"there is no command {words[0]!r}{hint} (commands: {', '.join(COMMANDS)})"
        )
    try:
        return tyro.extras.subcommand_cli_from_dict(
            COMMANDS,
            prog=f"python {PROGRAM}",
            description="Numbers, tables and pictures from the folders of runs.",
            args=words,
        )
    except ValueError as error:
        raise UsageError(str(error)) from error
