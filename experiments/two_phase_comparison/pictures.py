"""Loss and accuracy of both phases on one axis, and those of a comparison: L21's Figure 2."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from convattn.diagnosis.picture import new_figure, save_picture
from convattn_lab.analysis.curves import points_of, require_metrics
from convattn_lab.analysis.panels import MAX_MARKED_POINTS, epoch_axis
from convattn_lab.runs.directory import RunDirectory
from convattn_lab.training.metrics import read_metrics
from convattn_lab.two_phase.settings import RANDOM, TITLES, ComparisonSettings
from two_phase_comparison.comparison import ComparisonDirectory

PRINTED = "limit-40"


@dataclass(frozen=True)
class Curve:
    """A quantity over the epochs.

    Attributes:
        label: In the legend.
        points: `[points, 2]`, epoch and value.
        color, dashed: How it is drawn.
    """

    label: str
    points: np.ndarray
    color: str = "C0"
    dashed: bool = False


def evaluation_split(path: Path) -> str:
    """Which images judge a run in its curves: those for validation if it has any.

    Raises:
        ValueError: If it has no metrics.
    """
    return "validation" if "validation_loss" in require_metrics(path)[-1] else "test"


def phase_curves(one: Path, two: Path, quantity: str) -> list[Curve]:
    """A quantity through both phases, on the images trained on and on those that judge.

    The second phase's curve of accuracy on the test images begins with what it was converted to.

    Args:
        one, two: Finished runs.
        quantity: `"loss"` or `"accuracy"`.
    """
    before, after = read_metrics(one), read_metrics(two)
    epochs = before[-1]["epoch"]
    conversion = RunDirectory(two).read_conversion()
    curves = []
    for dashed, images in ((True, "train"), (False, evaluation_split(one))):
        name = f"{images}_{quantity}"
        first, second = points_of(before, name), points_of(after, name, epochs)
        if name == "test_accuracy" and conversion is not None:
            second = np.concatenate([[[epochs, conversion["test"]["after"]]], second])
        images_name = "training images, augmented" if images == "train" else f"{images} images"
        curves.append(Curve(f"convolution phase, {images_name}", first, "C0", dashed))
        curves.append(Curve(f"attention phase, {images_name}", second, "C1", dashed))
    return curves


def draw_phases(one: Path, two: Path, title: str) -> Any:
    """Two panels over the epochs of both phases: loss and accuracy."""
    figure = new_figure(8.0, 6.5, title=title)
    panels = figure.subplots(2, 1, sharex=True)
    for panel, quantity in zip(panels, ("loss", "accuracy"), strict=True):
        plot(panel, phase_curves(one, two, quantity))
        panel.set_ylabel(quantity)
    panels[1].set(xlabel="epoch", ylim=(0, 1))
    panels[0].legend(fontsize=8)
    return figure


def draw_curves(curves: Sequence[Curve], title: str, quantity: str) -> Any:
    """One panel of curves.

    Args:
        quantity: What the second column of the points is.
    """
    figure = new_figure(8.0, 4.5, title=title)
    axes = figure.add_subplot()
    plot(axes, curves)
    axes.set(xlabel="epoch of the attention phase", ylabel=quantity)
    axes.legend(fontsize=8)
    return figure


def plot(axes: Any, curves: Sequence[Curve]) -> None:
    """Draw curves into a panel."""
    for number, curve in enumerate(curves):
        axes.plot(
            *curve.points.T,
            color=curve.color,
            linestyle="--" if curve.dashed else "-",
            linewidth=1.0 if curve.dashed else 1.8,
            marker="o" if len(curve.points) <= MAX_MARKED_POINTS else None,
            markersize=3,
            gid=f"curve-{number}",
        )
        axes.lines[-1].set_label(curve.label)
    epoch_axis(axes)
    axes.grid(visible=True, alpha=0.3)


def mean_curve(paths: list[Path], name: str) -> np.ndarray:
    """The mean of a quantity over runs of the same length, `[points, 2]`."""
    points = [points_of(read_metrics(path), name) for path in paths]
    shared = min(map(len, points))
    return np.mean([curve[:shared] for curve in points], axis=0)


def draw_comparison(settings: ComparisonSettings, directory: ComparisonDirectory) -> list[Path]:
    """Draw what can be drawn of the runs that have ended.

    Returns:
        The files.
    """
    written: list[Path] = []
    pictures = {
        "figure2": [start for start in (PRINTED, RANDOM) if start in settings.starts],
        "conversions": list(settings.starts),
    }
    for picture, starts in pictures.items():
        for quantity in ("loss", "accuracy"):
            curves, images = [], ""
            for number, start in enumerate(starts):
                for warmup in settings.warmups:
                    paths = finished_paths(settings, directory, f"{start}-{warmup}")
                    if not paths:
                        continue
                    images = evaluation_split(paths[0])
                    points = mean_curve(paths, f"{images}_{quantity}")
                    label = f"{TITLES[start]}, {warmup} warm-up ({len(paths)} seeds)"
                    curves.append(Curve(label, points, f"C{number}", warmup == "without"))
            if curves:
                title = f"{quantity} on the {images} images, mean over the seeds"
                figure = draw_curves(curves, title, quantity)
                written += save_picture(figure, directory.path / "figures", f"{picture}-{quantity}")
    return written


def finished_paths(
    settings: ComparisonSettings, directory: ComparisonDirectory, name: str
) -> list[Path]:
    """The runs of this name that have metrics to their last epoch, one for each seed at most."""
    paths = []
    for seed in settings.seeds:
        path = directory.run(seed, name)
        lines: list[dict[str, Any]] = read_metrics(path) if path.is_dir() else []
        if lines and lines[-1]["epoch"] == settings.pipeline.training_two.epochs:
            paths.append(path)
    return paths
