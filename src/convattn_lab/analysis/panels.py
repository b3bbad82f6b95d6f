"""Grids of panels, and what the axes of the pictures of runs have in common."""

import math
from typing import Any

from convattn.diagnosis.picture import MIN_WIDTH, new_figure

MAX_MARKED_POINTS = 10
MAX_COLUMNS = 3


def epoch_axis(axes: Any) -> None:
    """Ticks at whole epochs, and room around a single one; after everything was plotted."""
    from matplotlib.ticker import MaxNLocator

    low, high = axes.dataLim.intervalx
    if low == high:
        axes.set_xlim(low - 1, high + 1)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def head_color(number: int) -> Any:
    """The colour of the head with this number, the same in every picture.

    Ten strong colours, then the same ten light; from the 21st head, counted from 1, they repeat.

    >>> len({head_color(number) for number in range(1, 41)})
    20
    """
    import matplotlib

    light, hue = divmod((number - 1) % 20, 10)
    return matplotlib.colormaps["tab20"](2 * hue + light)


def panels_of(
    count: int, width: int | float, height: int | float, *, title: str, caption: str, **shared: bool
) -> tuple[Any, list[Any]]:
    """A figure with a grid of panels of this size, at most three in a row, and their axes.

    Places without a panel are empty. The lowest panel of each column shows its ticks.
    """
    columns = min(count, MAX_COLUMNS)
    rows = math.ceil(count / columns)
    figure = new_figure(
        max(width * columns, MIN_WIDTH), height * rows, title=title, caption=caption
    )
    axes = list(figure.subplots(rows, columns, squeeze=False, **shared).flat)
    for panel in axes[count:]:
        panel.set_axis_off()
    for panel in axes[max(count - columns, 0) : count]:
        panel.tick_params(labelbottom=True)  # also above a place that has no panel
    return figure, axes[:count]
