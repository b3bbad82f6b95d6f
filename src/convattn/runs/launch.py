"""`launch`: from settings to a trained model and the folder of its run."""

import dataclasses
import datetime
import hashlib
import importlib.metadata
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from rich.console import Console

from convattn.data.batches import Augmentation
from convattn.data.datasets import Dataset, read_dataset
from convattn.data.split import validation_split
from convattn.data.statistics import channel_statistics
from convattn.ledger.environment import device_environment, host_environment
from convattn.models.build import build_model
from convattn.runs.attention_snapshot import attention_snapshot
from convattn.runs.directory import CONFIG, RUN, RunDirectory
from convattn.runs.git_state import git_state
from convattn.runs.settings import ImageSettings, RunSettings
from convattn.training.images import TrainingImages
from convattn.training.state import named_arrays, with_named_arrays
from convattn.training.trainer import Outcome, train

PACKAGES = ("flax", "optax", "orbax-checkpoint", "tensorboardX")


def launch(
    settings: RunSettings,
    folder: Path,
    *,
    command: str,
    console: Console | None = None,
    initial: dict[str, np.ndarray] | None = None,
) -> Outcome:
    """Train what the settings say in this folder, or go on where it was left.

    **Arguments:**

    - `folder`: new, empty, or of a run with the same settings.
    - `command`: what repeats the run, for its record.
    - `console`: where progress is shown.
    - `initial`: parameters to begin with, by name; drawn if not given.

    **Raises:** `ValueError` if the folder holds something else, or the images have changed since
    the run began; and what `read_dataset` and `train` raise.
    """
    directory = RunDirectory(folder)
    check_folder(directory, settings)
    dataset = read_dataset(settings.images.source, classes=settings.images.classes)
    images = training_images(dataset, settings)
    model = make_model(settings, dataset)
    stored = directory.read_initial()
    check_initial(directory, stored, initial)
    initial = initial if stored is None else stored
    if initial is not None:
        nnx.update(model, with_named_arrays(nnx.state(model, nnx.Param), initial))
        directory.write_initial(initial)  # before the settings, without which there is no run
    directory.write_settings(settings)
    record_facts(directory, facts_of(dataset, images, settings, command))
    outcome = train(
        model,
        images,
        settings.training,
        folder=folder,
        console=console,
        snapshot=partial(attention_snapshot, image_size=image_size_of(dataset)),
    )
    directory.write_result(result_of(outcome, dataset))
    return outcome


def check_folder(directory: RunDirectory, settings: RunSettings) -> None:
    """Refuse a folder that holds something else.

    **Raises:** `ValueError`.
    """
    path = directory.path
    if path.exists() and not path.is_dir():
        raise ValueError(f"{path} is a file, but the folder of a run was expected")
    if not path.is_dir() or not any(path.iterdir()):
        return
    stored = directory.read_settings()
    if stored != settings:
        changed = [
            f"{part}.{field.name}"
            for part in ("model", "images", "training")
            for field in dataclasses.fields(getattr(settings, part))
            if getattr(getattr(settings, part), field.name)
            != getattr(getattr(stored, part), field.name, None)
        ]
        raise ValueError(
            f"{path} holds a run with other settings (they differ in {', '.join(changed)}); take "
            "another folder, or --resume it as it is"
        )


def check_initial(
    directory: RunDirectory,
    stored: dict[str, np.ndarray] | None,
    given: dict[str, np.ndarray] | None,
) -> None:
    """Refuse to go on from other parameters than the run began with.

    **Raises:** `ValueError`.
    """
    if given is None or not (directory.path / CONFIG).exists():
        return
    begun = {} if stored is None else stored
    if begun.keys() != given.keys() or any(
        not np.array_equal(begun[name], given[name]) for name in given
    ):
        raise ValueError(
            f"{directory.path} holds a run that began with other parameters; take another folder, "
            "or --resume it as it is"
        )


def training_images(dataset: Dataset, settings: RunSettings) -> TrainingImages:
    """The images of a run, split, with the statistics of those that are trained on."""
    given: ImageSettings = settings.images
    train, validation = dataset.train, None
    if given.validation:
        train, validation = validation_split(train, given.validation, seed=settings.training.seed)
    mean, std = channel_statistics(train)
    varied = Augmentation(given.crop, given.flip) if given.crop or given.flip else None
    return TrainingImages(train, dataset.test, mean, std, validation, varied)


def make_model(settings: RunSettings, dataset: Dataset) -> nnx.Module:
    """The model of a run, with the parameters that its seed draws."""
    return build_model(
        settings.model,
        classes=len(dataset.train.class_names),
        image_size=image_size_of(dataset),
        rngs=nnx.Rngs(settings.training.seed),
        dtype=jnp.dtype(settings.training.compute_dtype),
    )


def image_size_of(dataset: Dataset) -> tuple[int, int]:
    """(height, width) of the images."""
    _, height, width, _ = dataset.train.images.shape
    return height, width


def facts_of(
    dataset: Dataset, images: TrainingImages, settings: RunSettings, command: str
) -> dict[str, Any]:
    """What a run was made with and on."""
    versions = {name: importlib.metadata.version(name) for name in PACKAGES}
    return {
        "command": command,
        "seed": settings.training.seed,
        "environment": {**host_environment(), **versions, **device_environment()},
        "git": git_state(Path(__file__).parent),
        "images": {
            "name": dataset.name,
            "note": dataset.note,
            "size": list(image_size_of(dataset)),
            "classes": len(dataset.train.class_names),
            "train": len(images.train),
            "validation": 0 if images.validation is None else len(images.validation),
            "test": len(images.test),
            "mean": np.asarray(images.mean).tolist(),
            "std": np.asarray(images.std).tolist(),
            "sha256": digest_of(dataset),
        },
    }


def digest_of(dataset: Dataset) -> str:
    """SHA-256 of all pixels and labels, training images first.

    >>> digest_of(read_dataset())[:16]
    'f9aa71f92bdecb1f'
    """
    found = hashlib.sha256()
    for part in (dataset.train, dataset.test):
        found.update(np.ascontiguousarray(part.images).data)
        found.update(np.ascontiguousarray(part.labels).data)
    return found.hexdigest()


def record_facts(directory: RunDirectory, facts: dict[str, Any]) -> None:
    """Write `run.json`, or add this sitting to it: when, on what, and at which commit.

    **Raises:** `ValueError` if the images are not those with which the run began.
    """
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    sitting = {"started": now, "environment": facts["environment"], "git": facts["git"]}
    before: list[dict[str, Any]] = []
    if (directory.path / RUN).exists():
        begun = directory.read_facts()
        if begun["images"]["sha256"] != facts["images"]["sha256"]:
            raise ValueError(
                f"{directory.path} began on {begun['images']['name']}, but the images are others "
                "now; put the old ones back, or start a new run"
            )
        facts, before = begun, begun["sittings"]
    directory.write_facts({**facts, "sittings": [*before, sitting]})


def result_of(outcome: Outcome, dataset: Dataset) -> dict[str, Any]:
    """What a run may claim."""
    return {
        "status": outcome.status,
        "step": outcome.step,
        "steps": outcome.steps,
        "test_accuracy": outcome.test_accuracy,
        "test_loss": outcome.test_loss,
        "test_images": len(dataset.test),
        "images": " ".join(filter(None, [dataset.name, dataset.note and f"({dataset.note})"])),
        "device": f"{jax.device_count()} x {jax.devices()[0].device_kind}",
        "parameters": sum(
            array.size for array in named_arrays(nnx.state(outcome.model, nnx.Param)).values()
        ),
        "seconds": outcome.seconds,
    }
