"""Every picture that fits a run, into its folder `figures/`."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from convattn.diagnosis.picture import require_matplotlib, save_picture
from convattn_lab.analysis.attention import position_figure
from convattn_lab.analysis.centers import (
    GAUSSIAN,
    centers_of_layers,
    centers_over_training,
    draw_centers,
)
from convattn_lab.analysis.convolution import distance_history, draw_distances
from convattn_lab.analysis.curves import draw_curves, run_curves
from convattn_lab.analysis.run_summary import encoder_settings, title_of
from convattn_lab.models.settings import EncoderSettings
from convattn_lab.runs.directory import RunDirectory

MOTION_LAYER = 4
MAX_EPOCHS = 16
KERNEL_SIZE = 3


def draw_all(path: Path) -> list[Path]:
    """Draw everything that fits a run from its metrics and snapshots; the model is not run.

    A picture that cannot be drawn is left out with a line on stderr, and the others are drawn.

    Returns:
        The files, PNG and SVG of each picture.
    """
    written: list[Path] = []
    try:
        require_matplotlib()
        pictures = fitting_pictures(path)
    except Exception as problem:
        _report_failure(f"no pictures of {path}", problem)
        return written
    for name, draw in pictures.items():
        try:
            written += save_picture(draw(path), RunDirectory(path).figures, name)
        except Exception as problem:
            _report_failure(f"no picture {name} of {path}", problem)
    return written


def _report_failure(what: str, problem: Exception) -> None:
    print(f"{what}: {' '.join(str(problem).split())}", file=sys.stderr)


def fitting_pictures(path: Path) -> dict[str, Callable[[Path], Any]]:
    """By name, how each picture is drawn that fits the run's model."""
    model = RunDirectory(path).read_settings().model
    pictures: dict[str, Callable[[Path], Any]] = {
        "curves": lambda path: draw_curves([run_curves(path)])
    }
    if not isinstance(model, EncoderSettings):
        return pictures
    if model.encoding in GAUSSIAN:
        motion = f"motion-layer{motion_layer(path)}"
        pictures |= {"centers": centers_figure, motion: motion_figure}
    return {**pictures, "attention-position": position_figure, "convolution": _convolution_figure}


def centers_figure(path: Path, epoch: int | None = None) -> Any:
    """Centres of attention in each layer."""
    chosen, panels = centers_of_layers(path, epoch)
    return draw_centers(panels, title_of(path, f"centres of attention, epoch {chosen}", chosen))


def motion_figure(
    path: Path, layer: int | None = None, epochs: tuple[int, ...] | None = None
) -> Any:
    """The centres of one layer at several epochs."""
    layer = motion_layer(path) if layer is None else layer
    panels = centers_over_training(path, layer, epochs)
    return draw_centers(panels, title_of(path, f"centres of attention of layer {layer}"))


def motion_layer(path: Path) -> int:
    """The layer whose motion is shown if none is asked for: the fourth, or the last of fewer."""
    return min(MOTION_LAYER, encoder_settings(path).depth)


def _convolution_figure(path: Path) -> Any:
    """Distances to convolutions over training."""
    history = distance_history(path, KERNEL_SIZE, MAX_EPOCHS)
    return draw_distances(history, distance_title(path, KERNEL_SIZE))


def distance_title(path: Path, kernel_size: int) -> str:
    """The lines above the picture of distances."""
    return title_of(path, f"distance to the nearest {kernel_size} × {kernel_size} convolution")
