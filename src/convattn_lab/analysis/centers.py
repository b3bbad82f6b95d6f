"""Centres of attention, with the ellipses that hold a fraction of it: C20, Figs. 3, 4, 12 and 14.

The attention of a head around a query falls off as a Gaussian N(Δ, Σ) with Σ⁻¹ = RᵀR. If δ is drawn
from it, R(δ - Δ) is N(0, I) in two dimensions, whose squared length exceeds t with probability
exp(-t/2). So the fraction p lies in

    |R(δ - Δ)|² ≤ -2 ln(1 - p).

With R = U diag(s) Vᵀ that is Σ_i s_i² (v_i·(δ - Δ))² ≤ ρ², ρ² = -2 ln(1 - p): an ellipse with
semi-axes ρ/s_i along the v_i. (On the pixels of an image the fraction is that up to discretisation
and borders.)
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from convattn_lab.analysis.panels import head_color, panels_of
from convattn_lab.analysis.run_summary import Numbers, encoder_settings, head_numbers
from convattn_lab.analysis.snapshots import (
    Layer,
    read_layers,
    require_snapshots,
    spread_epochs,
    tokens_of,
)

GAUSSIAN = ("quadratic", "gaussian")
FRACTIONS = {0.5: "solid", 0.9: "dotted"}
PANELS, MAX_LABELS = 6, 20
MIN_WINDOW, ROOM = 3.0, 0.5  # tokens
MAX_IMAGES = 1.5
FAR = 50.0
CAPTION = (
    "A number is a head, at its centre of attention; its solid ellipse holds 50 % of its Gaussian, "
    "the dotted one 90 %. The black square is the query."
)


@dataclass(frozen=True)
class Ellipse:
    """An ellipse in (row, column).

    Attributes:
        semi_axes: `[2]`, rising; infinite where Σ⁻¹ is singular.
        directions: `[2, 2]`, a unit vector for each.
    """

    semi_axes: np.ndarray
    directions: np.ndarray

    @property
    def half_extents(self) -> np.ndarray:
        """How far it reaches from its centre in rows and in columns."""
        extents = np.zeros((2, 2))
        reached = self.directions != 0  # 0·∞ is nothing
        np.multiply(np.abs(self.directions), self.semi_axes[:, None], out=extents, where=reached)
        return np.hypot(*extents)

    @property
    def angle(self) -> float:
        """Of the first semi-axis, in degrees from the columns' axis towards the rows'."""
        return math.degrees(math.atan2(self.directions[0, 0], self.directions[0, 1]))


def radius(fraction: float) -> float:
    """ρ with P(|N(0, I₂)| ≤ ρ) = fraction in [0, 1).

    >>> round(radius(1 - math.exp(-2)), 12)
    2.0
    """
    return math.sqrt(-2 * math.log1p(-fraction))


def head_ellipse(center: np.ndarray, root: np.ndarray, fraction: float) -> Ellipse | None:
    """The ellipse around Δ that holds that fraction of a head's Gaussian, of root R `[2, 2]`.

    There is none if a number is not finite, or if R = 0: the head looks everywhere.

    >>> found = head_ellipse(np.zeros(2), np.diag([2.0, 0.5]), 1 - math.exp(-2))
    >>> found.semi_axes.round(12).tolist()
    [1.0, 4.0]
    """
    if not (np.isfinite(center).all() and np.isfinite(root).all()) or not root.any():
        return None
    _, scales, directions = np.linalg.svd(root.astype(np.float64))
    with np.errstate(divide="ignore", over="ignore"):
        return Ellipse(radius(fraction) / scales, directions)


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
    """The epoch, that of `read_layers` if not given, and the heads of each layer."""
    require_gaussian(path)
    chosen, layers = read_layers(path, epoch)
    numbers = head_numbers(path)
    return chosen, [
        _heads(f"layer {number}", layer, number, numbers[number - 1])
        for number, layer in enumerate(layers, 1)
    ]


def centers_over_training(
    path: Path, layer: int, epochs: Sequence[int] | None = None
) -> list[GaussianHeads]:
    """The heads of one layer, counted from 1, at several epochs; each is shown once.

    If no epochs are given, six of the snapshots, closer at the beginning.
    """
    require_gaussian(path)
    depth = encoder_settings(path).depth
    if not 1 <= layer <= depth:
        raise ValueError(f"layer {layer}, but {path} has layers 1 to {depth}; give --layer")
    if epochs is not None and not len(epochs):
        raise ValueError("--epochs has no numbers; give epochs of snapshots, or leave it out")
    chosen = spread_epochs(require_snapshots(path), PANELS) if epochs is None else epochs
    numbers = head_numbers(path)[layer - 1]
    return [
        _heads(f"epoch {epoch}", read_layers(path, epoch)[1][layer - 1], layer, numbers)
        for epoch in dict.fromkeys(chosen)
    ]


def require_gaussian(path: Path) -> None:
    """Refuse runs whose heads have no centres."""
    encoding = encoder_settings(path).encoding
    if encoding not in GAUSSIAN:
        raise ValueError(
            f"the heads of {path} have the encoding {encoding!r}, which has no centres; draw their "
            f"maps instead: python experiments/analyse.py attention {path}"
        )


def _heads(title: str, stored: Layer, layer: int, numbers: Numbers) -> GaussianHeads:
    arrays = (stored["centers"], stored["root_precision"], tokens_of(stored["scores"]))
    return GaussianHeads(title, *arrays, layer, numbers)


def window(panels: Sequence[GaussianHeads]) -> float:
    """How far a picture reaches from the query: to all 90 % ellipses, unless one is huge.

    An ellipse counts if it ends within one and a half images of the query; of other heads the
    centre counts, if it lies in the image.

    >>> heads = GaussianHeads("", np.array([[4.0, 0.0]]), np.eye(2)[None], (16, 16), 1, (1,))
    >>> round(window([heads]), 2)  # 4 + √(2 ln 10), and some room
    6.65
    """
    reached = [MIN_WINDOW]
    for panel in panels:
        side = max(panel.tokens)
        for center, root in zip(panel.centers, panel.root_precision, strict=True):
            far = float(np.abs(center).max())
            ellipse = head_ellipse(center, root, max(FRACTIONS))
            end = np.inf if ellipse is None else (np.abs(center) + ellipse.half_extents).max()
            if end <= MAX_IMAGES * side:
                reached.append(float(end))
            elif far <= side - 0.5:
                reached.append(far + 1)
    return max(reached) + ROOM


def omissions(panels: Sequence[GaussianHeads], reach: float) -> str:
    """In words, what a picture that reaches so far from the query leaves out; or nothing.

    A head counts once, in however many panels it is.
    """
    largest = max(FRACTIONS)
    counted: dict[str, set[tuple[int, int]]] = {
        "No ellipse can be drawn of {}": set(),
        f"The {100 * largest:.0f} % ellipse of {{}} is clipped": set(),
        "The centre of {} is outside": set(),
    }
    shapeless, clipped, off_picture = counted.values()
    ellipses = [
        ((panel.layer, number), center, head_ellipse(center, root, largest))
        for panel in panels
        for number, center, root in zip(
            panel.numbers, panel.centers, panel.root_precision, strict=True
        )
    ]
    for head, center, ellipse in ellipses:
        if not np.isfinite(center).all() or np.abs(center).max() > reach:
            off_picture.add(head)
        if ellipse is None:
            shapeless.add(head)
        elif (np.abs(center) + ellipse.half_extents > reach).any():
            clipped.add(head)
    heads = len({head for head, _, _ in ellipses})
    when = " at some epoch" if len(ellipses) > heads else ""
    return " ".join(
        f"{what.format(f'{len(omitted)} of {heads} heads')}{when}."
        for what, omitted in counted.items()
        if omitted
    )


def draw_centers(panels: Sequence[GaussianHeads], title: str) -> Any:
    """A panel for each layer or epoch, with a black square for the query and a colour for each
    head, the same in every panel; rows go down, columns right."""
    reach = window(panels)
    caption = f"{CAPTION} {omissions(panels, reach)}".strip()
    figure, grid = panels_of(len(panels), 3.0, 3.0, title=title, caption=caption)
    columns = grid[0].get_gridspec().ncols
    for number, (axes, heads) in enumerate(zip(grid, panels, strict=True)):
        _draw_panel(axes, heads, reach, f"panel{number + 1}")
        if number + columns >= len(panels):
            axes.set_xlabel("column shift (tokens)", fontsize=7)
        if number % columns == 0:
            axes.set_ylabel("row shift (tokens)", fontsize=7)
    _draw_legend(figure, panels)
    return figure


def _draw_legend(figure: Any, panels: Sequence[GaussianHeads]) -> None:
    """Beside the panels: the query, the two ellipses, and the colour of each head."""
    from matplotlib.lines import Line2D

    numbers = sorted({number for panel in panels for number in panel.numbers})
    lines = [Line2D([], [], color="black", marker="s", linestyle="none", label="query")]
    for fraction, style in FRACTIONS.items():
        how: Any = {"color": "grey", "linestyle": style, "label": f"{100 * fraction:.0f} %"}
        lines.append(Line2D([], [], **how))
    for number in numbers:
        lines.append(Line2D([], [], color=head_color(number), label=f"head {number}"))
    columns = -(-len(lines) // MAX_LABELS)
    where = {"loc": "outside right upper", "fontsize": 6, "handlelength": 1.4, "ncols": columns}
    figure.legend(handles=lines, **where)


def _style_of(color: Any) -> dict[str, Any]:
    """How the number of a head is written: in its colour, with a white edge, within the panel."""
    from matplotlib.patheffects import withStroke

    edge = withStroke(linewidth=1.5, foreground="white")
    middle = {"ha": "center", "va": "center", "clip_on": True}
    return {"color": color, "fontsize": 7, "weight": "bold", "path_effects": [edge], **middle}


def _draw_panel(axes: Any, heads: GaussianHeads, reach: float, name: str) -> None:
    """One panel; its parts have ids that begin with its name."""
    from matplotlib.patches import Ellipse as Outline
    from matplotlib.patches import Rectangle

    axes.set_title(f"{heads.title}, {len(heads.centers)} heads", fontsize=9)
    axes.set(xlim=(-reach, reach), ylim=(reach, -reach), aspect="equal")
    axes.tick_params(labelsize=7)
    axes.add_patch(Rectangle((-0.5, -0.5), 1, 1, color="black", gid=f"{name}-query"))
    for head, center, root in zip(heads.numbers, heads.centers, heads.root_precision, strict=True):
        color = head_color(head)
        row, column = (float(value) for value in center)
        if np.isfinite(center).all():
            axes.text(column, row, f"{head}", gid=f"{name}-head{head}-centre", **_style_of(color))
        for fraction, style in FRACTIONS.items():
            ellipse = head_ellipse(center, root, fraction)
            if ellipse is None:
                continue
            # So far outside an ellipse looks like two parallel lines, and numbers stay drawable.
            axis, other = np.minimum(ellipse.semi_axes, FAR * reach)
            outline = Outline(
                (column, row),
                2 * axis,
                2 * other,
                angle=ellipse.angle,
                fill=False,
                edgecolor=color,
                linestyle=style,
                gid=f"{name}-head{head}-ellipse{100 * fraction:.0f}",
            )
            axes.add_patch(outline)
