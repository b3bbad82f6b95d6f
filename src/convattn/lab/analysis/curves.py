"""Accuracy over the epochs of one or several runs: Figures 2 and 13 of C20."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from convattn.lab.analysis.run_summary import read_pruning, read_summary
from convattn.lab.training.metrics import read_metrics
from convattn.networks.diagnosis.picture import (
    FEW_POINTS,
    epoch_axis,
    new_figure,
    text_height,
    wrapped,
)

WIDTH, LABEL_POINTS = 8.0, 8.0


@dataclass(frozen=True)
class AccuracyCurves:
    """The accuracies of a run.

    Attributes:
        label: Name, final accuracy and images.
        train, test: `[points, 2]`, epoch and accuracy. The test curve of a pruned run begins with
            the accuracy right after pruning.
    """

    label: str
    train: np.ndarray
    test: np.ndarray


def accuracy_curves(path: Path) -> AccuracyCurves:
    """The curves of a run. A pruned run's epochs go on from those of the run that was pruned."""
    summary = read_summary(path)
    lines = require_metrics(path)
    pruning = read_pruning(path)
    before = 0 if pruning is None else pruning.epochs_before
    first = [] if pruning is None or pruning.pruned is None else [(before, pruning.pruned)]

    start = np.array(first, float).reshape(-1, 2)
    train, test = (points_of(lines, f"{name}_accuracy", before) for name in ("train", "test"))
    return AccuracyCurves(summary.described(), train, np.concatenate([start, test]))


def require_metrics(path: Path) -> list[dict[str, Any]]:
    """The metrics of a run; a ValueError if there are none."""
    lines = read_metrics(path)
    if not lines:
        raise ValueError(f"{path} has no metrics yet; wait until its first epoch has ended")
    return lines


def points_of(lines: Sequence[dict[str, Any]], name: str, before: int = 0) -> np.ndarray:
    """A quantity over the epochs, `[points, 2]`, after so many of the run before."""
    found = [(before + line["epoch"], line[name]) for line in lines if name in line]
    return np.array(found, float).reshape(-1, 2)


def draw_curves(curves: Sequence[AccuracyCurves]) -> Any:
    """A figure: accuracy on the test images thick, on the training images thin."""
    labels = [wrapped(curve.label, WIDTH - 1, LABEL_POINTS) for curve in curves]
    figure = new_figure(WIDTH, 4.5 + sum(text_height(label, LABEL_POINTS) for label in labels))
    axes = figure.add_subplot()
    for number, curve in enumerate(curves):
        color = f"C{number % 10}"
        for points, how in (
            (curve.train, {"linewidth": 0.6, "markersize": 2.5, "gid": f"train-{number}"}),
            (curve.test, {"linewidth": 2, "markersize": 5, "gid": f"test-{number}"}),
        ):
            marker = "o" if len(points) <= FEW_POINTS else None
            axes.plot(*points.T, color=color, marker=marker, **how)
        axes.lines[-1].set_label(labels[number])
    epoch_axis(axes)
    axes.set(xlabel="epoch", ylabel="accuracy", ylim=(0, 1))
    axes.set_title("accuracy; thick: test images, thin: training images, augmented", fontsize=10)
    axes.grid(visible=True, alpha=0.3)
    legend = figure.legend(loc="outside lower left", fontsize=LABEL_POINTS)
    for text in legend.get_texts():
        text.set_parse_math(False)
    return figure
