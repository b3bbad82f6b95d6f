"""How far each layer and head is from the nearest convolution, over training. Not in the papers.

A layer of positional attention on tokens is the linear map L = Σ_h A_h ⊗ W_h: token k of the input
adds X_k L[q, k] = X_k Σ_h A_h[q, k] W_h to token q of the output. For images of 256 tokens with 400
features it has 10¹⁰ entries. The distance to the K × K convolutions needs none of them.

*Claim.* Let P replace a matrix [q, k] by its mean over the pairs with the same shift k - q where
that shift is a tap, and by zero elsewhere. With D_h = A_h - P A_h,

    |L - C|² = Σ_gh ⟨D_g, D_h⟩ ⟨W_g, W_h⟩   for the nearest convolution C,

    |L|² = Σ_gh ⟨A_g, A_h⟩ ⟨W_g, W_h⟩,   |C|² = Σ_gh ⟨P A_g, P A_h⟩ ⟨W_g, W_h⟩.

*Proof.* A zero-padded convolution is a map with C[q, k] = Θ_(k-q) where the shift is a tap, and
zero elsewhere. These maps are a linear space; pairs of different shifts are different entries, so
the nearest C has for each tap the Θ that is nearest to all L[q, k] of its pairs in the sum of
squares: their mean. It is linear in L, and the mean of Σ_h A_h[q, k] W_h is Σ_h (P A_h)[q, k] W_h.
So C = Σ_h P A_h ⊗ W_h and L - C = Σ_h D_h ⊗ W_h. Last,

    ⟨A ⊗ W, B ⊗ V⟩ = Σ_qkio A[q, k] W[i, o] B[q, k] V[i, o] = ⟨A, B⟩⟨W, V⟩. ∎

P is an orthogonal projection, so ⟨D_g, D_h⟩ = ⟨A_g, A_h⟩ - ⟨P A_g, P A_h⟩; but that difference of
large numbers would lose a small distance to rounding, so D_h is formed. For shift matrices D_h = 0
exactly. What can still cancel are the signs of ⟨W_g, W_h⟩, when heads with the same D_h and
opposite maps take each other away; a sum that rounding makes negative is zero.

Borders are a part of the distance: a head whose centre lies outside the image attends elsewhere,
and a zero-padded convolution would find zeros there.

This is `residual.relative_frobenius` of `attention_to_conv` for layers with patches of one token
and without stride.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from rich.table import Table

from convattn.lab.analysis.picture import FEW_POINTS, epoch_axis, head_color, panels_of
from convattn.lab.analysis.run_summary import Numbers, encoder_settings, head_numbers
from convattn.lab.analysis.snapshots import (
    attention_matrix,
    read_layers,
    require_snapshots,
    spread_epochs,
)
from convattn.operators.shifts import axis_taps, per_axis

MOST_LABELS = 17


@dataclass(frozen=True)
class ConvolutionDistance:
    """How far a layer, and each head's attention, is from a convolution.

    Attributes:
        relative: |L - C| / |L|, in [0, 1]; 0 if L vanishes.
        fraction: |C|² / |L|², how much of the layer the convolution is; 1 if L vanishes.
        heads: `[heads]`, |A_h - P A_h| / |A_h|.
    """

    relative: float
    fraction: float
    heads: np.ndarray


def convolution_distance(
    attention: Float[np.ndarray, "heads query_rows query_columns key_rows key_columns"],
    value_gram: Float[np.ndarray, "heads heads"],
    kernel_size: int | Sequence[int],
    *,
    dilation: int | Sequence[int] = 1,
) -> ConvolutionDistance:
    """The distance of L = Σ_h A_h ⊗ W_h to the K × K convolutions, K odd or even.

    Of the A_h the keys are the tokens that queries are: a ring of zeros gives nothing, so its
    columns are left out. The Gram matrix is that of the ⟨W_g, W_h⟩.

    >>> rows = np.eye(3)[:, None, :, None]  # three tokens in a column; each attends to itself
    >>> convolution_distance(rows[None], np.ones((1, 1)), 1)
    ConvolutionDistance(relative=0.0, fraction=1.0, heads=array([0.]))
    """
    heads, *sides = attention.shape
    if attention.ndim != 5 or sides[:2] != sides[2:] or value_gram.shape != (heads, heads):
        raise ValueError(
            f"attention.shape={attention.shape} and value_gram.shape={value_gram.shape}, but "
            "expected [heads, rows, columns, rows, columns] and [heads, heads]"
        )
    whole = attention.astype(np.float64)
    nearest = tap_means(whole, per_axis(kernel_size, 2, "kernel_size"), dilation)
    gap = whole - nearest
    size, distance, kept = (
        squared_norm(part, value_gram.astype(np.float64)) for part in (whole, gap, nearest)
    )
    norms, gaps = (np.sqrt(np.sum(part**2, axis=(1, 2, 3, 4))) for part in (whole, gap))
    if not size:
        relative, fraction = 0.0, 1.0
    else:
        relative, fraction = float(np.sqrt(distance / size)), float(kept / size)
    return ConvolutionDistance(relative, fraction, gaps / np.where(norms > 0, norms, 1))


def tap_means(
    attention: Float[np.ndarray, "heads query_rows query_columns key_rows key_columns"],
    kernel_size: Sequence[int],
    dilation: int | Sequence[int] = 1,
) -> Float[np.ndarray, "heads query_rows query_columns key_rows key_columns"]:
    """P A_h: for each tap the mean over the pairs that it joins, and zero elsewhere."""
    sides = attention.shape[1:3]
    steps = per_axis(dilation, 2, "dilation")
    found = np.zeros_like(attention)
    for tap in product(*(axis_taps(size) for size in kernel_size)):
        queries, keys = [], []
        for shift, side in zip((tap[0] * steps[0], tap[1] * steps[1]), sides, strict=True):
            inside = np.arange(max(0, -shift), min(side, side - shift))
            if not len(inside):
                raise ValueError(
                    f"an image of {sides[0]} × {sides[1]} tokens has no pair that tap {tap} of a "
                    f"kernel of size {tuple(kernel_size)} joins; take a smaller kernel"
                )
            queries.append(inside)
            keys.append(inside + shift)
        where = (
            slice(None),
            queries[0][:, None],
            queries[1][None, :],
            keys[0][:, None],
            keys[1][None, :],
        )
        found[where] = attention[where].mean(axis=(1, 2), keepdims=True)
    return found


def squared_norm(
    attention: Float[np.ndarray, "heads *pairs"], value_gram: Float[np.ndarray, "heads heads"]
) -> float:
    """|Σ_h A_h ⊗ W_h|² = Σ_gh ⟨A_g, A_h⟩ ⟨W_g, W_h⟩, and zero where rounding makes it negative.

    >>> squared_norm(np.ones((2, 3)), np.array([[1.0, -1.0], [-1.0, 1.0]]))
    0.0
    """
    flat = attention.reshape(len(attention), int(np.prod(attention.shape[1:])))
    return max(float(np.sum((flat @ flat.T) * value_gram)), 0.0)


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
    path: Path, kernel_size: int = 3, most_epochs: int | None = None
) -> DistanceHistory:
    """The distances at the snapshots of a run, K in tokens.

    If `most_epochs` is given, at most so many of the snapshots, closer at the beginning.
    """
    epochs = require_snapshots(path)
    if most_epochs is not None:
        epochs = spread_epochs(epochs, most_epochs)
    found = tuple(
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
    return DistanceHistory(kernel_size, linearised, tuple(epochs), found, numbers)


def draw_distances(history: DistanceHistory, title: str) -> Any:
    """A figure: a panel for each layer, the layer's distance thick and black, its heads' thin."""
    size = history.kernel_size
    seen = ", seen at X = 0," if history.linearised else ""
    caption = (
        f"The thick black line is the distance of the whole layer{seen} to the nearest {size} × "
        f"{size} convolution with zeros around the image; 0 is a convolution. The thin lines are "
        "the distances of the attention of each head."
    )
    count, shared = len(history.numbers), {"sharex": True, "sharey": True}
    figure, grid = panels_of(count, 3.4, 2.5, title=title, caption=caption, **shared)
    marker = "." if len(history.epochs) <= FEW_POINTS else None
    for number, (axes, heads) in enumerate(zip(grid, history.numbers, strict=True)):
        over_time, name = [layers[number] for layers in history.layers], f"layer{number + 1}"
        axes.set_title(f"layer {number + 1}, {len(heads) or 'no'} heads", fontsize=9)
        axes.set_ylim(0, 1.02)
        axes.grid(visible=True, alpha=0.3)
        if number + axes.get_gridspec().ncols >= count:
            axes.set_xlabel("epoch", fontsize=8)
        if not heads:
            continue
        for place, head in enumerate(heads):
            distances = [at.heads[place] for at in over_time]
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
    columns = math.ceil(len(lines) / MOST_LABELS)
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
