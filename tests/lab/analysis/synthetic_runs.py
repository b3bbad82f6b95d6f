"""Folders of runs that nobody trained: exactly the numbers that a test asks for."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from convattn_lab.models.settings import EncoderSettings, ResNetSettings
from convattn_lab.runs.directory import PRUNING, RESULT, RUN, RunDirectory
from convattn_lab.runs.settings import RunSettings
from convattn_lab.settings import to_json
from convattn_lab.training.settings import TrainingSettings
from convattn_lab.training.snapshots import write_snapshot

TINY = EncoderSettings(heads=(3, 2), width=8, inner=6)
TOKENS = (4, 5)


def write_run(
    path: Path,
    model: EncoderSettings | ResNetSettings = TINY,
    *,
    epochs: int = 4,
    train: Sequence[float] = (0.2, 0.3, 0.4, 0.5),
    test: Sequence[float | None] = (0.1, None, 0.3, 0.25),
    finished: bool = True,
    test_images: int = 500,
    name: str = "CIFAR-10, slice of 2,000 + 500",
    note: str = "",
    size: tuple[int, int] = (8, 10),
    snapshots: Mapping[int, Mapping[str, np.ndarray]] | None = None,
    validation: Sequence[float] = (),
    **training: Any,
) -> Path:
    """Write a folder as a run leaves it; snapshots are drawn from the seed if not given."""
    directory = RunDirectory(path)
    settings = RunSettings(model, training=TrainingSettings(epochs=epochs, **training))
    directory.write_settings(settings)
    images = {"name": name, "note": note, "train": 2000, "test": test_images}
    directory.write(RUN, {"images": {**images, "size": list(size), "classes": 10}})
    lines = []
    for epoch, (accuracy, test_accuracy) in enumerate(zip(train, test, strict=True), 1):
        line = {"step": 20 * epoch, "epoch": epoch, "train_accuracy": accuracy}
        lines.append(line if test_accuracy is None else {**line, "test_accuracy": test_accuracy})
    for line, accuracy in zip(lines, validation, strict=False):
        line["validation_accuracy"] = accuracy
    (path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    if finished:
        result = {"status": "finished", "test_accuracy": test[-1], "test_images": test_images}
        directory.write(RESULT, result)
    if snapshots is None:
        snapshots = {epoch: random_snapshot(model, epoch) for epoch in (0, 2, 4)}
    for epoch, arrays in snapshots.items():
        write_snapshot(path, epoch, dict(arrays))
    return path


def write_pruning(path: Path, **changes: Any) -> Path:
    """Say of a run that it was pruned."""
    source = {"config": to_json(RunSettings()), "result": {}, "images_sha256": ""}
    thresholds = {"largest": 1e-5, "condition": 1e5}
    remaining = [[1, 3, 4], [2, 3]]
    numbers = {
        "removed": [1, 1],
        "epochs_before": 300,
        "before": 0.3,
        "pruned": 0.05,
        "after": None,
    }
    content = {"source": source, "thresholds": thresholds, "kept": remaining, **numbers, **changes}
    RunDirectory(path).write(PRUNING, content)
    return path


def random_snapshot(
    model: EncoderSettings | ResNetSettings, seed: int, tokens: tuple[int, int] = TOKENS
) -> dict[str, np.ndarray]:
    """What a run keeps of its attention; the scores follow from centres and roots."""
    if isinstance(model, ResNetSettings):
        return {}
    rng = np.random.default_rng(seed)
    arrays = {}
    for number, heads in enumerate(model.heads, 1):
        centers = rng.normal(size=(heads, 2))
        roots = np.eye(2) + 0.2 * rng.normal(size=(heads, 2, 2))
        values = rng.normal(size=(heads, 6))
        arrays[f"layer{number}.scores"] = gaussian_scores(centers, roots, tokens)
        arrays[f"layer{number}.value_gram"] = values @ values.T
        if model.encoding in ("quadratic", "gaussian"):
            arrays[f"layer{number}.centers"] = centers
            arrays[f"layer{number}.root_precision"] = roots
    return {name: array.astype(np.float32) for name, array in arrays.items()}


def gaussian_scores(centers: np.ndarray, roots: np.ndarray, tokens: tuple[int, int]) -> np.ndarray:
    """-|R(δ - Δ)|²/2 at every shift, `[heads, row shifts, column shifts]`."""
    rows, columns = (np.arange(1 - side, side) for side in tokens)
    shifts = np.stack(np.meshgrid(rows, columns, indexing="ij"), axis=-1)
    scores = np.empty((len(centers), *shifts.shape[:2]))
    for head, (center, root) in enumerate(zip(centers, roots, strict=True)):
        scores[head] = -np.sum(((shifts - center) @ root.T) ** 2, axis=-1) / 2
    return scores
