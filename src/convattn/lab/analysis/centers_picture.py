"""The picture of centres of attention: a panel for each layer or epoch."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from convattn.lab.analysis.centers import GaussianHeads, omissions, window
from convattn.lab.analysis.ellipses import SHARES, head_ellipse
from convattn.lab.analysis.picture import head_color, new_figure

MOST_COLUMNS = 3
FAR = 50.0
LEAST_WIDTH = 4.0


def draw_centers(panels: Sequence[GaussianHeads], title: str) -> Any:
    """A figure: the query a black square, a colour for each head; rows go down, columns right.

    A head has the same colour in every panel, and after pruning the one that it had before.

    The solid ellipse holds 50 % of a head's Gaussian, the dotted one 90 %.
    """
    columns = min(len(panels), MOST_COLUMNS)
    rows = math.ceil(len(panels) / columns)
    reach = window(panels)
    missing = omissions(panels, reach).caption
    legend = (
        "A dot is the centre of a head; its solid ellipse holds 50 % of its Gaussian, the dotted "
        "one 90 %. The black square is the query."
    )
    caption = f"{legend} {missing}".strip()
    figure = new_figure(max(2.3 * columns, LEAST_WIDTH), 2.5 * rows, title=title, caption=caption)
    grid = figure.subplots(rows, columns, squeeze=False)
    for number, axes in enumerate(grid.flat):
        if number < len(panels):
            draw_panel(axes, panels[number], reach, f"panel{number + 1}")
            if number + columns >= len(panels):
                axes.set_xlabel("column shift (tokens)", fontsize=7)
            if number % columns == 0:
                axes.set_ylabel("row shift (tokens)", fontsize=7)
        else:
            axes.set_axis_off()
    return figure


def draw_panel(axes: Any, heads: GaussianHeads, reach: float, name: str) -> None:
    """One panel; its parts have ids that begin with its name."""
    from matplotlib.patches import Ellipse as Outline
    from matplotlib.patches import Rectangle

    count = len(heads.centers)
    axes.set_title(f"{heads.title}, {count} heads", fontsize=9)
    axes.set(xlim=(-reach, reach), ylim=(reach, -reach), aspect="equal")
    axes.tick_params(labelsize=7)
    axes.add_patch(Rectangle((-0.5, -0.5), 1, 1, color="black", gid=f"{name}-query"))
    for head, center, root in zip(heads.numbers, heads.centers, heads.root_precision, strict=True):
        color = head_color(head)
        if np.isfinite(center).all():
            row, column = (float(value) for value in center)
            axes.plot([column], [row], ".", color=color, gid=f"{name}-head{head}-centre")
        for share, style in SHARES.items():
            found = head_ellipse(center, root, share)
            if found is None:
                continue
            # So far outside an ellipse looks like two parallel lines, and numbers stay drawable.
            axis, other = np.minimum(found.semi_axes, FAR * reach)
            outline = Outline(
                (column, row),
                2 * axis,
                2 * other,
                angle=found.angle,
                fill=False,
                edgecolor=color,
                linestyle=style,
                gid=f"{name}-head{head}-ellipse{100 * share:.0f}",
            )
            axes.add_patch(outline)
