"""Pictures as PNG and SVG files, the same bytes for the same numbers.

Pictures are made with matplotlib's objects, without the state of pyplot and without a screen. Text
stays text in the SVG, and what a reader may look for has an `id` there.
"""

import io
import textwrap
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from convattn.extras import remedy
from convattn.files import write_inside

FORMATS = ("png", "svg")
_STABLE: Any = {"svg.hashsalt": "convattn", "svg.fonttype": "none"}
_DOTS_PER_INCH = 150
TITLE_POINTS, CAPTION_POINTS = 9.0, 8.0
MARGIN = 0.2
_LETTER_WIDTH = 0.64  # of the font's size, on average
MIN_WIDTH = 4.0


def require_matplotlib() -> None:
    """Refuse to draw without matplotlib, and say how it is installed."""
    if find_spec("matplotlib") is None:
        raise ValueError(f"pictures need matplotlib: {remedy('matplotlib')}")


def new_figure(
    width: int | float, height: int | float, *, title: str = "", caption: str = ""
) -> Any:
    """An empty `matplotlib.figure.Figure` of this size in inches, plus what its text takes.

    Title and caption, above and below, are broken into lines that fit.

    >>> new_figure(3, 2).get_size_inches().tolist()
    [3.0, 2.0]
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    above = wrapped(title, width - MARGIN, TITLE_POINTS)
    below = wrapped(caption, width - MARGIN, CAPTION_POINTS)
    height += text_height(above, TITLE_POINTS) + text_height(below, CAPTION_POINTS)
    figure = Figure(figsize=(width, height), layout="constrained")
    if above:
        figure.suptitle(above, fontsize=TITLE_POINTS, parse_math=False)
    if below:
        figure.supxlabel(below, fontsize=CAPTION_POINTS, parse_math=False)
    return figure


def wrapped(text: str, inches: int | float, points: int | float) -> str:
    """A text broken into lines of about this width, between words where that is possible.

    >>> wrapped("some words", 0.5, 10).splitlines(), wrapped("kernel", 0.3, 10).splitlines()
    (['some', 'words'], ['ker', 'nel'])
    """
    letters = max(int(72 * inches / (_LETTER_WIDTH * points)), 1)
    lines = (textwrap.wrap(line, letters, break_on_hyphens=False) for line in text.split("\n"))
    return "\n".join("\n".join(line) for line in lines)


def text_height(text: str, points: float) -> float:
    """The height of a text in inches with the space around it; 0 for an empty text."""
    return (1.25 * points * len(text.split("\n")) + 8) / 72 if text else 0.0


def picture_bytes(figure: Any, file_format: str) -> bytes:
    """A figure as `"png"` or `"svg"`.

    >>> picture_bytes(new_figure(1, 1), "png")[:4]
    b'\\x89PNG'
    """
    import matplotlib

    buffer = io.BytesIO()
    metadata = {"Date": None} if file_format == "svg" else None
    with matplotlib.rc_context(_STABLE):
        figure.savefig(buffer, format=file_format, dpi=_DOTS_PER_INCH, metadata=metadata)
    return buffer.getvalue()


def picture_files(figure: Any, name: str, formats: Sequence[str] = FORMATS) -> dict[str, bytes]:
    """`name.png` and `name.svg` with their content, or those of other formats."""
    figure.draw_without_rendering()  # arranges the panels,
    figure.set_layout_engine("none")  # once for all formats: it takes longer than drawing
    return {f"{name}.{each}": picture_bytes(figure, each) for each in formats}


def save_picture(figure: Any, folder: Path, name: str) -> list[Path]:
    """Write `name.png` and `name.svg` into a folder, which is made if it is missing.

    What stood there is replaced at once or not at all.
    """
    contents = picture_files(figure, name)
    folder.mkdir(parents=True, exist_ok=True)
    for path, content in contents.items():
        write_inside(folder / path, content)
    return [folder / path for path in contents]
