"""What is put on record about a run: what it was made with and on, and what it may claim."""

import datetime
import hashlib
import importlib.metadata
from pathlib import Path
from typing import Any

import jax
import numpy as np
from flax import nnx

from convattn.lab.data.datasets import Dataset
from convattn.lab.runs.directory import CONFIG, INITIAL, RunDirectory
from convattn.lab.runs.git_state import git_state
from convattn.lab.runs.materials import image_size_of
from convattn.lab.runs.settings import RunSettings
from convattn.lab.training.images import TrainingImages
from convattn.lab.training.session import Outcome
from convattn.lab.training.state import named_arrays
from convattn.ledger.environment import device_environment, host_environment

PACKAGES = ("flax", "optax", "orbax-checkpoint", "tensorboardX")


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
            "size": list(image_size_of(dataset, settings)),
            "classes": len(dataset.train.class_names),
            "train": len(images.train),
            "validation": 0 if images.validation is None else len(images.validation),
            "test": len(images.test),
            "mean": np.asarray(images.mean).tolist(),
            "std": np.asarray(images.std).tolist(),
            "sha256": digest_of(dataset),
            "archive_md5": archive_md5(settings.images.source),
        },
    }


def archive_md5(source: str | None) -> str | None:
    """MD5, by which CIFAR's publisher names its archives, of the one that was read.

    Returns:
        Hexadecimal digits; None for a folder and for the bundled slice.

    >>> archive_md5(None) is None
    True
    """
    if source is None or not Path(source).is_file():
        return None
    with Path(source).open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def digest_of(dataset: Dataset) -> str:
    """SHA-256 of all pixels and labels, training images first.

    >>> from convattn.lab.data.datasets import read_dataset
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

    Raises:
        ValueError: If the images, or the parameters given to it, are not those with which the run
            began.
    """
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    sitting = {"started": now, "environment": facts["environment"], "git": facts["git"]}
    before: list[dict[str, Any]] = []
    if (directory.path / CONFIG).exists():  # else nothing has begun, whatever lies there
        begun = directory.read_facts()
        if begun["images"]["sha256"] != facts["images"]["sha256"]:
            raise ValueError(
                f"{directory.path} began on {begun['images']['name']}, but the images are others "
                "now; put the old ones back, or start a new run"
            )
        if begun.get("initial") != facts.get("initial"):
            raise ValueError(
                f"{directory.path / INITIAL} is not the file with which the run began; put the old "
                "one back, or start a new run"
            )
        facts, before = begun, begun["sittings"]
    directory.write_facts({**facts, "sittings": [*before, sitting]})


def result_of(outcome: Outcome, dataset: Dataset, devices: int | None) -> dict[str, Any]:
    """What a run may claim.

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
        "test_images": len(dataset.test),
        "images": dataset.title,
        "device": f"{count} x {jax.devices()[0].device_kind}",
        "parameters": sum(
            array.size for array in named_arrays(nnx.state(outcome.model, nnx.Param)).values()
        ),
        "seconds": outcome.seconds,
    }
