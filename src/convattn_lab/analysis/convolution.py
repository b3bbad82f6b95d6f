"""How far each layer and head is from the nearest convolution, over training. Not in the papers.

`diagnosis/convolution_distance.py` has the definition and the proof; here are the
snapshots of a run, over its epochs.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from convattn.diagnosis.convolution_distance import (
    ConvolutionDistance,
    convolution_distance,
)
from convattn_lab.analysis.panels import MAX_MARKED_POINTS, epoch_axis, head_color, panels_of
from convattn_lab.analysis.run_summary import Numbers, encoder_settings, head_numbers
from convattn_lab.analysis.snapshots import (
    attention_matrix,
    read_layers,
    require_snapshots,
    spread_epochs,
)

MAX_LABELS = 17


@dataclass(frozen=True)
class DistanceHistory:
    """The distances of a run's layers to the K × K convolutions.

    Attributes:
        kernel_size: K.
        linearised: Whether the layers have content, so that they are seen at X = 0.
        epochs: Of the snapshots.
        layers: For each epoch the distance of each layer.
        numbers: For each layer those of its heads.
    """

    kernel_size: int
    linearised: bool
    epochs: tuple[int, ...]
    layers: tuple[tuple[ConvolutionDistance, ...], ...]
    numbers: tuple[Numbers, ...]

    def to_json(self) -> dict[str, object]:
        """All numbers as JSON holds them; null where a layer has no heads."""
        return {
            "kernel_size": self.kernel_size,
            "linearised": self.linearised,
            "epochs": list(self.epochs),
            "head_numbers": [list(layer) for layer in self.numbers],
            "layers": [
                [
                    {
                        "relative": at.relative if len(at.heads) else None,
                        "share": at.fraction if len(at.heads) else None,
                        "heads": at.heads.tolist(),
                    }
                    for at in layers
                ]
                for layers in self.layers
            ],
        }


def distance_history(
    path: Path, kernel_size: int = 3, max_epochs: int | None = None
) -> DistanceHistory:
    """The distances at the snapshots of a run, K in tokens.

    If `max_epochs` is given, at most so many of the snapshots, closer at the beginning.
    """
    epochs = require_snapshots(path)
    if max_epochs is not None:
        epochs = spread_epochs(epochs, max_epochs)
    distances = tuple(
        tuple(
            convolution_distance(
                attention_matrix(layer["scores"]), layer["value_gram"], kernel_size
            )
            for layer in read_layers(path, epoch)[1]
        )
        for epoch in epochs
    )
    linearised = encoder_settings(path).encoding == "content"
    numbers = tuple(head_numbers(path))
    return DistanceHistory(kernel_size, linearised, tuple(epochs), distances, numbers)


def draw_distances(history: DistanceHistory, title: str) -> Any:
    """A figure: a panel for each layer, the layer's distance thick and black, its heads' thin."""
    size = history.kernel_size
    condition = ", seen at X = 0," if history.linearised else ""
    caption = (
        f"The thick black line is the distance of the whole layer{condition} to the nearest "
        f"{size} × {size} convolution with zeros around the image; 0 is a convolution, 1 is "
        "far from all of them. The thin lines are the distances of the attention of each head."
    )
    count, shared = len(history.numbers), {"sharex": True, "sharey": True}
    figure, grid = panels_of(count, 3.4, 2.5, title=title, caption=caption, **shared)
    marker = "." if len(history.epochs) <= MAX_MARKED_POINTS else None
    for number, (axes, heads) in enumerate(zip(grid, history.numbers, strict=True)):
        over_time, name = [layers[number] for layers in history.layers], f"layer{number + 1}"
        axes.set_title(f"layer {number + 1}, {len(heads) or 'no'} heads", fontsize=9)
        axes.set_ylim(0, 1.02)
        axes.grid(visible=True, alpha=0.3)
        if number + axes.get_gridspec().ncols >= count:
            axes.set_xlabel("epoch", fontsize=8)
        if not heads:
            continue
        for index, head in enumerate(heads):
            distances = [at.heads[index] for at in over_time]
            line = {"color": head_color(head), "linewidth": 0.7, "gid": f"{name}-head{head}"}
            axes.plot(history.epochs, distances, marker=marker, **line)
        line = {"color": "black", "linewidth": 2, "gid": name}
        axes.plot(history.epochs, [at.relative for at in over_time], marker=marker, **line)
        epoch_axis(axes)
    figure.supylabel("relative distance", fontsize=8)
    _draw_legend(figure, history)
    return figure


def _draw_legend(figure: Any, history: DistanceHistory) -> None:
    """Beside the panels, the number and colour of each head, and the line of the layer."""
    from matplotlib.lines import Line2D

    lines = [Line2D([], [], color="black", linewidth=2, label="layer")]
    for head in sorted({head for heads in history.numbers for head in heads}):
        lines.append(Line2D([], [], color=head_color(head), linewidth=1.5, label=f"head {head}"))
    columns = math.ceil(len(lines) / MAX_LABELS)
    where = {"loc": "outside right upper", "fontsize": 6, "handlelength": 1.2, "ncols": columns}
    figure.legend(handles=lines, **where)


def distance_table(history: DistanceHistory) -> Table:
    """The distances at the last epoch."""
    size = history.kernel_size
    table = Table(
        title=f"Distance to the nearest {size} × {size} convolution, epoch {history.epochs[-1]}"
    )
    for name in ("layer", "relative distance", "convolution", "heads"):
        table.add_column(name, justify="left" if name == "heads" else "right")
    for number, layer in enumerate(history.layers[-1], 1):
        if not len(layer.heads):
            table.add_row(str(number), "–", "–", "no heads")
            continue
        heads = " ".join(f"{distance:.2f}" for distance in layer.heads)
        table.add_row(str(number), f"{layer.relative:.3f}", f"{100 * layer.fraction:.1f} %", heads)
    return table
