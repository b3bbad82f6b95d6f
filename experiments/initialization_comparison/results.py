"""What is reported of one run: a JSON file of its own."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import TypeAdapter, ValidationError

from convattn.files import read_file, write_file
from convattn.settings import explained, settings
from convattn_lab.settings import to_json

Number = float | None  # None, null in the file, if it is not finite


@settings
class Epoch:
    """Means over an epoch of training, with augmentation."""

    epoch: int
    train_loss: float
    train_accuracy: float


@settings
class Snapshot:
    """The network after an epoch, 0 before the first step; what `compute_metrics` returns."""

    epoch: int
    distance: tuple[Number, ...]
    attention_distance: tuple[tuple[Number, ...], ...]
    one_shift: tuple[tuple[Number, ...], ...]
    score_gradient: Number
    validation_loss: Number
    validation_accuracy: Number


@settings
class Result:
    """One run that has ended.

    Attributes:
        initializer, images, learning_rate, seed: Of its `Trial`.
        dataset, sha256, classes: The data, their digest, and how many classes they have.
        settings: All that decided the run.
        diverged: Whether a loss was not finite; then there are no losses and no accuracy.
        validation_loss: At the end, of all validation images.
        test_loss, test_accuracy: At the end; None of runs that tune.
        seconds: Of training, compilation and evaluations included; None if it diverged.
        curve, snapshots: Over the epochs.
    """

    schema: Literal[2]
    initializer: str
    images: int
    learning_rate: float
    seed: int
    dataset: str
    sha256: str
    classes: int
    settings: dict[str, Any]
    diverged: bool
    validation_loss: Number
    test_loss: Number
    test_accuracy: Number
    seconds: Number
    curve: tuple[Epoch, ...]
    snapshots: tuple[Snapshot, ...]


def write_result(path: Path, result: Result) -> None:
    """Write the file; its folder is made if it is missing."""
    text = json.dumps(to_json(result), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, (text + "\n").encode())


def read_results(folder: Path, sha256: str | None = None) -> dict[str, Result]:
    """The results in a folder, by the names of their files.

    Args:
        sha256: The digest of the data that they must be of; None if any will do, the same of all.

    Raises:
        ValueError: For a file that is no such result, and for results of other data.
    """
    results: dict[str, Result] = {}
    for path in sorted(folder.glob("*.json")):
        try:
            result = TypeAdapter(Result).validate_json(read_file(path))
        except ValidationError as error:
            raise ValueError(
                f"{path} is no result of experiments/initialization.py: {explained(error)}; remove "
                "it, and the run is repeated"
            ) from error
        sha256 = sha256 or result.sha256
        if result.sha256 != sha256:
            raise ValueError(
                f"{path} is a result of other images ({result.dataset}, SHA-256 "
                f"{result.sha256[:8]}…, but expected {sha256[:8]}…); give another --output-dir, or "
                "the images of these results"
            )
        results[path.stem] = result
    return results


def numbers(arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Lists of four significant digits, for a small file; None for what is not finite.

    >>> numbers({"norm": np.array([0.123456, np.inf])})
    {'norm': (0.1235, None)}
    """
    return {name: _plain(array.tolist()) for name, array in arrays.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_plain, value))
    return float(f"{value:.4g}") if math.isfinite(value) else None
