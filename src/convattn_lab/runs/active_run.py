"""The folder of a run while it trains: what it began with, and how it ended.

    with begin_run(folder, settings, model, examples, command=…, data=…) as run:
        outcome = train(settings.training, examples, model, folder, locked=True)
        run.end(outcome, summary)

The folder is the caller's alone in between; calling the same again goes on with the run.
"""

import datetime
import importlib.metadata
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from flax import nnx
from rich.console import Console

from convattn.files import FILE_NAME as LOCK
from convattn.files import lock_directory
from convattn.temporary import is_beside
from convattn_lab.models.sizes import parameter_count
from convattn_lab.runs.directory import (
    CONFIG,
    CONVERSION,
    INITIAL,
    PRUNING,
    RESULT,
    RUN,
    RunDirectory,
    read_json,
)
from convattn_lab.runs.settings import LATER
from convattn_lab.settings import changed_fields, flattened, from_json, to_json
from convattn_lab.training.devices import data_mesh
from convattn_lab.training.examples import TrainingExamples
from convattn_lab.training.hosts import check_equal, is_first
from convattn_lab.training.settings import TrainingSettings
from convattn_lab.training.state import with_named_arrays
from convattn_lab.training.trainer import Outcome, check_examples
from convattn_ledger.environment import device_environment, host_environment

PACKAGES = ("flax", "optax", "orbax-checkpoint", "tensorboardX")
# What a run writes before its settings; with these alone a folder holds no run yet.
BEFORE_SETTINGS = (LOCK, INITIAL, PRUNING, CONVERSION, RUN)
ELSEWHERE = "images.source"  # another machine may have the same images in another place


@dataclass(frozen=True)
class ActiveRun:
    """A run that has begun.

    Attributes:
        directory: Its folder.
        training: How it is trained.
        before: The status of its result when this training session began; None without one.
        began: The processor time then.
    """

    directory: RunDirectory
    training: TrainingSettings
    before: str | None
    began: float

    def end(self, outcome: Outcome, summary: Mapping[str, Any]) -> None:
        """Write `result.json`, of a finished run once; the first process does.

        Args:
            outcome: From `train`.
            summary: What the result says besides.
        """
        if not is_first():
            return
        pruning = self.directory.read_pruning()
        if pruning is not None:  # before the result, with which the run is complete
            self.directory.write(PRUNING, {**pruning, "after": outcome.test_accuracy})
        if self.before != outcome.status:
            result = {**_result_of(outcome, self.training.devices), **summary}
            result["processor_seconds_of_last_sitting"] = time.process_time() - self.began
            self.directory.write(RESULT, result)


@contextmanager
def begin_run(
    folder: Path,
    settings: Any,
    model: nnx.Module,
    examples: TrainingExamples,
    *,
    command: str,
    data: dict[str, Any],
    data_name: str = "data",
    title: str = "",
    console: Console | None = None,
    initial: dict[str, np.ndarray] | None = None,
) -> Iterator[ActiveRun]:
    """Begin a run in this folder, or go on with it, and hold the folder.

    Of several processes that train together the first alone has the folder and the console.

    Args:
        folder: New, empty, or of a run with the same settings.
        settings: All that decides the run, `training` among it; they become `config.json`.
        model: Is given the parameters that the run begins with, if they are not drawn.
        examples: What it is trained on.
        command: What repeats the run, for its record.
        data: What is put on record about the examples: name, sizes, SHA-256.
        data_name: Under which name `run.json` holds the data.
        title: A line about the examples.
        console: Where it is shown.
        initial: Parameters to begin with, by name; random if not given.

    Raises:
        ValueError: If the folder holds something else, if the examples have changed since the run
            began, and for settings that they or the devices do not serve.
    """
    if console is None or not is_first():
        console = Console(quiet=True)
    training = settings.training
    check_examples(examples, training)
    data_mesh(training.batch_size, training.devices)
    # All that can be refused is, in every process, before there is a folder.
    decisive = flattened(to_json(settings))
    decisive = {name: value for name, value in decisive.items() if name != ELSEWHERE}
    check_equal({**decisive, f"the {data_name}": data["sha256"]})
    directory = RunDirectory(folder)
    if not is_first():
        yield ActiveRun(directory, training, None, time.process_time())
        return
    check_directory(folder, settings)
    console.print("\n".join(filter(None, (f"run: {folder}", title))))
    with lock_directory(folder):
        check_directory(folder, settings)  # again: nobody else can change it now
        exists = (folder / CONFIG).exists()
        _check_initial(directory, initial)
        initial = directory.read_initial() if exists else initial
        if initial is not None:
            nnx.update(model, with_named_arrays(nnx.state(model, nnx.Param), initial))
            if not exists:
                directory.write_initial(initial)
        metadata = _metadata_of(command, training.seed)
        metadata |= {data_name: data, "initial": directory.initial_digest()}
        _record_metadata(directory, metadata, data_name)
        if not exists:
            directory.write_settings(settings)  # last: without them there is no run
        before = (directory.read_result() or {}).get("status")
        if before == "finished":
            console.print("this run is finished: no step is left to train")
        yield ActiveRun(directory, training, before, time.process_time())


