"""Records of runs, for the rows that stand for experiments."""

import copy
import dataclasses
from typing import Any

from convattn.lab.data.download import ARCHIVES
from convattn.lab.records.experiments import Row
from convattn.lab.records.reasons import DEVIATION, MEAN
from convattn.lab.settings import to_json

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
        kept = [list(range(count + 1, 10)) for count in removed]
        model = dataclasses.replace(settings.model, heads=tuple(map(len, kept)))
        settings = dataclasses.replace(settings, model=model)
        pruning = {
            "source": {
                "config": to_json(row.source),
                "result": {"status": "finished", "step": 150_000, "steps": 150_000},
                "images_sha256": IMAGES["sha256"],
            },
            "thresholds": {"largest": 1e-5, "condition": 1e5},
            "kept": kept,
            "removed": list(removed),
            "epochs_before": 300,
            "before": 0.934,
            "pruned": 0.9,
            "after": accuracy,
        }
    git = {"commit": "c" * 40, "changed": False}
    steps = 500 * training.epochs
    return {
        "claim": row.claim,
        "config": to_json(settings),
        "run": {"seed": 5, "images": IMAGES, "git": git, "sittings": [{"git": git}, {"git": git}]},
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


def changed(record: dict[str, Any], where: str, value: Any) -> dict[str, Any]:
    """The record with another value at a dotted place, or without that place if it is `GONE`."""
    found = copy.deepcopy(record)
    inner = found
    *outer, last = where.split(".")
    for name in outer:
        inner = inner[name]
    if value is GONE:
        del inner[last]
    else:
        inner[last] = value
    return found


# What makes a run a reduced one: the place, the value, and what the refusal says of it.
REDUCED = (
    ("config.training.epochs", 30, "training.epochs is 30, not 300"),
    ("config.model.width", 64, "model.width is 64, not 400"),
    ("config.model.heads", [9, 9, 9], r"model.heads is \[9, 9, 9\], not"),
    ("config.training.optimizer", "adamw", "training.optimizer is adamw, not sgd"),
    ("config.training.learning_rate", 0.01, "training.learning_rate is 0.01, not 0.1"),
    ("config.images.validation", 0.1, "images.validation is 0.1, not 0.0"),
    ("config.model.encoding", "biased", "model.encoding is biased"),
    ("config.model.kernel", 3, "model.kernel is 3, not None"),
    ("result.status", "stopped", "it is stopped at step"),
    ("result.step", 1000, "it is finished at step 1000 of 150000, but its epochs have 150000"),
    ("result.steps", 1, "at step 150000 of 1, but its epochs have 150000"),
    ("result.test_images", 500, "it was tested on 500 images"),
    ("result.test_accuracy", 93.8, r"its accuracy is 93\.8, no fraction"),
    ("result.test_accuracy", -0.1, r"its accuracy is -0\.1, no fraction"),
    ("result.test_accuracy", float("nan"), "its accuracy is nan"),
    ("result.test_accuracy", "0.938", r"its accuracy is 0\.938, no fraction"),
    ("result.test_accuracy", None, "its accuracy is None"),
    ("result.test_accuracy", 0.93805, r"its accuracy is 0\.93805, no fraction of 10000 images"),
    ("config.model.kind", "resnet", "its model is a resnet"),
    ("run.git", None, "the commit that it was made with is not known"),
    ("run.git.changed", True, "code that was changed since its commit"),
    ("run.sittings", [{"git": {"commit": "c" * 40, "changed": True}}], "code that was changed"),
    ("run.sittings", [{"git": {"commit": "d" * 40, "changed": False}}], "several commits"),
    ("run.images.archive_md5", None, r"not read from an official archive of CIFAR-10 .MD5 None"),
    ("run.images.archive_md5", ARCHIVES["cifar100-binary"].md5, "not read from an official"),
    ("run.images.mean", [float("nan")] * 3, "the mean of its images is"),
    ("initial", "cd" * 32, "it began with the parameters of another run"),
    ("pruning", {"removed": [1] * 6}, "it began with the parameters of another run"),
    ("run.images.note", "JPEG-recompressed", "its images are CIFAR-10 JPEG-recompressed"),
    ("run.images.name", "CIFAR-10, slice of 2,000 + 500", "its images are CIFAR-10, slice of"),
    ("run.images.train", 45_000, "it has .45000, 0, 10000. images"),
    ("run.images.test", 500, "it has .50000, 0, 500. images"),
    ("run.images.mean", [0.5, 0.5, 0.5], "the mean of its images is"),
    ("run.images.std", [0.25, 0.25, 0.25], "the std of its images is"),
    ("claim", "C20.eq3", "it was recorded for C20.eq3"),
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
    ("pruning", None, "no heads were pruned for it"),
    ("initial", None, "no heads were pruned for it"),
    ("pruning.thresholds.largest", 1e-3, "its heads were pruned by .*0.001"),
    ("pruning.thresholds.condition", 10, "its heads were pruned by"),
    ("pruning.thresholds", {}, "its heads were pruned by {}"),
    ("pruning.removed", [2, 4, 1, 2, 5, 0], "5 of 9 heads were pruned, but"),
    ("pruning.removed", [0] * 6, "but expected some of 6 layers"),
    ("pruning.removed", [2, 4, 1], "but expected some of 6 layers"),
    ("pruning.removed", [2.0, 4, 1, 2, 6, 0], "but expected some of 6 layers"),
    ("pruning.removed", [-1, 4, 1, 2, 6, 0], "-1 of 9 heads were pruned, but"),
    ("pruning.kept", [[4, 3, 5, 6, 7, 8, 9]] + [[]] * 5, "2 of 9 heads were pruned, but"),
    ("pruning.kept", [[4, 5, 6, 7, 8, 9, 10]] + [[]] * 5, "2 of 9 heads were pruned, but"),
    ("pruning.kept", [[0, 3, 4, 5, 6, 7, 8]] + [[]] * 5, "2 of 9 heads were pruned, but"),
    ("pruning.epochs_before", 30, "after 30 epochs, not after 300"),
    ("pruning.source.config.training.epochs", 3000, "that was pruned training.epochs is 3000"),
    ("pruning.source.config.model.heads", [16] * 6, "that was pruned model.heads is"),
    ("pruning.source.result", None, "the run that was pruned did not take all of 150000 steps"),
    (
        "pruning.source.result.status",
        "stopped",
        "the run that was pruned did not take all of 150000 steps",
    ),
    ("pruning.source.result.step", 500, "the run that was pruned did not take all of 150000 steps"),
    ("pruning.source.images_sha256", "00", "the run that was pruned had other images"),
    ("pruning.after", None, "pruning.json gives the accuracy None"),
    ("pruning.kept", GONE, "its record is damaged"),
    ("pruning.kept", 3, "its record is damaged"),
    ("pruning.source", GONE, "its record is damaged"),
    ("config.training.epochs", "12", "its record is damaged"),
    ("config.training.epochs", 31, "training.epochs is 31, not 30"),
    ("config.training.learning_rate", 0.1, r"learning_rate is 0\.1, not 0\.01"),
    ("config.model.heads", [9] * 6, "model.heads is"),
)
