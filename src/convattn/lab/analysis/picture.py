"""Pictures as PNG and SVG files, the same bytes for the same numbers.

Figures are made with matplotlib's objects, without the state of pyplot and without a screen. Text
stays text in the SVG, and what a reader may look for has an `id` there.
"""

import io
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from convattn.files import write_file
from convattn.lab.analysis.picture_text import text_height, wrapped

FORMATS = ("png", "svg")
STABLE: Any = {"svg.hashsalt": "convattn", "svg.fonttype": "none"}
DOTS_PER_INCH = 150
TITLE_POINTS, CAPTION_POINTS = 9.0, 8.0
MARGIN = 0.2
FEW_POINTS = 10


def require_matplotlib() -> None:
    """Refuse to draw without matplotlib.

    Raises:
        ValueError: With how it is installed.
    """
    if find_spec("matplotlib") is None:
        raise ValueError(
            "pictures need matplotlib, which is not installed; install the extra `experiments` in "
            "a checkout: pip install '.[experiments]', or matplotlib itself: pip install matplotlib"
        )


def new_figure(width: float, height: float, *, title: str = "", caption: str = "") -> Any:
    """An empty `matplotlib.figure.Figure` of so many inches, and as much more as its text takes.

    Args:
        title, caption: Above and below; broken into lines that fit.

    Raises:
        ValueError: Without matplotlib.

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


def picture_name(kind: str, **options: Any) -> str:
    """The name of a picture, with the options that were given, so that none replaces another.

    >>> picture_name("centers", epoch=None), picture_name("maps", query=(0, 3), epoch=2)
    ('centers', 'maps-query0-3-epoch2')
    """
    words = [kind]
    for name, value in options.items():
        if value is not None:
            values = value if isinstance(value, tuple) else (value,)
            words.append(name + "-".join(str(each) for each in values))
    return "-".join(words)


def picture_bytes(figure: Any, file_format: str) -> bytes:
    """A figure in a format.

    Args:
        file_format: `"png"` or `"svg"`.

    >>> picture_bytes(new_figure(1, 1), "png")[:4]
    b'\\x89PNG'
    """
    import matplotlib

    buffer = io.BytesIO()
    metadata = {"Date": None} if file_format == "svg" else None
    with matplotlib.rc_context(STABLE):
        figure.savefig(buffer, format=file_format, dpi=DOTS_PER_INCH, metadata=metadata)
    return buffer.getvalue()


def save_picture(figure: Any, folder: Path, name: str) -> list[Path]:
    """Write `name.png` and `name.svg`; what stood there is replaced at once or not at all.

    Args:
        folder: Made if it is missing.
    """
    folder.mkdir(parents=True, exist_ok=True)
    figure.draw_without_rendering()  # arranges the panels,
    figure.set_layout_engine("none")  # once for all formats: it takes longer than drawing
    paths = [folder / f"{name}.{file_format}" for file_format in FORMATS]
    for path, file_format in zip(paths, FORMATS, strict=True):
        write_file(path, picture_bytes(figure, file_format))
    return paths


def epoch_axis(axes: Any) -> None:
    """Ticks at whole epochs, and room around a single one; after everything was plotted."""
    from matplotlib.ticker import MaxNLocator

    low, high = axes.dataLim.intervalx
    if low == high:
        axes.set_xlim(low - 1, high + 1)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def head_color(number: int) -> Any:
    """The colour of the head with this number, the same in every picture.

    Ten strong colours, then the same ten light; from the 21st head they come again.

    Args:
        number: Counted from 1.

    >>> len({head_color(number) for number in range(1, 41)})
    20
    """
    import matplotlib

    light, place = divmod((number - 1) % 20, 10)
    return matplotlib.colormaps["tab20"](2 * place + light)
