"""Accuracy and loss over the epochs of one or several runs: Figures 2 and 13 of C20."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from convattn.diagnosis.picture import new_figure, text_height, wrapped
from convattn_lab.analysis.panels import MAX_MARKED_POINTS, epoch_axis
from convattn_lab.analysis.run_summary import read_pruning, read_summary
from convattn_lab.training.metrics import read_metrics

WIDTH, LABEL_POINTS = 9.0, 8.0


@dataclass(frozen=True)
class RunCurves:
    """The accuracies and losses of a run.

    Attributes:
        label: Name, final accuracy and images.
        train, test: `[points, 2]`, epoch and accuracy from 0 to 1. The test curve of a pruned run
            begins with the accuracy right after pruning.
        train_loss, test_loss: `[points, 2]`, epoch and mean cross-entropy in nats.
    """

    label: str
    train: np.ndarray
    test: np.ndarray
    train_loss: np.ndarray
    test_loss: np.ndarray


def run_curves(path: Path) -> RunCurves:
    """The curves of a run. A pruned run's epochs go on from those of the run that was pruned."""
    summary = read_summary(path)
    lines = require_metrics(path)
    pruning = read_pruning(path)
    before = 0 if pruning is None else pruning.epochs_before
    first = [] if pruning is None or pruning.pruned is None else [(before, pruning.pruned)]

    start = np.array(first, float).reshape(-1, 2)
    train, test = (points_of(lines, f"{name}_accuracy", before) for name in ("train", "test"))
    losses = (points_of(lines, f"{name}_loss", before) for name in ("train", "test"))
    return RunCurves(summary.described(), train, np.concatenate([start, test]), *losses)


def require_metrics(path: Path) -> list[dict[str, Any]]:
    """The metrics of a run; a ValueError if there are none."""
    lines = read_metrics(path)
    if not lines:
        raise ValueError(f"{path} has no metrics yet; wait until its first epoch has ended")
    return lines


def points_of(lines: Sequence[dict[str, Any]], name: str, before: int = 0) -> np.ndarray:
    """A quantity over the epochs, `[points, 2]`, after so many of the run before."""
    points = [(before + line["epoch"], line[name]) for line in lines if name in line]
    return np.array(points, float).reshape(-1, 2)


def draw_curves(curves: Sequence[RunCurves]) -> Any:
    """A figure: accuracy in percent, as in the legend, and loss; the test images' lines thick."""
    labels = [wrapped(curve.label, WIDTH - 1, LABEL_POINTS) for curve in curves]
    figure = new_figure(WIDTH, 3.7 + sum(text_height(label, LABEL_POINTS) for label in labels))
    accuracy, loss = figure.subplots(1, 2)
    for number, curve in enumerate(curves):
        percent = np.array([1, 100])
        _draw_run(accuracy, number, curve.train * percent, curve.test * percent, "accuracy")
        _draw_run(loss, number, curve.train_loss, curve.test_loss, "loss")
        accuracy.lines[-1].set_label(labels[number])
    accuracy.set(ylabel="accuracy (%)", ylim=(0, 100))
    loss.set(ylabel="loss (nats)")
    for axes in (accuracy, loss):
        epoch_axis(axes)
        axes.set(xlabel="epoch")
        axes.grid(visible=True, alpha=0.3)
    figure.suptitle("thick: test images; thin: training images, augmented", fontsize=10)
    legend = figure.legend(loc="outside lower left", fontsize=LABEL_POINTS)
    for text in legend.get_texts():
        text.set_parse_math(False)
    return figure


def _draw_run(axes: Any, number: int, train: np.ndarray, test: np.ndarray, what: str) -> None:
    """The two lines of one run."""
    for points, how in (
        (train, {"linewidth": 0.6, "markersize": 2.5, "gid": f"train-{what}-{number}"}),
        (test, {"linewidth": 2, "markersize": 5, "gid": f"test-{what}-{number}"}),
    ):
        marker = "o" if len(points) <= MAX_MARKED_POINTS else None
        axes.plot(*points.T, color=f"C{number % 10}", marker=marker, **how)
