"""Centres of attention: Figures 4, 12 and 14 of C20, and over training Figure 3."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from convattn.lab.analysis.ellipses import SHARES, head_ellipse
from convattn.lab.analysis.head_numbers import Numbers, head_numbers
from convattn.lab.analysis.score_tables import tokens_of
from convattn.lab.analysis.snapshot_layers import (
    Layer,
    encoder_settings,
    read_layers,
    spread_epochs,
)
from convattn.lab.training.snapshots import snapshot_epochs

GAUSSIAN = ("quadratic", "gaussian")
PANELS = 6
LEAST_WINDOW = 3.5


@dataclass(frozen=True)
class GaussianHeads:
    """The heads of a layer.

    Attributes:
        title: What the panel is of.
        centers: Δ, `[heads, 2]` in (row, column).
        root_precision: R with Σ⁻¹ = RᵀR, `[heads, 2, 2]`.
        tokens: Rows and columns of the image.
        layer: Counted from 1.
        numbers: Of the heads.
    """

    title: str
    centers: np.ndarray
    root_precision: np.ndarray
    tokens: tuple[int, int]
    layer: int
    numbers: Numbers


def centers_of_layers(path: Path, epoch: int | None = None) -> tuple[int, list[GaussianHeads]]:
    """The epoch, and the heads of each layer.

    Args:
        epoch: That of `default_epoch` if not given.

    Raises:
        ValueError: For a run whose heads have no centres, or without that snapshot.
    """
    require_gaussian(path)
    chosen, layers = read_layers(path, epoch)
    numbers = head_numbers(path)
    return chosen, [
        gaussian_heads(f"layer {place}", layer, place, numbers[place - 1])
        for place, layer in enumerate(layers, 1)
    ]


def centers_over_training(
    path: Path, layer: int, epochs: Sequence[int] | None = None
) -> list[GaussianHeads]:
    """The heads of one layer at several epochs.

    Args:
        layer: Counted from 1.
        epochs: Six of the snapshots, closer at the beginning, if not given; each is shown once.

    Raises:
        ValueError: For a run whose heads have no centres, a layer that there is not, no epochs, or
            epochs without a snapshot.
    """
    require_gaussian(path)
    depth = encoder_settings(path).depth
    if not 1 <= layer <= depth:
        raise ValueError(f"layer {layer}, but {path} has layers 1 to {depth}; give --layer")
    if epochs is not None and not len(epochs):
        raise ValueError("--epochs has no numbers; give epochs of snapshots, or leave it out")
    chosen = spread_epochs(snapshot_epochs(path), PANELS) if epochs is None else epochs
    if not chosen:
        read_layers(path)  # says why there is none
    numbers = head_numbers(path)[layer - 1]
    return [
        gaussian_heads(f"epoch {epoch}", read_layers(path, epoch)[1][layer - 1], layer, numbers)
        for epoch in dict.fromkeys(chosen)
    ]


def require_gaussian(path: Path) -> None:
    """Refuse runs whose heads have no centres.

    Raises:
        ValueError: As described above.
    """
    encoding = encoder_settings(path).encoding
    if encoding not in GAUSSIAN:
        raise ValueError(
            f"the heads of {path} have the encoding {encoding!r}, which has no centres; draw their "
            f"maps instead: python experiments/analyse.py attention {path}"
        )


def gaussian_heads(title: str, stored: Layer, layer: int, numbers: Numbers) -> GaussianHeads:
    """The heads that a snapshot holds of a layer."""
    tokens = tokens_of(stored["scores"])
    parts = (stored["centers"], stored["root_precision"], tokens)
    return GaussianHeads(title, *parts, layer, numbers)


def window(panels: Sequence[GaussianHeads]) -> float:
    """How far a picture reaches from the query: to all centres that lie in the image, and 1.5 more.

    >>> heads = GaussianHeads("", np.array([[4.0, 0.0]]), np.eye(2)[None], (16, 16), 1, (1,))
    >>> window([heads])
    5.5
    """
    most = max((max(panel.tokens) for panel in panels), default=1) - 0.5
    inside = [0.0]
    for panel in panels:
        far = np.abs(panel.centers).max(axis=1, initial=0)
        inside += [float(distance) for distance in far[np.isfinite(far)] if distance <= most]
    return min(max(LEAST_WINDOW, max(inside) + 1.5), max(most, 1.0))


@dataclass(frozen=True)
class Omissions:
    """What a picture of centres cannot show. A head counts once, in however many panels it is.

    Attributes:
        shapeless: Heads without ellipses: Σ⁻¹ is zero, or a number is not finite.
        clipped: Heads of which an ellipse reaches beyond the picture.
        outside: Heads with centres beyond the picture.
        heads: How many heads there are.
        over_time: Whether panels show the same heads at several epochs.
    """

    shapeless: int
    clipped: int
    outside: int
    heads: int
    over_time: bool = False

    @property
    def caption(self) -> str:
        """In words, or empty.

        >>> Omissions(1, 0, 2, 9).caption
        'No ellipse can be drawn of 1 of 9 heads. The centre of 2 of 9 heads is outside.'
        """
        counted = {
            "No ellipse can be drawn of {}": self.shapeless,
            f"The {100 * max(SHARES):.0f} % ellipse of {{}} is clipped": self.clipped,
            "The centre of {} is outside": self.outside,
        }
        when = " at some epoch" if self.over_time else ""
        return " ".join(
            f"{what.format(f'{n} of {self.heads} heads')}{when}."
            for what, n in counted.items()
            if n
        )


def omissions(panels: Sequence[GaussianHeads], reach: float) -> Omissions:
    """What a picture that reaches so far from the query leaves out."""
    heads: set[tuple[int, int]] = set()
    shapeless, clipped, outside = set(heads), set(heads), set(heads)
    shown = 0
    for panel in panels:
        for number, center, root in zip(
            panel.numbers, panel.centers, panel.root_precision, strict=True
        ):
            head = (panel.layer, number)
            heads.add(head)
            shown += 1
            largest = head_ellipse(center, root, max(SHARES))
            if not np.isfinite(center).all() or np.abs(center).max() > reach:
                outside.add(head)
            if largest is None:
                shapeless.add(head)
            elif (np.abs(center) + largest.half_extents > reach).any():
                clipped.add(head)
    return Omissions(
        len(shapeless), len(clipped), len(outside), len(heads), over_time=shown > len(heads)
    )
