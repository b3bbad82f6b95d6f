"""Consoles that print plain text, 100 columns wide, where there is no terminal."""

import sys

from rich.console import Console

PLAIN_WIDTH = 100


def console(stderr: bool = False) -> Console:
    """A console on standard output or standard error.

    Args:
        stderr: Whether to print to standard error.
    """
    file = sys.stderr if stderr else sys.stdout
    if file.isatty():
        return Console(file=file, highlight=False, emoji=False)
    return Console(
        file=file,
        width=PLAIN_WIDTH,
        force_terminal=False,
        color_system=None,
        highlight=False,
        emoji=False,
    )