def check_directory(folder: Path, settings: Any) -> None:
    """Refuse a folder that holds something else than a run with these settings."""
    for parent in (folder, *folder.parents):
        if parent.exists() and not parent.is_dir():
            raise ValueError(f"{parent} is a file, but the folder of a run was expected")
    if not folder.is_dir() or all(
        child.name in BEFORE_SETTINGS or is_beside(child.name, (CONFIG, *BEFORE_SETTINGS))
        for child in folder.iterdir()
    ):
        return
    stored = from_json(type(settings), read_json(folder / CONFIG, may_be_new=True), later=LATER)
    if stored != settings:
        changed = ", ".join(changed_fields(stored, settings))
        raise ValueError(
            f"{folder} holds a run with other settings (they differ in {changed}); take another "
            "folder, or go on with it as it is"
        )


def _check_initial(directory: RunDirectory, initial: dict[str, np.ndarray] | None) -> None:
    """Refuse other parameters than the run began with, and drawn ones where it was to be pruned."""
    if not (directory.path / CONFIG).exists():
        left = [name for name in (INITIAL, PRUNING, CONVERSION) if (directory.path / name).exists()]
        if initial is None and left:
            raise ValueError(
                f"{directory.path} holds {' and '.join(left)} of a run that was to go on from "
                "another one's parameters; repeat the command that pruned or converted it, or take "
                "another folder"
            )
        return
    if initial is None:
        return
    stored = directory.read_initial() or {}
    if stored.keys() != initial.keys() or any(
        not np.array_equal(stored[name], initial[name]) for name in initial
    ):
        raise ValueError(
            f"{directory.path} holds a run that began with other parameters; take another folder, "
            "or --resume it as it is"
        )


def _metadata_of(command: str, seed: int) -> dict[str, Any]:
    """What a run was made with: command, seed, versions, machine, commit."""
    versions = {name: importlib.metadata.version(name) for name in PACKAGES}
    return {
        "command": command,
        "seed": seed,
        "environment": {**host_environment(), **versions, **device_environment()},
        "git": git_state(Path(__file__).parent),
    }


def git_state(folder: Path) -> dict[str, Any] | None:
    """Commit and whether tracked files differ from it; None outside a checkout or without git."""

    def git(*words: str) -> str:
        command = ["git", "-C", str(folder), *words]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20)
        return done.stdout.strip()

    try:
        changed = git("status", "--porcelain", "--untracked-files=no")
        return {"commit": git("rev-parse", "HEAD"), "changed": bool(changed)}
    except (OSError, subprocess.SubprocessError):
        return None


def _record_metadata(directory: RunDirectory, metadata: dict[str, Any], data_name: str) -> None:
    """Write `run.json`, or add this session to it: when, on what machine, and at which commit.

    Args:
        data_name: Under which name the facts hold those of the examples.
    """
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    session = {"started": now, "environment": metadata["environment"], "git": metadata["git"]}
    before: list[dict[str, Any]] = []
    if (directory.path / CONFIG).exists():  # else nothing has begun, whatever lies there
        stored = directory.read_metadata()
        if stored[data_name]["sha256"] != metadata[data_name]["sha256"]:
            raise ValueError(
                f"{directory.path} began on {stored[data_name]['name']}, but the {data_name} are "
                "others now; put the old ones back, or start a new run"
            )
        if stored.get("initial") != metadata["initial"]:
            raise ValueError(
                f"{directory.path / INITIAL} is not the file with which the run began; put the old "
                "one back, or start a new run"
            )
        metadata, before = stored, stored.get("sittings", [])
    directory.write(RUN, {**metadata, "sittings": [*before, session]})


def _result_of(outcome: Outcome, devices: int | None) -> dict[str, Any]:
    """What every run may claim.

    Args:
        devices: How many of each process were asked for; all that it has if None.
    """
    count = (devices or jax.local_device_count()) * jax.process_count()
    return {
        "status": outcome.status,
        "step": outcome.step,
        "steps": outcome.steps,
        "test_accuracy": outcome.test_accuracy,
        "test_loss": outcome.test_loss,
        "device": f"{count} x {jax.devices()[0].device_kind}",
        "parameters": parameter_count(outcome.model),
        "seconds": outcome.seconds,
    }
