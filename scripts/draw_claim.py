"""Draws the pictures of docs/follow-one-claim.md: the heads of Lemma 1 of C20, and what checks it.

Usage: python scripts/draw_claim.py [--output docs/pictures]

The shifts and the ring are those that `ConvolutionGeometry` gives for a 3 × 3 kernel.
"""

import argparse
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Rectangle

from convattn.constructions.geometry import ConvolutionGeometry
from convattn.networks.diagnosis.picture import picture_files

GEOMETRY = ConvolutionGeometry.of((3, 3))
SIDE = 4  # pixels of the image on each axis
INSIDE, RING, MISSING, INK = "#dde9f7", "#e9e9e7", "#a52323", "#1b1d21"
BOXES = {  # what checks the claim: place of the box, text, which boxes it leads to
    "line": ((0, 1), "the paper's line\nLemma 1, eq. 10", ("file",)),
    "file": ((1, 1), "the claim\nproofs/cordonnier2020/\nlemma1.py", ("theorem", "certificate")),
    "theorem": ((2, 2), "the theorem\nproofs/coq/\ncordonnier2020/lemma1.v", ("kernel",)),
    "certificate": ((2, 0), "the certificate\ncertificates/\nC20.lemma1-K3-P1.json", ("checker",)),
    "kernel": ((3, 2), "Coq's kernel\nmake prove", ("row",)),
    "checker": ((3, 0), "the checker\nmake check", ("row",)),
    "row": ((4, 1), "the row of the ledger\nmake verify", ()),
}


def grid(axes: Any, query: tuple[int, int], ringed: bool, title: str) -> None:
    """An image, one query, and the key that each of the nine heads looks at."""
    (top, bottom), (left, right) = GEOMETRY.ring if ringed else ((0, 0), (0, 0))
    for row in range(-top, SIDE + bottom):
        for column in range(-left, SIDE + right):
            inside = 0 <= row < SIDE and 0 <= column < SIDE
            colour = "white" if inside else RING
            axes.add_patch(Rectangle((column, row), 1, 1, facecolor=colour, edgecolor="0.6"))
            if not inside:
                axes.text(column + 0.85, row + 0.85, "0", ha="center", va="center", fontsize=7)
    for head, (down, across) in enumerate(GEOMETRY.offsets, 1):
        row, column = query[0] + down, query[1] + across
        key = -top <= row < SIDE + bottom and -left <= column < SIDE + right
        colour = INK if key else MISSING
        if key:
            axes.add_patch(Rectangle((column, row), 1, 1, facecolor=INSIDE, edgecolor="0.6"))
        axes.text(
            column + 0.5,
            row + 0.5,
            str(head),
            color=colour,
            ha="center",
            va="center",
        )
    place = (query[1] + 0.04, query[0] + 0.04)
    axes.add_patch(Rectangle(place, 0.92, 0.92, fill=False, edgecolor=INK, linewidth=2))
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
    figure = Figure(figsize=(8.2, 3), layout="constrained")
    axes = figure.subplots()
    width, height, step = 1.72, 0.74, 2.05
    for (column, row), text, targets in BOXES.values():
        corner = (column * step, row)
        axes.add_patch(
            FancyBboxPatch(
                corner, width, height, boxstyle="round,pad=0.02", facecolor=INSIDE, edgecolor="0.4"
            )
        )
        head, _, rest = text.partition("\n")
        lines = rest.count("\n") + 2
        above = corner[1] + height / 2 + 0.11 * (lines - 1)
        for number, line in enumerate([head, *rest.split("\n")]):
            axes.text(
                corner[0] + width / 2,
                above - 0.22 * number,
                line,
                ha="center",
                va="center",
                fontsize=9 if number == 0 else 7,
                weight="bold" if number == 0 else "normal",
            )
        for target in targets:
            to = BOXES[target][0]
            end = (to[0] * step - 0.03, to[1] + height / 2)
            start = (corner[0] + width + 0.03, corner[1] + height / 2)
            axes.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": INK})
    axes.set(xlim=(-0.1, 4 * step + width + 0.1), ylim=(-0.1, 2.9))
    axes.axis("off")
    return figure


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    default = Path(__file__).resolve().parents[1] / "docs" / "pictures"
    parser.add_argument("--output", type=Path, default=default)
    folder = parser.parse_args().output
    for name, drawn in (("lemma1-heads", draw_heads()), ("lemma1-chain", draw_chain())):
        (folder / f"{name}.svg").write_bytes(picture_files(drawn, name)[f"{name}.svg"])
