"""Every picture that fits a run, into its folder `figures/`."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from convattn.lab.analysis.attention_picture import draw_maps
from convattn.lab.analysis.centers import GAUSSIAN, centers_of_layers, centers_over_training
from convattn.lab.analysis.centers_picture import draw_centers
from convattn.lab.analysis.convolution import distance_history
from convattn.lab.analysis.convolution_picture import draw_distances
from convattn.lab.analysis.curves import accuracy_curves, draw_curves
from convattn.lab.analysis.head_numbers import head_numbers
from convattn.lab.analysis.picture import require_matplotlib, save_picture
from convattn.lab.analysis.position_maps import central_query, position_maps
from convattn.lab.analysis.run_summary import read_summary
from convattn.lab.analysis.snapshot_layers import encoder_settings
from convattn.lab.models.settings import EncoderSettings
from convattn.lab.runs.directory import RunDirectory

MOTION_LAYER = 4
MOST_EPOCHS = 16
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
        _not_drawn(f"no pictures of {path}", problem)
        return written
    for name, draw in pictures.items():
        try:
            written += save_picture(draw(path), RunDirectory(path).figures, name)
        except Exception as problem:
            _not_drawn(f"no picture {name} of {path}", problem)
    return written


def _not_drawn(what: str, problem: Exception) -> None:
    print(f"{what}: {' '.join(str(problem).split())}", file=sys.stderr)


def fitting_pictures(path: Path) -> dict[str, Callable[[Path], Any]]:
    """By name, how each picture is drawn that fits the run's model."""
    model = RunDirectory(path).read_settings().model
    found: dict[str, Callable[[Path], Any]] = {"curves": curves_figure}
    if not isinstance(model, EncoderSettings):
        return found
    if model.encoding in GAUSSIAN:
        motion = f"motion-layer{motion_layer(path)}"
        found |= {"centers": centers_figure, motion: motion_figure}
    return {**found, "attention-position": position_figure, "convolution": convolution_figure}


def title_of(path: Path, what: str, epoch: int | None = None) -> str:
    """The lines above a picture: what it shows, of which run, on which images.

    Args:
        epoch: The only one that the picture shows, if it is of one.

    Raises:
        ValueError: If it is not the folder of a run.
    """
    run = read_summary(path)
    return f"{what}\n{run.described(epoch)}"


def curves_figure(path: Path) -> Any:
    """Accuracy over the epochs."""
    return draw_curves([accuracy_curves(path)])


def centers_figure(path: Path, epoch: int | None = None) -> Any:
    """Centres of attention in each layer."""
    chosen, panels = centers_of_layers(path, epoch)
    return draw_centers(panels, title_of(path, f"centres of attention, epoch {chosen}", chosen))


def motion_figure(
    path: Path, layer: int | None = None, epochs: tuple[int, ...] | None = None
) -> Any:
    """The centres of one layer at several epochs; of the fourth, or the last if there are fewer."""
    layer = motion_layer(path) if layer is None else layer
    panels = centers_over_training(path, layer, epochs)
    return draw_centers(panels, title_of(path, f"centres of attention of layer {layer}"))


def motion_layer(path: Path) -> int:
    """The layer whose motion is shown if none is asked for, as `motion_figure` says.

    Raises:
        ValueError: For a run without attention.
    """
    return min(MOTION_LAYER, encoder_settings(path).depth)


def position_figure(
    path: Path, query: tuple[int, int] | None = None, epoch: int | None = None
) -> Any:
    """Attention maps by the position alone, of the central token if no query is given."""
    chosen_query = central_query(path) if query is None else query
    chosen, maps = position_maps(path, chosen_query, epoch)
    model = RunDirectory(path).read_settings().model
    content = isinstance(model, EncoderSettings) and model.encoding == "content"
    by = (
        "of an image of zeros in every layer" if content else "by position, the same for all images"
    )
    row, column = chosen_query
    what = f"attention of the token at row {row}, column {column} {by}, epoch {chosen}"
    title = title_of(path, what, chosen)
    return draw_maps(maps, chosen_query, title, numbers=head_numbers(path))


def convolution_figure(
    path: Path, kernel_size: int = KERNEL_SIZE, most_epochs: int | None = MOST_EPOCHS
) -> Any:
    """Distances to convolutions over training."""
    history = distance_history(path, kernel_size, most_epochs)
    return draw_distances(history, distance_title(path, kernel_size))


def distance_title(path: Path, kernel_size: int) -> str:
    """The line above the picture of distances."""
    return title_of(path, f"distance to the nearest {kernel_size} × {kernel_size} convolution")
