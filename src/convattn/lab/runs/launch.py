"""`launch`: from settings to a trained model and the folder of its run."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from flax import nnx
from rich.console import Console

from convattn.files import FILE_NAME as LOCK
from convattn.files import hold_folder
from convattn.lab.data.datasets import Dataset, read_dataset
from convattn.lab.runs.attention_snapshot import attention_snapshot
from convattn.lab.runs.directory import CONFIG, CONVERSION, INITIAL, PRUNING, RUN, RunDirectory
from convattn.lab.runs.facts import facts_of, record_facts, result_of
from convattn.lab.runs.materials import image_size_of, make_model, training_images
from convattn.lab.runs.settings import RunSettings, named_fields
from convattn.lab.settings import changed_fields
from convattn.lab.training.devices import data_mesh
from convattn.lab.training.hosts import check_equal, is_first
from convattn.lab.training.session import Outcome
from convattn.lab.training.state import with_named_arrays
from convattn.lab.training.trainer import check_examples, train

# What a run writes before its settings; with these alone a folder holds no run yet.
BEFORE_SETTINGS = (LOCK, INITIAL, PRUNING, CONVERSION, RUN)
HALF_WRITTEN = tuple(f".{name}." for name in (CONFIG, *BEFORE_SETTINGS[1:]))

BUNDLED = ", bundled; --data or --download takes others"


def launch(
    settings: RunSettings,
    folder: Path,
    *,
    command: str,
    console: Console | None = None,
    initial: dict[str, np.ndarray] | None = None,
) -> Outcome:
    """Train what the settings say in this folder, or go on where it was left.

    Of several processes that train together the first alone has the folder and the console.

    Args:
        folder: New, empty, or of a run with the same settings.
        command: What repeats the run, for its record.
        console: Where progress is shown.
        initial: Parameters to begin with, by name; drawn if not given.

    Raises:
        ValueError: If the folder holds something else, or the images have changed since the run
            began; and what `read_dataset` and `train` raise.
    """
    directory = RunDirectory(folder)
    if is_first():
        check_folder(directory, settings)
    if console is None or not is_first():
        console = Console(quiet=True)
    dataset = read_dataset(settings.images.source, classes=settings.images.classes)
    images = training_images(dataset, settings)
    check_examples(images, settings.training)
    data_mesh(settings.training.batch_size, settings.training.devices, everywhere=True)
    model = make_model(settings, dataset)
    # All that can be refused is, in every process, before there is a folder.
    check_equal(named_fields(settings))
    facts = facts_of(dataset, images, settings, command)
    console.print(f"run: {folder}")
    console.print(f"images: {dataset.title}{'' if settings.images.source else BUNDLED}")
    sitting = partial(
        train,
        model,
        images,
        settings.training,
        folder=folder,
        console=console,
        snapshot=partial(attention_snapshot, image_size=image_size_of(dataset, settings)),
        held=True,
    )
    if not is_first():
        return sitting()
    with hold_folder(folder):
        return _train(directory, settings, facts, initial, dataset, model, sitting)


def _train(
    directory: RunDirectory,
    settings: RunSettings,
    facts: dict[str, Any],
    initial: dict[str, np.ndarray] | None,
    dataset: Dataset,
    model: nnx.Module,
    sitting: Callable[[], Outcome],
) -> Outcome:
    check_folder(directory, settings)  # again, now that nobody else can change it
    begun = (directory.path / CONFIG).exists()
    check_initial(directory, initial)
    initial = directory.read_initial() if begun else initial
    if initial is not None:
        nnx.update(model, with_named_arrays(nnx.state(model, nnx.Param), initial))
        if not begun:
            directory.write_initial(initial)
    record_facts(directory, {**facts, "initial": directory.initial_digest()})
    if not begun:
        directory.write_settings(settings)  # last: without them there is no run
    outcome = sitting()
    pruning = directory.read_pruning()
    if pruning is not None:  # before the result, with which the run is complete
        directory.write_pruning({**pruning, "after": outcome.test_accuracy})
    before = directory.read_result()
    if before is None or before["status"] != outcome.status:  # a finished run says it once
        directory.write_result(result_of(outcome, dataset, settings.training.devices))
    return outcome


def check_folder(directory: RunDirectory, settings: RunSettings) -> None:
    """Refuse a folder that holds something else.

    Raises:
        ValueError: As described above.
    """
    path = directory.path
    if path.exists() and not path.is_dir():
        raise ValueError(f"{path} is a file, but the folder of a run was expected")
    if not path.is_dir() or all(
        child.name in BEFORE_SETTINGS or child.name.startswith(HALF_WRITTEN)
        for child in path.iterdir()
    ):
        return
    stored = directory.read_settings()
    if stored != settings:
        changed = ", ".join(changed_fields(stored, settings))
        raise ValueError(
            f"{path} holds a run with other settings (they differ in {changed}); take another "
            "folder, or --resume it as it is"
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
