"""The stages of a session, in their order: commands of this project, each with its result."""

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import convattn_lab

ROOT = Path(convattn_lab.__file__).resolve().parents[2]  # of the checkout


@dataclass(frozen=True)
class StageOptions:
    """What the commands are made from.

    Attributes:
        folder: Where every stage writes.
        is_small: Whether sizes are small, as on a CPU.
        data: The images that are trained on; None for the bundled ones.
    """

    folder: Path
    is_small: bool
    data: Path | None = None


@dataclass(frozen=True)
class Stage:
    """One command.

    Attributes:
        name: Also of its log, `<name>.log`.
        title: On the page.
        words: What follows the interpreter.
        share: Of the time that is left when it begins, the most that it gets.
        grace: Seconds that it is given to end once it is asked to.
        reads: The stage whose result it reads; it runs again after that.
    """

    name: str
    title: str
    words: Callable[[StageOptions], Sequence[str]]
    share: float
    grace: float = 10.0
    reads: str | None = None

    def command(self, options: StageOptions) -> list[str]:
        """The whole command."""
        return [sys.executable, *self.words(options)]


def _audit(options: StageOptions) -> list[str]:
    return ["-m", "convattn.cli", "audit", "--json", str(options.folder / "audit.json")]


def _checks(options: StageOptions) -> list[str]:
    small = ["--quick"] if options.is_small else []
    return [_script("device_checks.py"), "--json", str(options.folder / "checks.json"), *small]


def _bench(options: StageOptions) -> list[str]:
    small = ["--quick"] if options.is_small else ["--dtype", "bfloat16", "--batch", "32"]
    return [_script("bench.py"), "--output-dir", str(options.folder), "--resume", *small]


def _rates(options: StageOptions) -> list[str]:
    bench = str(options.folder / "bench.json")
    return [
        *(_script("fit_cost_model.py"), bench, "--json", str(options.folder / "rates.json")),
        *([] if options.is_small else ["--install"]),
    ]


def _hours(options: StageOptions) -> list[str]:
    small = ["--quick"] if options.is_small else []
    return [_script("training_hours.py"), "--json", str(options.folder / "hours.json"), *small]


def _training(options: StageOptions) -> list[str]:
    config = "slice" if options.is_small else "quadratic"
    data = [] if options.data is None else ["--data", str(options.data)]
    folder = str(options.folder / "training")
    return [_script("cifar.py"), "--config", config, "--output-dir", folder, *data]


def _script(name: str) -> str:
    return str(ROOT / "experiments" / name)


STAGES = (
    Stage("audit", "What the device's arithmetic does", _audit, 0.15),
    Stage("checks", "Every back end against float64, within derived bounds", _checks, 0.2),
    Stage("bench", "Time and memory of layers and networks", _bench, 0.4),
    Stage("rates", "The rates by which `auto` chooses", _rates, 0.3, reads="bench"),
    Stage("hours", "What the runs of the papers would take", _hours, 0.3),
    Stage("training", "Training, by the recipe of C20", _training, 1.0, grace=45.0),
)


def environment(options: StageOptions) -> dict[str, Any]:
    """The variables of every stage: what one has compiled the next finds."""
    cache = {"JAX_COMPILATION_CACHE_DIR": str(options.folder / "compiled")}
    return {**os.environ, "PYTHONUNBUFFERED": "1", **cache}
