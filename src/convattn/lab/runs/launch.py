"""`run_experiment`: from settings, model and examples to a trained model and the folder of its run.

`launch` does so for `RunSettings`: images, and the models of `build_model`.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from flax import nnx
from rich.console import Console

from convattn.files import FILE_NAME as LOCK
from convattn.files import hold_folder
from convattn.lab.data.datasets import read_dataset
from convattn.lab.runs.attention_snapshot import attention_snapshot
from convattn.lab.runs.directory import (
    CONFIG,
    CONVERSION,
    INITIAL,
    PRUNING,
    RESULT,
    RUN,
    RunDirectory,
    read_json,
)
from convattn.lab.runs.facts import facts_of, image_facts, record_facts, result_of
from convattn.lab.runs.materials import image_size_of, make_model, training_images
from convattn.lab.runs.settings import LATER, RunSettings
from convattn.lab.settings import changed_fields, flattened, from_json, to_json
from convattn.lab.training.devices import data_mesh
from convattn.lab.training.examples import TrainingExamples
from convattn.lab.training.hosts import check_equal, is_first
from convattn.lab.training.session import Outcome
from convattn.lab.training.settings import TrainingSettings
from convattn.lab.training.snapshots import Snapshot
from convattn.lab.training.state import with_named_arrays
from convattn.lab.training.trainer import check_examples, train
from convattn.temporary import is_beside

# What a run writes before its settings; with these alone a folder holds no run yet.
BEFORE_SETTINGS = (LOCK, INITIAL, PRUNING, CONVERSION, RUN)
ELSEWHERE = "images.source"  # another machine may have the same images in another place
BUNDLED = ", bundled; --data or --download takes others"


@dataclass(frozen=True)
class Experiment:
    """What a run is made of.

    Attributes:
        settings: All that decides the run; they become `config.json`.
        data: What is put on record about the examples: name, sizes, SHA-256.
        summary: What the result says besides the outcome, of a run that has ended or was stopped.
        data_name: Under which name `run.json` holds the data.
        title: A line about the examples.
    """

    settings: Any
    training: TrainingSettings
    model: nnx.Module
    examples: TrainingExamples
    data: dict[str, Any]
    summary: Callable[[Outcome], dict[str, Any]]
    data_name: str = "data"
    title: str = ""
    snapshot: Snapshot | None = None


def launch(
    settings: RunSettings,
    folder: Path,
    *,
    command: str,
    console: Console | None = None,
    initial: dict[str, np.ndarray] | None = None,
) -> Outcome:
    """`run_experiment` of the images and the model that the settings name.

    Raises:
        ValueError: If the folder holds something else, or the images have changed since the run
            began; and what `read_dataset` and `train` raise.
    """
    if is_first():
        check_folder(folder, settings)
    dataset = read_dataset(settings.images.source, classes=settings.images.classes)
    images = training_images(dataset, settings)
    experiment = Experiment(
        settings,
        settings.training,
        make_model(settings, dataset),
        images,
        image_facts(dataset, images, settings),
        lambda outcome: {"test_images": len(dataset.test), "images": dataset.title},
        "images",
        f"images: {dataset.title}{'' if settings.images.source else BUNDLED}",
        partial(attention_snapshot, image_size=image_size_of(dataset, settings)),
    )
    return run_experiment(experiment, folder, command=command, console=console, initial=initial)


def run_experiment(
    experiment: Experiment,
    folder: Path,
    *,
    command: str,
    console: Console | None = None,
    initial: dict[str, np.ndarray] | None = None,
) -> Outcome:
    """Train in this folder, or go on where it was left.

    Of several processes that train together the first alone has the folder and the console.

    Args:
        folder: New, empty, or of a run with the same settings.
        command: What repeats the run, for its record.
        console: Where progress is shown.
        initial: Parameters to begin with, by name; random if not given.

    Raises:
        ValueError: If the folder holds something else, or the examples have changed since the run
            began; and what `train` raises.
    """
    if console is None or not is_first():
        console = Console(quiet=True)
    training = experiment.training
    check_examples(experiment.examples, training)
    data_mesh(training.batch_size, training.devices, everywhere=True)
    # All that can be refused is, in every process, before there is a folder.
    decisive = flattened(to_json(experiment.settings))
    check_equal({name: value for name, value in decisive.items() if name != ELSEWHERE})
    if is_first():
        check_folder(folder, experiment.settings)
    console.print("\n".join(filter(None, (f"run: {folder}", experiment.title))))
    session = partial(
        train,
        experiment.model,
        experiment.examples,
        training,
        folder=folder,
        console=console,
        snapshot=experiment.snapshot,
        held=True,
    )
    if not is_first():
        return session()
    with hold_folder(folder):
        return _train(RunDirectory(folder), experiment, command, initial, session, console)


def _train(
    directory: RunDirectory,
    experiment: Experiment,
    command: str,
    initial: dict[str, np.ndarray] | None,
    session: Callable[[], Outcome],
    console: Console,
) -> Outcome:
    check_folder(directory.path, experiment.settings)  # again: nobody else can change it now
    begun, model = (directory.path / CONFIG).exists(), experiment.model
    check_initial(directory, initial)
    initial = directory.read_initial() if begun else initial
    if initial is not None:
        nnx.update(model, with_named_arrays(nnx.state(model, nnx.Param), initial))
        if not begun:
            directory.write_initial(initial)
    facts = facts_of(command, experiment.training.seed)
    facts |= {experiment.data_name: experiment.data, "initial": directory.initial_digest()}
    record_facts(directory, facts, experiment.data_name)
    if not begun:
        directory.write_settings(experiment.settings)  # last: without them there is no run
    before = directory.read_result()
    if before is not None and before["status"] == "finished":
        console.print("this run is finished: no step is left to train")
    began = time.process_time()
    outcome = session()
    pruning = directory.read_pruning()
    if pruning is not None:  # before the result, with which the run is complete
        directory.write(PRUNING, {**pruning, "after": outcome.test_accuracy})
    if before is None or before["status"] != outcome.status:  # a finished run says it once
        result = result_of(outcome, experiment.training.devices) | experiment.summary(outcome)
        result["processor_seconds_of_last_sitting"] = time.process_time() - began
        directory.write(RESULT, result)
    return outcome


def check_folder(folder: Path, settings: Any) -> None:
    """Refuse a folder that holds something else than a run with these settings.

    Raises:
        ValueError: As described above.
    """
    for place in (folder, *folder.parents):
        if place.exists() and not place.is_dir():
            raise ValueError(f"{place} is a file, but the folder of a run was expected")
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


def check_initial(directory: RunDirectory, given: dict[str, np.ndarray] | None) -> None:
    """Refuse other parameters than the run began with, and drawn ones where it was to be pruned.

    Raises:
        ValueError: As described above.
    """
    if not (directory.path / CONFIG).exists():
        left = [name for name in (INITIAL, PRUNING, CONVERSION) if (directory.path / name).exists()]
        if given is None and left:
            raise ValueError(
                f"{directory.path} holds {' and '.join(left)} of a run that was to go on from "
                "another one's parameters; repeat the command that pruned or converted it, or take "
                "another folder"
            )
        return
    if given is None:
        return
    begun = directory.read_initial() or {}
    if begun.keys() != given.keys() or any(
        not np.array_equal(begun[name], given[name]) for name in given
    ):
        raise ValueError(
            f"{directory.path} holds a run that began with other parameters; take another folder, "
            "or --resume it as it is"
        )
