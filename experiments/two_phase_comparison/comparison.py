"""Many second phases after one first phase, for several seeds; resumable at any point.

DIR/comparison.json                  the settings
DIR/seed-S/phase1/                   the first phase of a seed
DIR/seed-S/START-WARMUP/             a second phase: START is a conversion, or "random"
DIR/seed-S/only-PHASE/               either phase alone
DIR/table.json, table.md, figures/   what came of them
"""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console

from convattn_lab.runs.directory import write_json
from convattn_lab.settings import to_json
from convattn_lab.training.failures import NonFiniteLoss
from convattn_lab.two_phase.convert_run import PhaseOne, read_phase_one
from convattn_lab.two_phase.pipeline import (
    STOPPED,
    begin_directory,
    is_finished,
    train_converted,
    train_once,
)
from convattn_lab.two_phase.settings import (
    CONTROLS,
    RANDOM,
    ComparisonSettings,
    comparison_from_json,
)

SETTINGS = "comparison.json"


@dataclasses.dataclass(frozen=True)
class ComparisonDirectory:
    """The folder of a comparison."""

    path: Path

    def run(self, seed: int, name: str) -> Path:
        """A run of a seed: "phase1", START-WARMUP, or only-PHASE."""
        return self.path / f"seed-{seed}" / name


def compare(
    settings: ComparisonSettings, folder: Path, *, command: str, console: Console | None = None
) -> bool:
    """Train everything that is not trained yet.

    More seeds, starts, warm-ups or controls may be asked for than before: what is there stays. A
    run that diverges is left as it is and counted as such; the others go on.

    Args:
        folder: New, empty, or of a comparison of the same pipeline.
        command: What repeats it, for the records.
        console: Where progress is shown.

    Returns:
        Whether all is done; False if a signal stopped it.

    Raises:
        ConversionFailed: If a converted network is another one; `ValueError` for a folder that
            holds something else; and what `launch` raises.
    """
    directory, console = ComparisonDirectory(folder), console or Console(quiet=True)
    path, pipeline = folder / SETTINGS, settings.pipeline
    begin_directory(
        path, "comparison", pipeline, lambda stored: comparison_from_json(stored).pipeline
    )
    write_json(path, {"settings": to_json(settings), "command": command})
    return all(
        status != STOPPED
        for seed in settings.seeds
        for status in statuses(settings, directory, seed, command, console)
    )


def statuses(
    settings: ComparisonSettings,
    directory: ComparisonDirectory,
    seed: int,
    command: str,
    console: Console,
) -> Iterator[str]:
    """Train the runs of a seed one after the other, and say how each ended."""

    def announce(what: str) -> None:
        console.print(f"[bold]seed {seed}: {what}[/bold]")

    announce("phase one")
    path = directory.run(seed, "phase1")
    yield train_once(settings.phase_one(seed), path, command, console)
    one: PhaseOne | None = None
    for start in settings.starts:
        for warmup in settings.warmups:
            announce(f"{start}, {warmup} warm-up")
            folder = directory.run(seed, f"{start}-{warmup}")
            if start == RANDOM:
                yield guarded_training(
                    train_once, settings.random_start(seed, warmup), folder, command, console
                )
                continue
            pipeline = settings.converted(seed, start, warmup)
            if not is_finished(pipeline.phase_two, folder):
                one = one or read_phase_one(path)
                yield guarded_training(train_converted, one, pipeline, folder, command, console)
    for name in CONTROLS if settings.controls else ():
        announce(CONTROLS[name])
        yield guarded_training(
            train_once,
            settings.control(seed, name),
            directory.run(seed, name),
            command,
            console,
        )


def guarded_training(train: Any, *args: Any) -> str:
    """Train; a run that diverges ends as `"diverged"`."""
    try:
        return train(*args)
    except NonFiniteLoss as failure:
        args[-1].print(f"diverged: {failure}")
        return "diverged"
