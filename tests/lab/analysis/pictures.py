"""Reading pictures back."""

from pathlib import Path
from xml.etree import ElementTree

import matplotlib.image


def svg_ids(path: Path, text: str) -> list[str]:
    """The ids in an SVG file that contain a word."""
    return [
        result
        for node in ElementTree.parse(path).iter()
        if text in (result := node.get("id") or "")
    ]


def svg_text(path: Path) -> str:
    """All text of an SVG file."""
    return " ".join("".join(ElementTree.parse(path).getroot().itertext()).split())


def png_pixels(path: Path):
    """The pixels of a PNG file."""
    return matplotlib.image.imread(path)
