"""Records of runs, for the rows that stand for experiments."""

import copy
import dataclasses
import functools
import operator
import re
from typing import Any

from convattn_lab.data.download import ARCHIVES
from convattn_lab.records.rows import DEVIATION, MEAN, Row
from convattn_lab.settings import to_json

GIT = {"commit": "c" * 40, "changed": False}
IMAGES = {
    "name": "CIFAR-10",
    "note": "",
    "train": 50_000,
    "validation": 0,
    "test": 10_000,
    "mean": list(MEAN),
    "std": list(DEVIATION),
    "sha256": "ab" * 32,
    "archive_md5": ARCHIVES["cifar10-binary"].md5,
}


def full_record(row: Row, accuracy: float, removed: tuple[int, ...] = (2, 4, 1, 2, 6, 0)) -> Any:
    """The record of a whole run as the row wants it; `removed` heads, if it wants them pruned."""
    training = dataclasses.replace(row.settings.training, seed=5, compute_dtype="bfloat16")
    settings: Any = dataclasses.replace(row.settings, training=training)
    pruning = None
    if row.source is not None:
        remaining = [list(range(count + 1, 10)) for count in removed]
        model = dataclasses.replace(settings.model, heads=tuple(map(len, remaining)))
        settings = dataclasses.replace(settings, model=model)
        pruning = {
            "source": {
                "config": to_json(row.source),
                "result": {"status": "finished", "step": 150_000, "steps": 150_000},
                "images_sha256": IMAGES["sha256"],
            },
            "thresholds": {"largest": 1e-5, "condition": 1e5},
            "kept": remaining,
            "removed": list(removed),
            "epochs_before": 300,
            "before": 0.934,
            "pruned": 0.9,
            "after": accuracy,
        }
    steps = 500 * training.epochs
    return {
        "claim": row.claim,
        "config": to_json(settings),
        "run": {"seed": 5, "images": IMAGES, "git": GIT, "sittings": [{"git": GIT}] * 2},
        "result": {
            "status": "finished",
            "step": steps,
            "steps": steps,
            "test_accuracy": accuracy,
            "test_images": 10_000,
            "device": "1 x cpu",
        },
        "pruning": pruning,
        "initial": None if pruning is None else "cd" * 32,
    }


GONE = object()


def name_of(where: str) -> str:
    """The pattern by which a message names a place; settings have the name that they have."""
    return re.escape(where.rpartition("config.")[2]) + r"( is |=|\.)"


def changed(record: dict[str, Any], where: str, value: Any) -> dict[str, Any]:
    """The record with another value at a dotted place, or without that place if it is `GONE`."""
    result = copy.deepcopy(record)
    *path, last = where.split(".")
    parent = functools.reduce(operator.getitem, path, result)
    if value is GONE:
        del parent[last]
    else:
        parent[last] = value
    return result


# What makes a run a reduced one: the place, and the value.
REDUCED = (
    ("config.training.epochs", 30),
    ("config.model.width", 64),
    ("config.model.heads", [9, 9, 9]),
    ("config.training.optimizer", "adamw"),
    ("config.training.learning_rate", 0.01),
    ("config.images.validation", 0.1),
    ("config.model.encoding", "biased"),
    ("config.model.kernel", 3),
    ("result.status", "stopped"),
    ("result.step", 1000),
    ("result.steps", 1),
    ("result.test_images", 500),
    ("result.test_accuracy", 93.8),
    ("result.test_accuracy", -0.1),
    ("result.test_accuracy", float("nan")),
    ("result.test_accuracy", "0.938"),
    ("result.test_accuracy", None),
    ("result.test_accuracy", 0.93805),
    ("config.model.kind", "resnet"),
    ("run.git", None),
    ("run.git.changed", True),
    ("run.git.changed", 0),
    ("run.sittings", [{"git": {"commit": "c" * 40, "changed": True}}]),
    ("run.images.archive_md5", None),
    ("run.images.archive_md5", ARCHIVES["cifar100-binary"].md5),
    ("run.images.mean", [float("nan")] * 3),
    ("initial", "cd" * 32),
    ("pruning", {"removed": [1] * 6}),
    ("run.images.note", "JPEG-recompressed"),
    ("run.images.name", "CIFAR-10, slice of 2,000 + 500"),
    ("run.images.train", 45_000),
    ("run.images.test", 500),
    ("run.images.mean", [0.5, 0.5, 0.5]),
    ("run.images.std", [0.25, 0.25, 0.25]),
    ("claim", "C20.eq3"),
)

# What is no record of a run at all.
DAMAGED = (
    ("claim", GONE),
    ("config", None),
    ("config.training", []),
    ("config.training.epochs", GONE),
    ("config.training.compute_dtype", GONE),
    ("config.model.kind", GONE),
    ("run", GONE),
    ("run.seed", "five"),
    ("run.images.mean", [0.4914]),
    ("run.images.std", GONE),
    ("run.images.archive_md5", GONE),
    ("run.images.archive_md5", {}),
    ("run.git", GONE),
    ("run.sittings", 3),
    ("result", {}),
    ("result.device", GONE),
    ("pruning", GONE),
    ("initial", GONE),
)
# What makes pruning another one than the paper's.
PRUNED_OTHERWISE = (
    ("pruning", None),
    ("initial", None),
    ("pruning.thresholds", {"largest": 1e-3, "condition": 1e5}),
    ("pruning.thresholds", {"largest": 1e-5, "condition": 10.0}),
    ("pruning.thresholds", {}),
    ("pruning.removed", [2, 4, 1, 2, 5, 0]),
    ("pruning.removed", [0] * 6),
    ("pruning.removed", [2, 4, 1]),
    ("pruning.removed", [-1, 4, 1, 2, 6, 0]),
    ("pruning.kept", [[4, 3, 5, 6, 7, 8, 9]] + [[]] * 5),
    ("pruning.kept", [[4, 5, 6, 7, 8, 9, 10]] + [[]] * 5),
    ("pruning.kept", [[0, 3, 4, 5, 6, 7, 8]] + [[]] * 5),
    ("pruning.epochs_before", 30),
    ("pruning.source.config.training.epochs", 3000),
    ("pruning.source.config.model.heads", [16] * 6),
    ("pruning.source.result", None),
    ("pruning.source.result.status", "stopped"),
    ("pruning.source.result.step", 500),
    ("pruning.source.images_sha256", "00"),
    ("pruning.after", None),
    ("pruning.kept", GONE),
    ("pruning.kept", 3),
    ("pruning.source", GONE),
    ("config.training.epochs", "12"),
    ("config.training.epochs", 31),
    ("config.training.epochs", True),
    ("config.training.learning_rate", 0.1),
    ("config.model.heads", [9] * 6),
)
