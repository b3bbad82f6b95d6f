"""Time and memory against the number of pixels, both axes logarithmic."""

import importlib
import io
from collections.abc import Iterable
from typing import Any

from benchmarks.rows import Row

CASE = "quadratic"

Series = dict[tuple[str, int], dict[str, list[Row]]]


def figure_bytes(rows: Iterable[Row], file_format: str) -> bytes:
    """A figure of the quadratic encoding's implementations, one row of panels for each width.

    A run without that encoding has the figure of all its cases.

    Args:
        file_format: `"png"` or `"svg"`.

    Raises:
        ImportError: Without matplotlib, `ValueError` where nothing was timed.
    """
    lines_of_cases = series(rows)
    if not lines_of_cases:
        raise ValueError("nothing was timed, so that there is nothing to draw")
    matplotlib: Any = importlib.import_module("matplotlib")
    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "convattn"
    pyplot: Any = importlib.import_module("matplotlib.pyplot")
    figure, panels = pyplot.subplots(
        len(lines_of_cases), 2, figsize=(11, 4.2 * len(lines_of_cases)), squeeze=False
    )
    for (time, memory), ((case, features), lines) in zip(
        panels, lines_of_cases.items(), strict=True
    ):
        for name, members in lines.items():
            pixels = [row.pixels for row in members]
            time.plot(pixels, [row.backward_seconds for row in members], "o-", label=name)
            sizes = [row.memory.total / 2**20 for row in members if row.memory is not None]
            if len(sizes) == len(pixels):
                memory.plot(pixels, sizes, "o-", label=name)
        for panel, label in ((time, "seconds, forward and backward"), (memory, "MiB by XLA")):
            panel.set(xscale="log", yscale="log", xlabel="pixels", ylabel=label)
            panel.set_title(f"{case}, D = {features}")
            panel.grid(visible=True, which="both", alpha=0.3)
        time.legend(fontsize="small")
    figure.tight_layout()
    buffer = io.BytesIO()
    metadata = {"Date": None} if file_format == "svg" else None
    figure.savefig(buffer, format=file_format, dpi=150, metadata=metadata)
    pyplot.close(figure)
    return buffer.getvalue()


def series(rows: Iterable[Row]) -> Series:
    """By case and width, and then by implementation, the timed rows, smaller ones first."""
    timed = sorted((row for row in rows if row.skipped is None), key=lambda row: row.side)
    cases = {CASE} if any(row.case == CASE for row in timed) else {row.case for row in timed}
    lines_of_cases: Series = {}
    for row in timed:
        if row.case in cases:
            lines = lines_of_cases.setdefault((row.case, row.features), {})
            lines.setdefault(row.contestant, []).append(row)
    return lines_of_cases
