"""Pictures of attention on test images: Figures 6 to 10 of C20."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from convattn.lab.analysis.attention_maps import averaged, image_maps
from convattn.lab.analysis.attention_picture import ShownImage, draw_maps
from convattn.lab.analysis.figures import title_of
from convattn.lab.analysis.head_numbers import head_numbers
from convattn.lab.analysis.position_maps import central_query
from convattn.lab.analysis.restored_run import RestoredRun
from convattn.lab.models.encoder import Encoder


def average_figure(path: Path, run: RestoredRun, query: tuple[int, int] | None, count: int) -> Any:
    """The maps of a query, averaged over the first test images.

    Args:
        query: The central token if None.
        count: Of images.

    Raises:
        ValueError: For more images than there are, and for a query outside the image.
    """
    if not 1 <= count <= len(run.dataset.test):
        raise ValueError(
            f"--average {count}, but expected 1 to {len(run.dataset.test)}, the test images that "
            "there are"
        )
    chosen = central_query(path) if query is None else query
    maps = averaged(image_maps(encoder_of(run), normalised(run, range(count)), chosen))
    what = f"{_of(chosen)}, averaged over {count} test images, {run.when}"
    return draw_maps(maps, chosen, title_of(path, what, run.epoch), None, head_numbers(path))


def image_figures(
    path: Path, run: RestoredRun, query: tuple[int, int] | None, indices: Sequence[int]
) -> dict[int, Any]:
    """By index of a test image the maps of a query in it, beside the image.

    Raises:
        ValueError: For an index that there is not, and for a query outside the image.
    """
    test = run.dataset.test
    wrong = [index for index in indices if not 0 <= index < len(test)]
    if wrong:
        raise ValueError(f"--image {wrong[0]}, but test images have indices 0 to {len(test) - 1}")
    chosen = central_query(path) if query is None else query
    maps = image_maps(encoder_of(run), normalised(run, indices), chosen)
    found = {}
    for place, index in enumerate(indices):
        name = test.class_names[int(test.labels[index])]
        shown = ShownImage(test.images[index], f"test image {index}: {name}")
        what = f"{_of(chosen)}, test image {index}, {run.when}"
        title, seen = title_of(path, what, run.epoch), [layer[place] for layer in maps]
        found[index] = draw_maps(seen, chosen, title, shown, head_numbers(path))
    return found


def normalised(
    run: RestoredRun, indices: Sequence[int]
) -> Float[np.ndarray, "images height width channels"]:
    """Test images as the model takes them."""
    pixels = run.dataset.test.images[np.asarray(indices)] / np.float32(255)
    return ((pixels - run.images.mean) / run.images.std).astype(np.float32)


def encoder_of(run: RestoredRun) -> Encoder:
    """The model of the run.

    Raises:
        ValueError: If it has no attention.
    """
    if not isinstance(run.model, Encoder):
        raise ValueError("the model of this run is a ResNet, which has no attention")
    return run.model


def _of(query: tuple[int, int]) -> str:
    return f"attention of the token at row {query[0]}, column {query[1]}"
