"""The picture and the table of distances to convolutions."""

import math
from typing import Any

from rich.table import Table

from convattn.lab.analysis.convolution import DistanceHistory
from convattn.lab.analysis.picture import FEW_POINTS, epoch_axis, head_color, new_figure

MOST_COLUMNS = 3
MOST_LABELS = 17


def draw_distances(history: DistanceHistory, title: str) -> Any:
    """A figure: a panel for each layer, the layer's distance thick and black, its heads' thin."""
    count = len(history.layers[0])
    columns = min(count, MOST_COLUMNS)
    rows = math.ceil(count / columns)
    size = history.kernel_size
    seen = ", seen at X = 0," if history.linearised else ""
    caption = (
        f"The thick black line is the distance of the whole layer{seen} to the nearest {size} × "
        f"{size} convolution with zeros around the image; 0 is a convolution. The thin lines are "
        "the distances of the attention of each head."
    )
    figure = new_figure(max(3.4 * columns, 4.0), 2.5 * rows, title=title, caption=caption)
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    marker = "." if len(history.epochs) <= FEW_POINTS else None
    for number, axes in enumerate(grid.flat):
        if number >= count:
            axes.set_axis_off()
            continue
        over_time = [layers[number] for layers in history.layers]
        heads = history.numbers[number]
        axes.set_title(f"layer {number + 1}, {len(heads) or 'no'} heads", fontsize=9)
        axes.set_ylim(0, 1.02)
        axes.grid(visible=True, alpha=0.3)
        if not heads:
            continue
        for place, head in enumerate(heads):
            axes.plot(
                history.epochs,
                [at.heads[place] for at in over_time],
                color=head_color(head),
                linewidth=0.7,
                marker=marker,
                gid=f"layer{number + 1}-head{head}",
            )
        axes.plot(
            history.epochs,
            [at.relative for at in over_time],
            color="black",
            linewidth=2,
            marker=marker,
            gid=f"layer{number + 1}",
        )
        epoch_axis(axes)
    for number in range(count):
        if number + columns >= count:
            axes = grid.flat[number]
            axes.set_xlabel("epoch", fontsize=8)
            axes.tick_params(labelbottom=True)  # also above a place that has no panel
    figure.supylabel("relative distance", fontsize=8)
    draw_legend(figure, history)
    return figure


def draw_legend(figure: Any, history: DistanceHistory) -> None:
    """Beside the panels, the number and colour of each head, and the line of the layer."""
    from matplotlib.lines import Line2D

    lines = [Line2D([], [], color="black", linewidth=2, label="layer")]
    for head in sorted({head for heads in history.numbers for head in heads}):
        lines.append(Line2D([], [], color=head_color(head), linewidth=1.5, label=f"head {head}"))
    figure.legend(
        handles=lines,
        loc="outside right upper",
        fontsize=6,
        handlelength=1.2,
        ncols=math.ceil(len(lines) / MOST_LABELS),
    )


def distance_table(history: DistanceHistory) -> Table:
    """The distances at the last epoch."""
    size = history.kernel_size
    table = Table(
        title=f"Distance to the nearest {size} × {size} convolution, epoch {history.epochs[-1]}"
    )
    for name in ("layer", "relative distance", "convolution's share", "heads"):
        table.add_column(name, justify="left" if name == "heads" else "right")
    for number, layer in enumerate(history.layers[-1], 1):
        if not len(layer.heads):
            table.add_row(str(number), "–", "–", "no heads")
            continue
        heads = " ".join(f"{distance:.2f}" for distance in layer.heads)
        table.add_row(str(number), f"{layer.relative:.3f}", f"{100 * layer.share:.1f} %", heads)
    return table
