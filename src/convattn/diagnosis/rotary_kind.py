"""How networks of known libraries turn their queries and keys, which stands in no tensor."""

import json
import math
from typing import Any

KEYS = {"base", "layout", "columns_first", "spacing", "origin"}


class RotaryKind:
    """A library's kind, with other values for some of its parameters.

    Args:
        words: `timm` or `dinov3`, and then KEY=VALUE of `convattn.initialization.Rotary.axial`, a
            space between two; VALUE is JSON, or a word.

    Raises:
        ValueError: For another kind, another key, and what is no value of a key.

    >>> RotaryKind("timm base=100")(4, (2, 3)).turns.shape
    (2, 2)
    """

    def __init__(self, words: str) -> None:
        self.kind, *others = words.split() or [""]
        self.values = dict(map(_read_value, others))
        if self.kind not in ("timm", "dinov3") or not self.values.keys() <= KEYS:
            raise ValueError(
                f"rotary={words!r}, but expected timm, dinov3 or none, and then KEY=VALUE with "
                f"{', '.join(sorted(KEYS))} (--rotary)"
            )

    def __call__(self, width: int, grid: tuple[int, int]) -> Any:
        """The turns of heads of that width on that grid.

        Raises:
            ValueError: As `convattn.initialization.Rotary.axial`.
        """
        from convattn.initialization import Rotary

        values: dict[str, Any] = {"columns_first": True}
        if self.kind == "dinov3":
            values = {
                "layout": "halves",
                "spacing": tuple(4 * math.pi / side for side in grid),
                "origin": tuple((1 - side) / 2 for side in grid),
            }
        values |= self.values
        for name in ("spacing", "origin"):
            if isinstance(values.get(name), float):
                values[name] = (values[name], values[name])
        return Rotary.axial(width, **values)


def _read_value(word: str) -> tuple[str, Any]:
    """A key and its value: a word, true or false, a number, or a pair of numbers."""
    key, _, text = word.partition("=")
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    is_flag = isinstance(value, bool)
    try:
        if isinstance(value, list):
            value = tuple(map(float, value))
        elif isinstance(value, int) and not is_flag:
            value = float(value)
    except (OverflowError, TypeError, ValueError):
        value = None
    if value is None or is_flag != (key == "columns_first"):
        expected = "true or false" if key == "columns_first" else "a number, [y, x] or a word"
        raise ValueError(f"rotary has {word!r}, but expected {key}={expected} (--rotary)")
    return key, value


def read_rotary(rotary: Any) -> Any:
    """None where nothing is turned; else a function from a head's width and the grid to the turns.

    Raises:
        ValueError: For what `diagnose` does not take.
    """
    if rotary is None or rotary == "none":
        return None
    if isinstance(rotary, str):
        return RotaryKind(rotary)
    if callable(rotary):
        return rotary
    from convattn.initialization import Rotary

    if isinstance(rotary, Rotary):
        return lambda width, grid: rotary
    raise ValueError(
        f"rotary={rotary!r}, but expected timm, dinov3 or none, a convattn.initialization.Rotary, "
        "or a function from the width of a head and the grid to one"
    )
