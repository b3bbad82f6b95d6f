"""Accuracy over the epochs of one or several runs: Figures 2 and 13 of C20."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from convattn.analysis.picture import new_figure
from convattn.analysis.run_summary import read_summary
from convattn.training.metrics import read_metrics

PRUNING = "pruning.json"


@dataclass(frozen=True)
class AccuracyCurves:
    """The accuracies of a run.

    **Fields:**

    - `label`: name, images and final figure.
    - `train`, `test`: `[points, 2]`, epoch and accuracy.
    """

    label: str
    train: np.ndarray
    test: np.ndarray


def accuracy_curves(path: Path) -> AccuracyCurves:
    """The curves of a run. A pruned run's epochs go on from those of the run that was pruned.

    **Raises:** `ValueError` if it is not the folder of a run, or has no metrics yet.
    """
    summary = read_summary(path)
    lines = read_metrics(path)
    if not lines:
        raise ValueError(f"{path} has no metrics yet; wait until its first epoch has ended")
    before = epochs_before(path)

    def points(name: str) -> np.ndarray:
        found = [(before + line["epoch"], line[name]) for line in lines if name in line]
        return np.array(found, np.float64).reshape(-1, 2)

    label = f"{summary.name}: {summary.accuracy_text}, {summary.images}"
    return AccuracyCurves(label, points("train_accuracy"), points("test_accuracy"))


def epochs_before(path: Path) -> int:
    """How many epochs the run had been trained for before it was pruned; else 0."""
    place = path / PRUNING
    return json.loads(place.read_text())["epochs_before"] if place.exists() else 0


def draw_curves(curves: Sequence[AccuracyCurves]) -> Any:
    """A figure: accuracy on the test images thick, on the training images thin."""
    figure = new_figure(8, 4.5 + 0.25 * len(curves))
    axes = figure.add_subplot()
    for number, curve in enumerate(curves):
        color = f"C{number % 10}"
        axes.plot(*curve.train.T, color=color, linewidth=0.6, gid=f"train-{number}")
        axes.plot(*curve.test.T, color=color, linewidth=2, label=curve.label, gid=f"test-{number}")
    axes.set(xlabel="epoch", ylabel="accuracy", ylim=(0, 1))
    axes.set_title("accuracy; thick: test images, thin: training images as varied", fontsize=10)
    axes.grid(visible=True, alpha=0.3)
    figure.legend(loc="outside lower left", fontsize=8)
    return figure
