"""What is said of a run wherever a figure of it appears: its name, its images, its accuracy."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from convattn.runs.directory import RunDirectory
from convattn.runs.settings import RunSettings
from convattn.training.metrics import read_metrics


@dataclass(frozen=True)
class RunSummary:
    """A run.

    **Fields:**

    - `path`: its folder.
    - `settings`: what it was made with.
    - `images`: what it was trained on, with the note.
    - `train_images`: how many it was trained on.
    - `result`: how it ended; None if it has not.
    - `epochs_done`: epochs of which there are metrics.
    """

    path: Path
    settings: RunSettings
    images: str
    train_images: int
    result: dict[str, Any] | None
    epochs_done: int

    @property
    def name(self) -> str:
        """That of the folder."""
        return self.path.resolve().name

    @property
    def finished(self) -> bool:
        """Whether it may claim a figure."""
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


def read_summary(path: Path) -> RunSummary:
    """The summary of the run in a folder.

    **Raises:** `ValueError` if it is not the folder of a run.
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
    )
