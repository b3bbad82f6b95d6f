"""Pictures of what the heads of a layer attend to. They need matplotlib."""

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from convattn.diagnosis.picture import MIN_WIDTH, new_figure, require_matplotlib
from convattn.encodings.layer import AttentionLayer
from convattn.fast.application import as_layer, attention_maps
from convattn.operators.integers import per_axis

PANEL, MAX_PANELS = 1.5, 6
CAPTION = "The square is the query. Colours are the attention, on a scale of square roots."


def plot_heads(
    layer: AttentionLayer | Any,
    query: Sequence[int] | int | None = None,
    *,
    image_size: int | Sequence[int] | None = None,
    images: Any = None,
    title: str = "",
) -> Any:
    """Draw what one query attends to in each head of a layer.

    Args:
        layer: An `AttentionLayer` or an `AttentionConv`; or the attention among the tokens of a
            grid, `[heads, rows, columns, rows, columns]`, such as `LayerDiagnosis.mean`.
        query: Row and column, of the pixel for a layer and of the token for maps; the middle if not
            given, below and right of it where sides are even. For sequences one position. At stride
            s output i is that of query s·i.
        image_size: Pixels, for a layer without content.
        images: `[images, height, width, channels]` or `[images, length, channels]`, over which the
            attention is averaged.
        title: Above the picture.

    Returns:
        A `matplotlib.figure.Figure`: a panel for each head, numbered from 1, all with the same
        scale of colours, the query marked. Attention to a ring around the image is not shown.

    Raises:
        ValueError: Without matplotlib; for maps of another shape, a query outside the image, and
            what `diagnose` refuses of a layer.

    >>> import convattn as ca
    >>> layer = ca.conv_to_attention(np.ones((3, 3, 1, 1), np.float32))
    >>> figure = ca.plot_heads(layer, (2, 3), image_size=(5, 6))
    >>> len(figure.axes)  # ten heads, no head in two places, and the bar of colours
    13
    """
    require_matplotlib()
    patch: tuple[int, ...] = (1, 1)
    layer = as_layer(layer)
    if isinstance(layer, AttentionLayer) and len(layer.patch_size) == 1:
        maps = _pixel_maps(layer, images, image_size, 1)[:, None, :, None, :]
        patch = (1, *layer.patch_size)
        query = None if query is None else (0, *np.atleast_1d(query).tolist())
    elif isinstance(layer, AttentionLayer):
        maps, patch = _pixel_maps(layer, images, image_size, 2), layer.patch_size
    else:
        maps = np.asarray(layer, np.float64)
        if maps.ndim != 5 or maps.shape[1:3] != maps.shape[3:] or not maps.size:
            raise ValueError(
                f"maps.shape={maps.shape}, but expected an AttentionLayer or attention [heads, "
                "rows, columns, rows, columns]"
            )
        if image_size is not None or images is not None:
            raise ValueError("image_size or images were given, but go with an AttentionLayer only")
    rows, columns = maps.shape[1:3]
    token = [rows // 2, columns // 2]
    if query is not None:
        query = tuple(np.atleast_1d(query).tolist())
        token = [index // side for index, side in zip(query, patch, strict=False)]
        if len(query) != 2 or not (0 <= token[0] < rows and 0 <= token[1] < columns):
            unit = "tokens" if patch == (1, 1) else "pixels"
            raise ValueError(
                f"query={tuple(query)}, but expected a row from 0 to {rows * patch[0] - 1} and a "
                f"column from 0 to {columns * patch[1] - 1}, in {unit}"
            )
    return draw_heads(maps[:, token[0], token[1]], (token[0], token[1]), title)


def _pixel_maps(
    layer: AttentionLayer, images: Any, image_size: int | Sequence[int] | None, axes: int
) -> Float[np.ndarray, " heads *queries_and_keys"]:
    """The mean attention of each query to the tokens of the image, the ring left out."""
    missing = images is None or (layer.content is not None and not len(images))
    if missing and (layer.content is not None or image_size is None):
        needed = "images" if layer.content is not None else "images or image_size"
        raise ValueError(f"{layer!r} was given no images, but expected {needed}")
    size = None if image_size is None else per_axis(image_size, axes, "image_size")
    weights, ring = attention_maps(layer, size if images is None else jnp.asarray(images))
    maps = np.asarray(weights, np.float64)
    maps = maps.mean(axis=0) if layer.content is not None else maps
    interior = (slice(before, -after or None) for before, after in ring)
    return maps[(..., *interior)]


def draw_heads(
    maps: Float[np.ndarray, "heads rows columns"], query: tuple[int, int], title: str = ""
) -> Any:
    """A figure with a panel for each head, one bar of colours, and the query marked."""
    from matplotlib.colors import PowerNorm
    from matplotlib.patches import Rectangle

    heads, rows, columns = maps.shape
    across = min(heads, MAX_PANELS)
    down = math.ceil(heads / across)
    height = PANEL * min(max(rows / columns, 0.3), 3) + 0.25
    width = max(PANEL * across + 0.9, MIN_WIDTH)
    figure = new_figure(width, height * down, title=title, caption=CAPTION)
    panels = list(figure.subplots(down, across, squeeze=False).flat)
    scale = PowerNorm(0.5, vmin=0, vmax=max(float(maps.max()), 1e-12))
    for number, axes in enumerate(panels, 1):
        axes.set_axis_off()
        if number > heads:
            continue
        image = axes.imshow(maps[number - 1], cmap="Reds", norm=scale, interpolation="nearest")
        axes.set_title(f"head {number}", fontsize=8)
        for size, line in (((rows, columns), "grey"), ((1, 1), "black")):
            start = query if line == "black" else (0, 0)
            corner = (start[1] - 0.5, start[0] - 0.5)
            name = f"head{number}-{'query' if line == 'black' else 'map'}"
            outline: Any = {"fill": False, "edgecolor": line, "clip_on": False, "gid": name}
            axes.add_patch(Rectangle(corner, size[1], size[0], **outline))
    bar = figure.colorbar(image, ax=panels, shrink=0.8)
    bar.set_label("attention", fontsize=8)
    bar.ax.tick_params(labelsize=7)
    return figure
