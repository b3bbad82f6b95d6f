"""Attention maps, by position or in given images: C20, Figures 5 to 10."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from convattn.diagnosis.picture import new_figure
from convattn.encodings.layer import AttentionLayer
from convattn.fast.application import attention_maps
from convattn.operators.patches import patchify
from convattn_lab.analysis.restored_run import RestoredRun
from convattn_lab.analysis.run_summary import Numbers, encoder_settings, head_numbers, title_of
from convattn_lab.analysis.snapshots import (
    Query,
    central_query,
    query_attention,
    read_layers,
    require_query,
)
from convattn_lab.models.encoder import Encoder

BATCH = 10
PANEL = 0.85
MIN_WIDTH = 4.0
CAPTION = "The black square is the query."
LABELS, BAR = 0.65, 0.8  # inches that the names of the layers and the bar of colours take

Maps = list[np.ndarray]  # for each layer `[heads, rows, columns]`
Picture = tuple[np.ndarray, str]  # pixels `[height, width, 3]` of 0..255, and a title


def position_maps(path: Path, query: Query, epoch: int | None = None) -> tuple[int, Maps]:
    """The epoch, that of `read_layers` if not given, and the maps by the position alone.

    Where attention knows the content it is that of an image whose tokens are zero in every layer.
    """
    chosen, layers = read_layers(path, epoch)
    return chosen, [query_attention(layer["scores"], query) for layer in layers]


def image_maps(
    model: Encoder, images: Float[np.ndarray, "images height width channels"], query: Query
) -> Maps:
    """For each layer the maps `[images, heads, rows, columns]` of each normalised image."""
    batches = [
        [attended(layer, tokens, query) for layer, tokens in layer_inputs(model, batch)]
        for batch in (images[start : start + BATCH] for start in range(0, len(images), BATCH))
    ]
    return [np.concatenate(maps) for maps in zip(*batches, strict=True)]


def layer_inputs(
    model: Encoder, images: Float[np.ndarray, "images height width channels"]
) -> Iterator[tuple[AttentionLayer, Array]]:
    """The attention of each layer and the tokens `[images, rows, columns, width]` that it sees."""
    squares = patchify(jnp.asarray(images), model.settings.downsampling)
    tokens = model.embedding(squares.astype(model.dtype))
    for layer in model.layers:
        yield layer.attention.layer(), tokens
        tokens = layer(tokens)


def attended(layer: AttentionLayer, tokens: Array, query: Query) -> np.ndarray:
    """What the query of each image attends to, `[images, heads, rows, columns]`."""
    count, rows, columns = tokens.shape[:3]
    require_query(query, (rows, columns))
    if not layer.heads:
        return np.zeros((count, 0, rows, columns))
    weights = attention_maps(layer, tokens).weights
    query_weights = np.asarray(weights[..., query[0], query[1], :, :], np.float64)
    return np.broadcast_to(query_weights, (count, layer.heads, rows, columns))


def position_figure(path: Path, query: Query | None = None, epoch: int | None = None) -> Any:
    """Attention maps by the position alone, of the central token if no query is given."""
    query = central_query(path) if query is None else query
    chosen, maps = position_maps(path, query, epoch)
    by = "by position, the same for all images"
    if encoder_settings(path).encoding == "content":
        by = "of an image of zeros in every layer"
    title = title_of(path, f"{_of(query)} {by}, epoch {chosen}", chosen)
    return draw_maps(maps, query, title, numbers=head_numbers(path))


def average_figure(path: Path, run: RestoredRun, query: Query | None, count: int) -> Any:
    """The maps of a query, averaged over the first test images."""
    available = len(run.dataset.test)
    if not 1 <= count <= available:
        raise ValueError(
            f"--average {count}, but expected 1 to {available}, the test images that there are"
        )
    query = central_query(path) if query is None else query
    maps = [layer.mean(axis=0) for layer in _maps_of(run, range(count), query)]
    what = f"{_of(query)}, averaged over {count} test images, {run.when}"
    title = title_of(path, what, run.epoch)
    return draw_maps(maps, query, title, numbers=head_numbers(path))


def image_figures(
    path: Path, run: RestoredRun, query: Query | None, indices: Sequence[int]
) -> dict[int, Any]:
    """By index of a test image the maps of a query in it, beside the image."""
    test = run.dataset.test
    wrong = [index for index in indices if not 0 <= index < len(test)]
    if wrong:
        raise ValueError(f"--image {wrong[0]}, but test images have indices 0 to {len(test) - 1}")
    query = central_query(path) if query is None else query
    maps, figures = _maps_of(run, indices, query), {}
    for position, index in enumerate(indices):
        caption = f"test image {index}: {test.class_names[int(test.labels[index])]}"
        title = title_of(path, f"{_of(query)}, test image {index}, {run.when}", run.epoch)
        attention, picture = [layer[position] for layer in maps], (test.images[index], caption)
        figures[index] = draw_maps(attention, query, title, picture, head_numbers(path))
    return figures


def _maps_of(run: RestoredRun, indices: Sequence[int], query: Query) -> Maps:
    """`image_maps` of test images."""
    if not isinstance(run.model, Encoder):
        kind = type(run.model).__name__
        raise ValueError(f"the model of this run is of kind={kind}, but expected Encoder")
    pixels = run.dataset.test.images[np.asarray(indices)] / np.float32(255)
    normalised = ((pixels - run.images.mean) / run.images.std).astype(np.float32)
    return image_maps(run.model, normalised, query)


def _of(query: Query) -> str:
    return f"attention of the token at row {query[0]}, column {query[1]}"


def draw_maps(
    maps: Sequence[np.ndarray],
    query: Query,
    title: str,
    image: Picture | None = None,
    numbers: Sequence[Numbers] | None = None,
) -> Any:
    """A figure: a row for each layer, a column for each head, the query a black square.

    The darkest token of a panel is the one with the most attention there, as the bar says. A head
    stands in the column of its number, counted through if none are given, so that the columns of
    heads that were pruned are empty. An image is drawn on the left, with the query marked.
    """
    if numbers is None:
        numbers = [tuple(range(1, len(layer) + 1)) for layer in maps]
    max_heads = max((number for layer in numbers for number in layer), default=1)
    rows, columns = maps[0].shape[1:]
    left = 2.6 if image is not None else 0.0
    across = PANEL * max_heads * (columns + 1) / columns
    width = max(across + left + LABELS + BAR, MIN_WIDTH)
    down = across * (len(maps) * (rows + 1)) / (max_heads * (columns + 1))
    height = max(down, left) + 0.35
    figure = new_figure(width, height, title=title, caption=CAPTION)
    if image is None:
        axes = figure.add_subplot()
    else:
        beside, axes = figure.subplots(1, 2, width_ratios=(left, PANEL * max_heads))
        _draw_image(beside, image, query, (rows, columns))
    drawing = axes.imshow(
        mosaic(maps, numbers), cmap="Reds", vmin=0, vmax=1, interpolation="nearest"
    )
    bar = figure.colorbar(drawing, ax=axes, fraction=0.05, pad=0.02, aspect=30)
    bar.set_label("attention / most of the map", fontsize=7)
    bar.ax.tick_params(labelsize=7)
    for layer, heads in enumerate(numbers):
        for number in heads:
            top, start = layer * (rows + 1), (number - 1) * (columns + 1)
            name, grey = f"layer{layer + 1}-head{number}", {"linewidth": 0.4, "clip_on": False}
            _outline(axes, (top, start), (rows, columns), "grey", f"{name}-map", **grey)
            cell = (top + query[0], start + query[1])
            _outline(axes, cell, (1, 1), "black", f"{name}-query")
    axes.set_xticks([head * (columns + 1) + (columns - 1) / 2 for head in range(max_heads)])
    axes.set_xticklabels([f"head {head + 1}" for head in range(max_heads)], fontsize=7)
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
    max_heads = max((number for layer in numbers for number in layer), default=1)
    rows, columns = maps[0].shape[1:]
    canvas = np.full((len(maps) * (rows + 1) - 1, max_heads * (columns + 1) - 1), np.nan)
    for layer, heads in enumerate(maps):
        for number, weights in zip(numbers[layer], heads, strict=True):
            top, start = layer * (rows + 1), (number - 1) * (columns + 1)
            canvas[top : top + rows, start : start + columns] = weights / weights.max()
    return canvas


def _draw_image(axes: Any, image: Picture, query: Query, tokens: tuple[int, int]) -> None:
    """The image, with the pixels of the query's token in a square."""
    pixels, title = image
    height, width = (side // count for side, count in zip(pixels.shape[:2], tokens, strict=True))
    axes.imshow(pixels, interpolation="nearest")
    corner = (query[0] * height, query[1] * width)
    for color, line in (("white", 3.0), ("black", 1.5)):
        name = f"image-query-{color}"
        _outline(axes, corner, (height, width), color, name, linewidth=line)
    axes.set_title(title, fontsize=8)
    axes.set_axis_off()


def _outline(
    axes: Any, origin: tuple[int, int], size: tuple[int, int], color: str, name: str, **line: Any
) -> None:
    """The outline of pixels from a (row, column) on, of so many rows and columns."""
    from matplotlib.patches import Rectangle

    corner = (origin[1] - 0.5, origin[0] - 0.5)
    axes.add_patch(
        Rectangle(corner, size[1], size[0], fill=False, edgecolor=color, gid=name, **line)
    )
