"""Showing how far a verification is: a bar on a terminal, else one line a finished claim."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from convattn.ledger.outcome import ClaimOutcome


class Display:
    """What the runner reports to; on its own it prints one line for each finished claim."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def finished(self, claim: ClaimOutcome) -> None:
        """Note that all evidence for a claim is in."""
        word = "verified" if claim.passed else "FAILED  "
        self._console.print(Text(f"{word}  {claim.seconds:7.2f} s  {claim.id}"), soft_wrap=True)

    def progressed(self, name: str, done: int, total: int) -> None:
        """Note that one more piece of evidence is in."""


class _Bar(Display):
    def __init__(self, console: Console, progress: Progress) -> None:
        super().__init__(console)
        self._progress = progress
        self._task = progress.add_task("starting", total=None)

    def finished(self, claim: ClaimOutcome) -> None:
        if not claim.passed:
            super().finished(claim)

    def progressed(self, name: str, done: int, total: int) -> None:
        self._progress.update(self._task, description=name, completed=done, total=total)


@contextmanager
def display(console: Console) -> Iterator[Display]:
    """A display on this console while the verification runs.

    Args:
        console: Standard error, as a console.
    """
    if not console.is_terminal:
        yield Display(console)
        return
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        yield _Bar(console, progress)
