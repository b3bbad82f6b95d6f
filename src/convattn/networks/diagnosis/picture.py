"""Pictures as PNG and SVG files, the same bytes for the same numbers.

Pictures are made with matplotlib's objects, without the state of pyplot and without a screen. Text
stays text in the SVG, and what a reader may look for has an `id` there.
"""

import io
import math
import textwrap
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from convattn.extras import remedy
from convattn.files import write_inside

FORMATS = ("png", "svg")
STABLE: Any = {"svg.hashsalt": "convattn", "svg.fonttype": "none"}
DOTS_PER_INCH = 150
TITLE_POINTS, CAPTION_POINTS = 9.0, 8.0
MARGIN = 0.2
LETTER_WIDTH = 0.64  # of the font's size, on average
FEW_POINTS = 10
MOST_COLUMNS, LEAST_WIDTH = 3, 4.0


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
    letters = max(int(72 * inches / (LETTER_WIDTH * points)), 1)
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
    with matplotlib.rc_context(STABLE):
        figure.savefig(buffer, format=file_format, dpi=DOTS_PER_INCH, metadata=metadata)
    return buffer.getvalue()


def picture_files(figure: Any, name: str) -> dict[str, bytes]:
    """`name.png` and `name.svg` with their content."""
    figure.draw_without_rendering()  # arranges the panels,
    figure.set_layout_engine("none")  # once for all formats: it takes longer than drawing
    return {f"{name}.{each}": picture_bytes(figure, each) for each in FORMATS}


def save_picture(figure: Any, folder: Path, name: str) -> list[Path]:
    """Write `name.png` and `name.svg` into a folder, which is made if it is missing.

    What stood there is replaced at once or not at all.
    """
    contents = picture_files(figure, name)
    folder.mkdir(parents=True, exist_ok=True)
    for path, content in contents.items():
        write_inside(folder / path, content)
    return [folder / path for path in contents]


def epoch_axis(axes: Any) -> None:
    """Ticks at whole epochs, and room around a single one; after everything was plotted."""
    from matplotlib.ticker import MaxNLocator

    low, high = axes.dataLim.intervalx
    if low == high:
        axes.set_xlim(low - 1, high + 1)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def head_color(number: int) -> Any:
    """The colour of the head with this number, the same in every picture.

    Ten strong colours, then the same ten light; from the 21st head, counted from 1, they repeat.

    >>> len({head_color(number) for number in range(1, 41)})
    20
    """
    import matplotlib

    light, place = divmod((number - 1) % 20, 10)
    return matplotlib.colormaps["tab20"](2 * place + light)


def panels_of(
    count: int, width: int | float, height: int | float, *, title: str, caption: str, **shared: bool
) -> tuple[Any, list[Any]]:
    """A figure with a grid of panels of this size, at most three in a row, and their axes.

    Places without a panel are empty. The lowest panel of each column shows its ticks.
    """
    columns = min(count, MOST_COLUMNS)
    rows = math.ceil(count / columns)
    figure = new_figure(
        max(width * columns, LEAST_WIDTH), height * rows, title=title, caption=caption
    )
    axes = list(figure.subplots(rows, columns, squeeze=False, **shared).flat)
    for place in axes[count:]:
        place.set_axis_off()
    for place in axes[max(count - columns, 0) : count]:
        place.tick_params(labelbottom=True)  # also above a place that has no panel
    return figure, axes[:count]
