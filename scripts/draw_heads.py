"""Draws docs/pictures/heads.svg: a 3 × 3 kernel as nine shifted heads and a uniform one.

Usage: python scripts/draw_heads.py [--output docs/pictures/heads.svg]

Everything is read off the layer that `convattn.conv_to_attention` returns: the attention of one
interior query in each head, the number of its value map, and their products' sum. The sum must be
the kernel, entry by entry, before anything is drawn.
"""

import argparse
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

import convattn as ca

KERNEL = np.array([[4, 1, 0], [2, 3, 1], [0, -1, -2]], np.float32)
SIDE, LEAK = 3, 0.25  # pixels of the image, without its ring
OUTPUT = Path(__file__).resolve().parents[1] / "docs" / "pictures" / "heads.svg"


def heads_of(kernel: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Attention `[heads, keys, keys]` of the middle pixel, ring included, and a number a head."""
    layer = ca.conv_to_attention(kernel[:, :, None, None], leak=LEAK)
    maps = ca.attention_maps(layer, (SIDE, SIDE)).weights
    return np.asarray(maps[:, SIDE // 2, SIDE // 2]), np.asarray(layer.output).reshape(-1)


def panel(axes: Any, numbers: np.ndarray, title: str, written: bool) -> None:
    """One grid of numbers: of the kernel in colours, or of attention in greys."""
    from matplotlib.colors import PowerNorm

    if written:
        axes.imshow(numbers, cmap="RdBu_r", vmin=-5, vmax=5)
        for (row, column), number in np.ndenumerate(numbers):
            axes.text(column, row, f"{number:.0f}".replace("-0", "0"), ha="center", va="center")
    else:
        axes.imshow(numbers, cmap="Greys", norm=PowerNorm(0.4, vmin=0, vmax=1))
    axes.set_xticks(np.arange(len(numbers) + 1) - 0.5, labels=[])
    axes.set_yticks(np.arange(len(numbers) + 1) - 0.5, labels=[])
    axes.grid(color="0.75", linewidth=0.4)
    axes.tick_params(length=0)
    axes.set_title(title, fontsize=10, pad=3)


def draw(path: Path) -> None:
    """Write the picture, as SVG or PNG by the file's name."""
    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.hashsalt": "convattn", "svg.fonttype": "none"})
    from matplotlib import pyplot

    attention, values = heads_of(KERNEL)
    total = np.einsum("hij,h->ij", attention, values)
    np.testing.assert_allclose(total, np.pad(KERNEL, 1), atol=1e-5)

    picture = pyplot.figure(figsize=(11, 3.9))
    widths = [3.3, 0.7, 1.1, 1.1, 1.1, 0.5, 1.1, 0.7, 3.3]
    rows = picture.add_gridspec(3, 9, width_ratios=widths, wspace=0.15, hspace=0.35)
    panel(picture.add_subplot(rows[:, 0]), np.pad(KERNEL, 1), "kernel", True)
    for number in range(9):
        place = picture.add_subplot(rows[number // 3, 2 + number % 3])
        panel(place, attention[number], f"× {values[number]:.2f}", False)
    panel(picture.add_subplot(rows[1, 6]), attention[9], f"× {values[9]:.2f}", False)
    panel(picture.add_subplot(rows[:, 8]), total, "sum of the ten heads", True)
    for column, sign in ((1, "→"), (5, "+"), (7, "=")):
        place = picture.add_subplot(rows[1, column])
        place.axis("off")
        place.text(0.5, 0.5, sign, fontsize=20, ha="center", va="center")
    below = (
        "nine heads, one for each shift: the attention\nof one query, times the value of the head"
    )
    picture.text(0.435, -0.03, below, ha="center")
    picture.text(0.635, -0.03, "one uniform\nhead", ha="center")
    path.parent.mkdir(parents=True, exist_ok=True)
    metadata = {"Date": None} if path.suffix == ".svg" else None
    picture.savefig(path, bbox_inches="tight", dpi=100, metadata=metadata)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--output", type=Path, default=OUTPUT)
    draw(parser.parse_args().output)
