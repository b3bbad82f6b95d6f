"""Draws the pictures of docs/trust.md: the heads of Lemma 1 of C20, and what checks it.

Usage: python scripts/draw_claim.py [--output docs/pictures]

The shifts and the ring are those that `ConvolutionGeometry` gives for a 3 × 3 kernel.
"""

import argparse
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from convattn.constructions.geometry import ConvolutionGeometry
from convattn.diagnosis.picture import picture_files

GEOMETRY = ConvolutionGeometry.of((3, 3))
SIDE = 4  # pixels of the image on each axis
KEY, RING, MISSING, INK = "#dde9f7", "#e9e9e7", "#a52323", "#1b1d21"
BOXES = {  # place, text, and which boxes it leads to
    "line": ((0, 1), "$\\bf{the\\ printed\\ line}$\nLemma 1, eq. 10", ("file",)),
    "file": ((1, 1), "$\\bf{the\\ claim}$\nlemma1.py", ("theorem", "certificate")),
    "theorem": ((2, 2), "$\\bf{the\\ theorem}$\nlemma1.v", ("kernel",)),
    "certificate": ((2, 0), "$\\bf{the\\ certificate}$\nC20.lemma1-K3-P1.json", ("checker",)),
    "kernel": ((3, 2), "$\\bf{the\\ kernel\\ of\\ Coq}$\nmake prove", ("row",)),
    "checker": ((3, 0), "$\\bf{the\\ checker}$\nmake check", ("row",)),
    "row": ((4, 1), "$\\bf{the\\ ledger}$\nmake verify", ()),
}


def grid(axes: Any, query: tuple[int, int], ringed: bool, title: str) -> None:
    """An image, one query, and the key that each of the nine heads looks at."""
    ring = GEOMETRY.ring if ringed else ((0, 0), (0, 0))
    rows, columns = (range(-before, SIDE + after) for before, after in ring)
    heads = {(query[0] + y, query[1] + x): n for n, (y, x) in enumerate(GEOMETRY.offsets, 1)}
    for row, column in sorted({(row, column) for row in rows for column in columns} | {*heads}):
        key, in_image = row in rows and column in columns, min(row, column) >= 0
        in_image = in_image and max(row, column) < SIDE
        if key:
            colour = KEY if (row, column) in heads else "white" if in_image else RING
            axes.add_patch(Rectangle((column, row), 1, 1, facecolor=colour, edgecolor="0.6"))
        if key and not in_image:
            axes.text(column + 0.85, row + 0.85, "0", ha="center", va="center", fontsize=7)
        number, colour = heads.get((row, column), ""), INK if key else MISSING
        axes.text(column + 0.5, row + 0.5, number, color=colour, ha="center", va="center")
    corner = (query[1] + 0.04, query[0] + 0.04)
    axes.add_patch(Rectangle(corner, 0.92, 0.92, fill=False, edgecolor=INK, linewidth=2))
    axes.set(xlim=(-1.2, SIDE + 1.2), ylim=(SIDE + 1.2, -1.2), aspect="equal")
    axes.set_title(title, fontsize=9)
    axes.axis("off")


def draw_heads() -> Figure:
    """An interior query, the corner of the bare image, and the corner with a ring of zeros."""
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    first, second, third = figure.subplots(1, 3)
    grid(first, (1, 2), False, "an interior query:\neach head has its key")
    grid(second, (0, 0), False, "the corner, as printed:\nfive heads have none")
    grid(third, (0, 0), True, "the corner, repaired:\nthe ring holds the keys")
    return figure


def draw_chain() -> Figure:
    """From the paper's line to the row of the ledger."""
    figure = Figure(figsize=(8.2, 2.4), layout="constrained")
    axes = figure.subplots()
    box = {"boxstyle": "round,pad=0.5", "facecolor": KEY, "edgecolor": "0.4"}
    boxes = {
        name: axes.text(*position, text, ha="center", va="center", fontsize=8, bbox=box, zorder=2)
        for name, (position, text, _) in BOXES.items()
    }
    for name, (position, _, targets) in BOXES.items():
        for target in targets:
            ends = {
                "patchA": boxes[name].get_bbox_patch(),
                "patchB": boxes[target].get_bbox_patch(),
            }
            arrow = {"arrowstyle": "->", "color": INK, **ends}
            axes.annotate("", BOXES[target][0], position, arrowprops=arrow, zorder=1)
    axes.set(xlim=(-0.5, 4.45), ylim=(-0.4, 2.4))
    axes.axis("off")
    return figure


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    default = Path(__file__).resolve().parents[1] / "docs" / "pictures"
    parser.add_argument("--output", type=Path, default=default)
    folder = parser.parse_args().output
    for name, figure in (("lemma1-heads", draw_heads()), ("lemma1-chain", draw_chain())):
        (folder / f"{name}.svg").write_bytes(picture_files(figure, name)[f"{name}.svg"])
