"""A run of any examples and any model: its folder, its record, its training.

`launch` is for images and the models of `build_model`; this is for the rest. The folder has the
same files: `config.json`, `run.json`, `metrics.jsonl`, `result.json`, `checkpoints/`.
"""

import datetime
import importlib.metadata
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flax import nnx
from rich.console import Console

from convattn.files import FILE_NAME as LOCK
from convattn.files import write_file
from convattn.lab.models.sizes import parameter_count
from convattn.lab.runs.directory import CONFIG, RESULT, RUN
from convattn.lab.runs.facts import PACKAGES
from convattn.lab.runs.git_state import git_state
from convattn.lab.settings import to_json
from convattn.lab.training.examples import TrainingExamples
from convattn.lab.training.hosts import one_process_alone
from convattn.lab.training.session import Outcome
from convattn.lab.training.settings import TrainingSettings
from convattn.lab.training.trainer import check_examples, train
from convattn.ledger.environment import device_environment, host_environment

BEFORE_CONFIG = (LOCK, RUN, f".{RUN}.", f".{CONFIG}.")


@dataclass(frozen=True)
class Experiment:
    """What a run is made of.

    Attributes:
        program: The script that starts it, from the root of a checkout.
        settings: A dataclass of all that decides the run; it becomes `config.json`.
        data: What is put on record about the examples: names, sizes, digests.
        summary: What the result says besides the outcome; called once the run is finished.
    """

    program: str
    settings: Any
    model: nnx.Module
    examples: TrainingExamples
    training: TrainingSettings
    data: dict[str, Any]
    summary: Callable[[Outcome], dict[str, Any]]


def run_experiment(
    experiment: Experiment, folder: Path, *, command: str, console: Console | None = None
) -> tuple[Outcome, dict[str, Any]]:
    """Train in this folder, or go on where it was left.

    Args:
        folder: New, empty, or of a run with the same settings and data.
        command: What repeats the run, for its record.

    Returns:
        How it ended, and what `result.json` holds.

    Raises:
        ValueError: If the folder holds something else; and what `train` raises.
    """
    one_process_alone(experiment.program)
    settings = to_json(experiment.settings)
    check_place(folder, settings, experiment)
    check_examples(experiment.examples, experiment.training)
    console = console or Console(quiet=True)
    console.print(f"run: {folder}")
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / CONFIG).exists():
        versions = {name: importlib.metadata.version(name) for name in PACKAGES}
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        facts = {
            "command": command,
            "started": now,
            "environment": {**host_environment(), **versions, **device_environment()},
            "git": git_state(Path(__file__).parent),
            "data": experiment.data,
        }
        write_json(folder / RUN, facts)
        write_json(folder / CONFIG, settings)  # last: without it there is no run
    began = time.process_time()
    outcome = train(
        experiment.model, experiment.examples, experiment.training, folder=folder, console=console
    )
    if outcome.status != "finished":
        return outcome, {}
    if (folder / RESULT).exists():  # a finished run says it once
        return outcome, read_json(folder / RESULT)
    result = {
        "status": outcome.status,
        "steps": outcome.steps,
        "test_loss": outcome.test_loss,
        "test_accuracy": outcome.test_accuracy,
        "parameters": parameter_count(outcome.model),
        "seconds": outcome.seconds,
        "processor_seconds_of_last_sitting": time.process_time() - began,
        **experiment.summary(outcome),
    }
    write_json(folder / RESULT, result)
    return outcome, result


def check_place(folder: Path, settings: dict[str, Any], experiment: Experiment) -> None:
    """Refuse a folder that holds something else.

    Raises:
        ValueError: As described above.
    """
    for place in (folder, *folder.parents):
        if place.exists() and not place.is_dir():
            raise ValueError(f"{place} is a file, but a folder was expected; choose another place")
    if not folder.is_dir() or all(
        child.name.startswith(BEFORE_CONFIG) for child in folder.iterdir()
    ):
        return
    stored = read_json(folder / CONFIG, experiment.program)
    if stored != settings:
        changed = sorted(
            name for name in {*stored, *settings} if stored.get(name) != settings.get(name)
        )
        raise ValueError(
            f"{folder} holds a run with other settings (they differ in {', '.join(changed)}); take "
            "another folder, or repeat the command that began it"
        )
    begun = read_json(folder / RUN, experiment.program)["data"]
    if begun != json.loads(json.dumps(experiment.data)):
        raise ValueError(
            f"{folder} began on {begun}, but the data are others now: {experiment.data}; put the "
            "old ones back, or start a new run"
        )


def read_json(path: Path, program: str = "a script of experiments/") -> dict[str, Any]:
    """A file of a run's folder.

    Raises:
        ValueError: Where it is missing or damaged.
    """
    try:
        found = json.loads(path.read_text())
    except FileNotFoundError as error:
        raise ValueError(
            f"{path.parent} has no {path.name}, so it is not the folder of a run; expected a new "
            f"folder, or one that {program} has written"
        ) from error
    except ValueError as error:
        raise ValueError(f"{path} is no JSON ({error}); the file was damaged") from error
    if not isinstance(found, dict):
        raise ValueError(f"{path} holds no JSON object; the file was damaged")
    return found


def write_json(path: Path, content: dict[str, Any]) -> None:
    """A file of a run's folder, whole or not at all."""
    write_file(path, (json.dumps(content, indent=2) + "\n").encode())
