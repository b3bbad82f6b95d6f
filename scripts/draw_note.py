"""Draws the figure of docs/note/note.tex: head counts, and the error of fewer heads.

Usage: python scripts/draw_note.py [--output build/note]
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from convattn.bounds.approximation import approximate_conv
from convattn.bounds.generic_rank import generic_rank

SIDE = 17  # of the kernels in the left picture
PATCHES = range(1, 13)
TICKS = (1, 3, 9, 25, 49, 81, 289)
PAIRS = (1, 3, 9, 27)  # channel pairs


def draw_heads(axes: Any) -> None:
    """Heads needed for almost all kernels in the limit, and one for each offset."""
    for pairs, style in zip(PAIRS, ("-o", "-s", "-^", "-d"), strict=True):
        ranks = [generic_rank((SIDE,) * 2, (patch,) * 2, (1, 1), pairs) for patch in PATCHES]
        axes.plot(PATCHES, [rank.least for rank in ranks], style, label=f"$D = {pairs}$", ms=3)
    axes.plot(PATCHES, [rank.offsets for rank in ranks], "k--", label="$T$ offsets", lw=0.8)
    axes.set(xlabel="patch size $P$", ylabel="heads", yscale="log", ylim=(0.8, 400))
    axes.set_yticks(TICKS, map(str, TICKS))
    axes.minorticks_off()
    axes.legend(fontsize=7)


def draw_errors(axes: Any) -> None:
    """The two bounds of S.approx and the layer that the library finds, relative to |F|²."""
    kernel = np.random.default_rng(0).standard_normal((5, 5, 3, 3), np.float32)
    budgets = range(1, 11)
    fits = [approximate_conv(kernel, heads) for heads in budgets]
    total = float((kernel**2).sum())
    lines = {
        "reached: $\\sum_{i\\geq H}\\sigma_i^2$": ("-^", [one.next_bound for one in fits]),
        "found by the library": ("-o", [one.error.upper for one in fits]),
        "not beaten: $\\sum_{i>H}\\sigma_i^2$": ("-v", [one.lower_bound for one in fits]),
    }
    for label, (style, errors) in lines.items():
        axes.plot(budgets, np.array(errors) / total, style, label=label, ms=3)
    axes.set(xlabel="heads $H$", ylabel="relative squared error", xticks=list(budgets))
    axes.legend(fontsize=7)


def main() -> None:
    """Write figure.pdf, without the date, so that the same numbers give the same file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("build/note"))
    output = parser.parse_args().output
    figure = Figure(figsize=(6.4, 2.3), layout="constrained")
    for axes, draw in zip(figure.subplots(1, 2), (draw_heads, draw_errors), strict=True):
        axes.tick_params(labelsize=7)
        axes.xaxis.label.set_size(8)
        axes.yaxis.label.set_size(8)
        draw(axes)
    output.mkdir(parents=True, exist_ok=True)
    figure.savefig(output / "figure.pdf", metadata={"CreationDate": None})


if __name__ == "__main__":
    main()
