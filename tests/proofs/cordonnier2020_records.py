"""Records of runs, for the rows that stand for experiments."""

import copy
import dataclasses
from typing import Any

from convattn.evidence.experiments import DEVIATION, MEAN, Row
from convattn.runs.codec import settings_to_json


def full_record(row: Row, accuracy: float, **changes: Any) -> dict[str, Any]:
    """The record of a whole run as the row wants it."""
    training = dataclasses.replace(row.settings.training, seed=5, compute_dtype="bfloat16")
    settings = dataclasses.replace(row.settings, training=training)
    images = {"name": "CIFAR-10", "note": "", "train": 50_000, "validation": 0, "test": 10_000}
    steps = 500 * training.epochs
    return {
        "claim": row.claim,
        "config": settings_to_json(settings),
        "run": {"seed": 5, "images": {**images, "mean": list(MEAN), "std": list(DEVIATION)}},
        "result": {
            "status": "finished",
            "step": steps,
            "steps": steps,
            "test_accuracy": accuracy,
            "device": "1 x cpu",
        },
        **changes,
    }


def changed(record: dict[str, Any], where: str, value: Any) -> dict[str, Any]:
    """The record with another value at a dotted place."""
    found = copy.deepcopy(record)
    inner = found
    *outer, last = where.split(".")
    for name in outer:
        inner = inner[name]
    inner[last] = value
    return found


# What makes a run a reduced one: the place, the value, and what the refusal says of it.
REDUCED = (
    ("config.training.epochs", 30, "training.epochs is 30, not 300"),
    ("config.model.width", 64, "model.width is 64, not 400"),
    ("config.model.heads", [9, 9, 9], r"model.heads is \(9, 9, 9\), not"),
    ("config.training.optimizer", "adamw", "training.optimizer is adamw, not sgd"),
    ("config.training.learning_rate", 0.01, "training.learning_rate is 0.01, not 0.1"),
    ("config.images.validation", 0.1, "images.validation is 0.1, not 0.0"),
    ("config.model.encoding", "biased", "model.encoding is biased"),
    ("config.model.kernel", 3, "model.kernel is 3, not None"),
    ("result.status", "stopped", "it is stopped at step"),
    ("result.step", 1000, "it is finished at step 1000 of"),
    ("run.images.note", "JPEG-recompressed", "its images are CIFAR-10 JPEG-recompressed"),
    ("run.images.name", "CIFAR-10, slice of 2,000 + 500", "its images are CIFAR-10, slice of"),
    ("run.images.train", 45_000, "it has .45000, 0, 10000. images"),
    ("run.images.test", 500, "it has .50000, 0, 500. images"),
    ("run.images.mean", [0.5, 0.5, 0.5], "the mean of its images is"),
    ("run.images.std", [0.25, 0.25, 0.25], "the std of its images is"),
    ("claim", "C20.eq3", "it was recorded for C20.eq3"),
)
