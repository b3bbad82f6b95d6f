"""What a run shows while it goes on: a bar on a terminal, a line for each epoch elsewhere."""

from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn


class TrainingProgress:
    """Shows how far a run is.

    Args:
        steps: Of the whole run.
        console: Where to show it.
        completed: How many were done before.
        unit_name: What the examples are called.
    """

    def __init__(
        self, steps: int, console: Console, completed: int = 0, unit_name: str = "images"
    ) -> None:
        self.console, self.unit_name = console, unit_name
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed}/{task.total} steps"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("compiling", total=steps, completed=completed)

    def advanced(self, step: int, loss: float) -> None:
        """So many steps are done, and this was the last loss."""
        self._bar.update(self._task, completed=step, description=f"loss {loss:.3f}")

    def epoch(self, line: dict[str, Any]) -> None:
        """An epoch has ended with these metrics."""
        columns = [f"epoch {line['epoch']:>3}", f"loss {line['train_loss']:.3f}"]
        columns.append(f"train {100 * line['train_accuracy']:.1f} %")
        for split in ("validation", "test"):
            if f"{split}_accuracy" in line:
                columns.append(f"{split} {100 * line[f'{split}_accuracy']:.1f} %")
        columns.append(f"{line['images_per_second']:.0f} {self.unit_name}/s")
        self.console.print("  ".join(columns), highlight=False)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()
