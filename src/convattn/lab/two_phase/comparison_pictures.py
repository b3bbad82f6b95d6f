"""The curves of a comparison: L21's Figure 2, and the same of all conversions."""

from pathlib import Path
from typing import Any

import numpy as np

from convattn.lab.analysis.picture import save_picture
from convattn.lab.training.metrics import read_metrics
from convattn.lab.two_phase.comparison import ComparisonDirectory
from convattn.lab.two_phase.curves import Curve, draw_curves, judged_by, points_of
from convattn.lab.two_phase.settings import RANDOM, TITLES, ComparisonSettings

PRINTED = "limit-40"


def mean_curve(paths: list[Path], name: str) -> np.ndarray:
    """The mean of a quantity over runs of the same length, `[points, 2]`."""
    points = [points_of(path, name) for path in paths]
    shared = min(map(len, points))
    return np.mean([each[:shared] for each in points], axis=0)


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
                    paths = ended(settings, directory, f"{start}-{warmup}")
                    if not paths:
                        continue
                    images = judged_by(paths[0])
                    points = mean_curve(paths, f"{images}_{quantity}")
                    label = f"{TITLES[start]}, {warmup} warm-up ({len(paths)} seeds)"
                    curves.append(Curve(label, points, f"C{number}", warmup == "without"))
            if curves:
                title = f"{quantity} on the {images} images, mean over the seeds"
                figure = draw_curves(curves, title, quantity)
                written += save_picture(figure, directory.path / "figures", f"{picture}-{quantity}")
    return written


def ended(settings: ComparisonSettings, directory: ComparisonDirectory, name: str) -> list[Path]:
    """The runs of this name that have metrics to their last epoch, one for each seed at most."""
    found = []
    for seed in settings.seeds:
        path = directory.run(seed, name)
        lines: list[dict[str, Any]] = read_metrics(path) if path.is_dir() else []
        if lines and lines[-1]["epoch"] == settings.pipeline.training_two.epochs:
            found.append(path)
    return found
