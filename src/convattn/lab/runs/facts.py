"""What is put on record about a run: what it was made with and on, and what it may claim."""

import datetime
import hashlib
import importlib.metadata
import subprocess
from pathlib import Path
from typing import Any

import jax
import numpy as np

from convattn.lab.data.datasets import Dataset
from convattn.lab.models.sizes import parameter_count
from convattn.lab.runs.directory import CONFIG, INITIAL, RUN, RunDirectory
from convattn.lab.runs.materials import image_size_of
from convattn.lab.runs.settings import RunSettings
from convattn.lab.training.images import TrainingImages
from convattn.lab.training.session import Outcome
from convattn.ledger.environment import device_environment, host_environment

PACKAGES = ("flax", "optax", "orbax-checkpoint", "tensorboardX")


def facts_of(command: str, seed: int) -> dict[str, Any]:
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


def image_facts(dataset: Dataset, images: TrainingImages, settings: RunSettings) -> dict[str, Any]:
    """What a run was made on."""
    return {
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


def record_facts(directory: RunDirectory, facts: dict[str, Any], data: str) -> None:
    """Write `run.json`, or add this session to it: when, on what machine, and at which commit.

    Args:
        data: Under which name the facts hold those of the examples.

    Raises:
        ValueError: If the examples, or the parameters given to it, are not those with which the run
            began.
    """
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    session = {"started": now, "environment": facts["environment"], "git": facts["git"]}
    before: list[dict[str, Any]] = []
    if (directory.path / CONFIG).exists():  # else nothing has begun, whatever lies there
        begun = directory.read_facts()
        if begun[data]["sha256"] != facts[data]["sha256"]:
            raise ValueError(
                f"{directory.path} began on {begun[data]['name']}, but the {data} are others now; "
                "put the old ones back, or start a new run"
            )
        if begun.get("initial") != facts["initial"]:
            raise ValueError(
                f"{directory.path / INITIAL} is not the file with which the run began; put the old "
                "one back, or start a new run"
            )
        facts, before = begun, begun.get("sittings", [])
    directory.write(RUN, {**facts, "sittings": [*before, session]})


def result_of(outcome: Outcome, devices: int | None) -> dict[str, Any]:
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
