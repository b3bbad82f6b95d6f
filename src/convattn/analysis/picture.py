"""Pictures as PNG and SVG files, the same bytes for the same numbers.

Figures are made with matplotlib's objects, without the state of pyplot and without a screen. Text
stays text in the SVG, and what a reader may look for has an `id` there.
"""

import io
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from convattn.atomic_file import write_file

FORMATS = ("png", "svg")
STABLE: Any = {"svg.hashsalt": "convattn", "svg.fonttype": "none"}
DOTS_PER_INCH = 150


def require_matplotlib() -> None:
    """Refuse to draw without matplotlib.

    **Raises:** `ValueError` with how it is installed.
    """
    if find_spec("matplotlib") is None:
        raise ValueError(
            "pictures need matplotlib, which is not installed; install the extra `plot`: pip "
            "install 'convattn[plot]', or matplotlib itself"
        )


def new_figure(width: float, height: float) -> Any:
    """An empty `matplotlib.figure.Figure` of so many inches.

    **Raises:** `ValueError` without matplotlib.

    >>> new_figure(3, 2).get_size_inches().tolist()
    [3.0, 2.0]
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def picture_bytes(figure: Any, file_format: str) -> bytes:
    """A figure in a format.

    **Arguments:**

    - `file_format`: `"png"` or `"svg"`.

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

    **Arguments:**

    - `folder`: made if it is missing.
    """
    folder.mkdir(parents=True, exist_ok=True)
    figure.draw_without_rendering()  # arranges the panels,
    figure.set_layout_engine("none")  # once for all formats: it takes longer than drawing
    paths = [folder / f"{name}.{file_format}" for file_format in FORMATS]
    for path, file_format in zip(paths, FORMATS, strict=True):
        write_file(path, picture_bytes(figure, file_format))
    return paths


def head_color(head: int, heads: int) -> Any:
    """The colour of a head: one of ten, or of twenty where there are more.

    >>> head_color(0, 9) == head_color(10, 9), head_color(0, 16) == head_color(10, 16)
    (True, False)
    """
    import matplotlib

    colors = matplotlib.colormaps["tab10" if heads <= 10 else "tab20"]
    return colors(head % colors.N)
