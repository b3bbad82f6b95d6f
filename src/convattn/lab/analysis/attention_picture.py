"""The picture of attention maps: a row for each layer, a column for each head."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from convattn.lab.analysis.head_numbers import Numbers
from convattn.lab.analysis.picture import new_figure

PANEL = 0.85
LEAST_WIDTH = 4.0
CAPTION = "Each map is scaled to its own maximum. The black square is the query."


@dataclass(frozen=True)
class ShownImage:
    """An image to draw beside the maps.

    Attributes:
        pixels: `[height, width, 3]`, of 0..255.
        title: What it is.
    """

    pixels: np.ndarray
    title: str


def draw_maps(
    maps: Sequence[np.ndarray],
    query: tuple[int, int],
    title: str,
    image: ShownImage | None = None,
    numbers: Sequence[Numbers] | None = None,
) -> Any:
    """A figure of `[heads, rows, columns]` for each layer, the query a black square.

    The darkest token of a panel is the one with the most attention there. A head stands in the
    column of its number, so that the columns of heads that were pruned are empty.

    Args:
        image: Drawn on the left, with the query marked.
        numbers: For each layer those of its heads; counted through if not given.
    """
    from matplotlib.patches import Rectangle

    if numbers is None:
        numbers = [tuple(range(1, len(layer) + 1)) for layer in maps]
    most = max((number for layer in numbers for number in layer), default=1)
    rows, columns = maps[0].shape[1:]
    left = 2.6 if image is not None else 0.0
    width = max(PANEL * most + left + 0.6, LEAST_WIDTH)
    height = max(PANEL * len(maps) * rows / columns, left) + 0.5
    figure = new_figure(width, height, title=title, caption=CAPTION)
    if image is None:
        axes = figure.add_subplot()
    else:
        beside, axes = figure.subplots(1, 2, width_ratios=(left, PANEL * most))
        draw_image(beside, image, query, (rows, columns))
    axes.imshow(mosaic(maps, numbers), cmap="Reds", vmin=0, vmax=1, interpolation="nearest")
    for layer in range(len(maps)):
        for number in numbers[layer]:
            corner = ((number - 1) * (columns + 1), layer * (rows + 1))
            square = (corner[0] + query[1] - 0.5, corner[1] + query[0] - 0.5)
            name = f"layer{layer + 1}-head{number}"
            axes.add_patch(
                Rectangle(
                    (corner[0] - 0.5, corner[1] - 0.5),
                    columns,
                    rows,
                    fill=False,
                    linewidth=0.4,
                    edgecolor="grey",
                    clip_on=False,
                    gid=f"{name}-map",
                )
            )
            axes.add_patch(
                Rectangle(square, 1, 1, fill=False, edgecolor="black", gid=f"{name}-query")
            )
    axes.set_xticks([head * (columns + 1) + (columns - 1) / 2 for head in range(most)])
    axes.set_xticklabels([f"head {head + 1}" for head in range(most)], fontsize=7)
    axes.set_yticks([layer * (rows + 1) + (rows - 1) / 2 for layer in range(len(maps))])
    names = [f"layer {n}" + ("" if heads else ":\nno heads") for n, heads in enumerate(numbers, 1)]
    axes.set_yticklabels(names, fontsize=7)
    axes.tick_params(length=0)
    axes.set_frame_on(False)
    return figure


def mosaic(maps: Sequence[np.ndarray], numbers: Sequence[Numbers]) -> np.ndarray:
    """All maps in one array, one token of space between them; NaN where there is nothing.

    Each is divided by its largest number.

    >>> mosaic([np.array([[[0.25, 0.75]]])], [(2,)]).tolist()
    [[nan, nan, nan, 0.3333333333333333, 1.0]]
    """
    most = max((number for layer in numbers for number in layer), default=1)
    rows, columns = maps[0].shape[1:]
    whole = np.full((len(maps) * (rows + 1) - 1, most * (columns + 1) - 1), np.nan)
    for layer, heads in enumerate(maps):
        for number, seen in zip(numbers[layer], heads, strict=True):
            top, start = layer * (rows + 1), (number - 1) * (columns + 1)
            whole[top : top + rows, start : start + columns] = seen / seen.max()
    return whole


def draw_image(
    axes: Any, image: ShownImage, query: tuple[int, int], tokens: tuple[int, int]
) -> None:
    """The image, with the pixels of the query's token in a square."""
    from matplotlib.patches import Rectangle

    height, width = (
        side // count for side, count in zip(image.pixels.shape[:2], tokens, strict=True)
    )
    axes.imshow(image.pixels, interpolation="nearest")
    corner = (query[1] * width - 0.5, query[0] * height - 0.5)
    for color, line in (("white", 3.0), ("black", 1.5)):
        axes.add_patch(
            Rectangle(
                corner,
                width,
                height,
                fill=False,
                edgecolor=color,
                linewidth=line,
                gid=f"image-query-{color}",
            )
        )
    axes.set_title(image.title, fontsize=8)
    axes.set_axis_off()
