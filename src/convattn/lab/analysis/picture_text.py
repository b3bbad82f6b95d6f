"""The text of a picture, broken into lines that fit its width."""


def wrapped(text: str, inches: float, points: float) -> str:
    """A text broken into lines that are no wider than this, between words where that is possible.

    Args:
        points: Size of the font.

    >>> wrapped("some words", 0.5, 10).splitlines(), wrapped("kernel", 0.3, 10).splitlines()
    (['some', 'words'], ['ker', 'nel'])
    """
    lines = []
    for whole in text.split("\n"):
        line = ""
        for word in whole.split():
            longer = f"{line} {word}".strip()
            if text_width(longer, points) > inches and line:
                lines.append(line)
                longer = word
            while text_width(longer, points) > inches and len(longer) > 1:
                end = len(longer) - 1
                while end > 1 and text_width(longer[:end], points) > inches:
                    end -= 1
                lines.append(longer[:end])
                longer = longer[end:]
            line = longer
        lines.append(line)
    return "\n".join(lines)


def text_width(text: str, points: float) -> float:
    """How many inches wide a line is."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    size = FontProperties(size=points)
    return float(text_to_path.get_text_width_height_descent(text, size, False)[0]) / 72


def text_height(text: str, points: float) -> float:
    """How many inches high a text is with the space around it; nothing has none."""
    return (1.25 * points * len(text.split("\n")) + 8) / 72 if text else 0.0
