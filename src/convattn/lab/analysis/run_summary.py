"""What is said of a run wherever a number of it appears: its name, its images, its accuracy."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from convattn.lab.runs.directory import RunDirectory
from convattn.lab.runs.settings import RunSettings
from convattn.lab.training.metrics import read_metrics


@dataclass(frozen=True)
class RunSummary:
    """A run.

    Attributes:
        path: Its folder.
        settings: What it was made with.
        images: What it was trained on, with the note.
        train_images: How many it was trained on.
        result: How it ended; None if it has not.
        epochs_done: Epochs of which there are metrics.
        best_epoch: The first with the best accuracy on the validation images, if there are any.
    """

    path: Path
    settings: RunSettings
    images: str
    train_images: int
    result: dict[str, Any] | None
    epochs_done: int
    best_epoch: int | None

    @property
    def name(self) -> str:
        """That of the folder."""
        return self.path.resolve().name

    @property
    def finished(self) -> bool:
        """Whether it may claim an accuracy."""
        return self.result is not None and self.result["status"] == "finished"

    @property
    def accuracy(self) -> float | None:
        """Of the test images, if it is finished."""
        return self.result["test_accuracy"] if self.result and self.finished else None

    @property
    def correct(self) -> tuple[int, int] | None:
        """How many test images are classified correctly, of how many; if it is finished."""
        if self.accuracy is None or self.result is None:
            return None
        count = self.result["test_images"]
        return round(self.accuracy * count), count

    @property
    def accuracy_text(self) -> str:
        """The accuracy with its counts, or that the run is unfinished."""
        if self.accuracy is None or self.correct is None:
            return f"unfinished, epoch {self.epochs_done} of {self.settings.training.epochs}"
        right, count = self.correct
        return f"{100 * self.accuracy:.1f} % ({right:,} of {count:,})"

    @property
    def tested_epoch(self) -> int | None:
        """The epoch with whose parameters the accuracy was measured; None if it is unfinished."""
        if not self.finished:
            return None
        chosen = self.settings.training.select == "best"
        return self.best_epoch if chosen else self.settings.training.epochs

    def accuracy_beside(self, epoch: int | None) -> str:
        """The accuracy for a picture of an epoch; it says whose it is where they differ.

        Args:
            epoch: None for a picture of the whole training.
        """
        tested = self.tested_epoch
        last = tested == self.settings.training.epochs
        if tested is None or epoch == tested or (epoch is None and last):
            return self.accuracy_text
        return f"{self.accuracy_text} with the parameters of epoch {tested}"

    def described(self, epoch: int | None) -> str:
        """A line: the run, its accuracy for a picture of an epoch, and its images."""
        what = "test accuracy " if self.finished else ""
        return f"run {self.name}: {what}{self.accuracy_beside(epoch)}, {self.images}"


def read_summary(path: Path) -> RunSummary:
    """The summary of the run in a folder.

    Raises:
        ValueError: If it is not the folder of a run.
    """
    directory = RunDirectory(path)
    settings, facts = directory.read_settings(), directory.read_facts()
    name, note = facts["images"]["name"], facts["images"]["note"]
    lines = read_metrics(path)
    return RunSummary(
        path,
        settings,
        f"{name} ({note})" if note else name,
        facts["images"]["train"],
        directory.read_result(),
        lines[-1]["epoch"] if lines else 0,
        best_epoch(lines),
    )


def best_epoch(lines: Sequence[dict[str, Any]]) -> int | None:
    """The first epoch with the best validation accuracy, which `select=best` tests.

    >>> best_epoch([{"epoch": n, "validation_accuracy": seen} for n, seen in ((1, 0.5), (2, 0.5))])
    1
    """
    judged = [line for line in lines if "validation_accuracy" in line]
    if not judged:
        return None
    return max(judged, key=lambda line: (line["validation_accuracy"], -line["epoch"]))["epoch"]
