"""Centres of attention: Figures 4, 12 and 14 of C20, and over training Figure 3."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from convattn.analysis.ellipses import SHARES, head_ellipse
from convattn.analysis.snapshot_layers import encoder_settings, read_layers, spread_epochs
from convattn.training.snapshots import snapshot_epochs

GAUSSIAN = ("quadratic", "gaussian")
PANELS = 6
LEAST_WINDOW = 3.5


@dataclass(frozen=True)
class GaussianHeads:
    """The heads of a layer.

    **Fields:**

    - `title`: what the panel is of.
    - `centers`: Δ, `[heads, 2]` in (row, column).
    - `root_precision`: R with Σ⁻¹ = RᵀR, `[heads, 2, 2]`.
    - `tokens`: rows and columns of the image.
    """

    title: str
    centers: np.ndarray
    root_precision: np.ndarray
    tokens: tuple[int, int]


def centers_of_layers(path: Path, epoch: int | None = None) -> tuple[int, list[GaussianHeads]]:
    """The epoch, and the heads of each layer.

    **Arguments:**

    - `epoch`: that of the newest snapshot if not given.

    **Raises:** `ValueError` for a run whose heads have no centres, or without that snapshot.
    """
    require_gaussian(path)
    chosen, layers = read_layers(path, epoch)
    return chosen, [
        gaussian_heads(f"layer {number}", layer) for number, layer in enumerate(layers, 1)
    ]


def centers_over_training(
    path: Path, layer: int, epochs: Sequence[int] | None = None
) -> list[GaussianHeads]:
    """The heads of one layer at several epochs.

    **Arguments:**

    - `layer`: counted from 1.
    - `epochs`: six of the snapshots, closer at the beginning, if not given.

    **Raises:** `ValueError` for a run whose heads have no centres, a layer that there is not, or
    epochs without a snapshot.
    """
    require_gaussian(path)
    depth = encoder_settings(path).depth
    if not 1 <= layer <= depth:
        raise ValueError(f"layer {layer}, but {path} has layers 1 to {depth}; give --layer")
    chosen = spread_epochs(snapshot_epochs(path), PANELS) if epochs is None else epochs
    if not chosen:
        read_layers(path)  # says why there is none
    return [
        gaussian_heads(f"epoch {epoch}", read_layers(path, epoch)[1][layer - 1]) for epoch in chosen
    ]


def require_gaussian(path: Path) -> None:
    """Refuse runs whose heads have no centres.

    **Raises:** `ValueError`.
    """
    encoding = encoder_settings(path).encoding
    if encoding not in GAUSSIAN:
        raise ValueError(
            f"the heads of {path} have the encoding {encoding!r}, which has no centres; draw their "
            f"maps instead: python experiments/analyse.py attention {path}"
        )


def gaussian_heads(title: str, layer: dict[str, np.ndarray]) -> GaussianHeads:
    """The heads that a snapshot holds of a layer."""
    rows, columns = ((side + 1) // 2 for side in layer["scores"].shape[1:])
    return GaussianHeads(title, layer["centers"], layer["root_precision"], (rows, columns))


def window(panels: Sequence[GaussianHeads]) -> float:
    """How far a picture reaches from the query: to all centres that lie in the image, and 1.5 more.

    >>> heads = GaussianHeads("", np.array([[4.0, 0.0]]), np.eye(2)[None], (16, 16))
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
    """What a picture of centres cannot show.

    **Fields:**

    - `shapeless`: heads without ellipses: Σ⁻¹ is zero, or a number is not finite.
    - `clipped`: heads of which an ellipse reaches beyond the picture.
    - `outside`: heads with centres beyond the picture.
    """

    shapeless: int
    clipped: int
    outside: int

    @property
    def caption(self) -> str:
        """In words, or empty.

        >>> Omissions(1, 0, 2).caption
        'without ellipses (Σ⁻¹ zero or not finite): 1 of the heads; centre outside: 2 of the heads'
        """
        counted = {
            "without ellipses (Σ⁻¹ zero or not finite)": self.shapeless,
            "ellipse clipped": self.clipped,
            "centre outside": self.outside,
        }
        return "; ".join(f"{what}: {n} of the heads" for what, n in counted.items() if n)


def omissions(panels: Sequence[GaussianHeads], reach: float) -> Omissions:
    """What a picture that reaches so far from the query leaves out."""
    shapeless = clipped = outside = 0
    for panel in panels:
        for center, root in zip(panel.centers, panel.root_precision, strict=True):
            largest = head_ellipse(center, root, max(SHARES))
            beyond = not np.isfinite(center).all() or bool(np.abs(center).max() > reach)
            outside += beyond
            if largest is None:
                shapeless += 1
            else:
                clipped += bool((np.abs(center) + largest.half_extents > reach).any())
    return Omissions(shapeless, clipped, outside)
