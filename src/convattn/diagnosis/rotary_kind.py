"""How networks of known libraries turn their queries and keys, which stands in no tensor."""

import json
import math
from typing import Any

KEYS = {"base", "layout", "columns_first", "spacing", "origin"}


class RotaryKind:
    """A library's kind, with other values for some of its parameters.

    Args:
        words: `timm` or `dinov3`, and then KEY=VALUE of `convattn.initialization.Rotary.axial`.

    Raises:
        ValueError: For another kind, or another key.

    >>> RotaryKind(("timm", "base=100"))(4, (2, 3)).turns.shape
    (2, 2)
    """

    def __init__(self, words: tuple[str, ...]) -> None:
        self.words, self.values = words, {}
        for word in words[1:]:
            key, _, text = word.partition("=")
            try:
                self.values[key] = json.loads(text)
            except ValueError:
                self.values[key] = text
        if words[:1] not in (("timm",), ("dinov3",)) or not self.values.keys() <= KEYS:
            raise ValueError(
                f"rotary got {' '.join(words)!r}, but expected timm, dinov3 or none, and then "
                f"KEY=VALUE with {', '.join(sorted(KEYS))}"
            )

    def __repr__(self) -> str:
        return " ".join(self.words)

    def __call__(self, width: int, grid: tuple[int, int]) -> Any:
        """The turns of heads of that width on that grid.

        Raises:
            ValueError: As `convattn.initialization.Rotary.axial`.
        """
        from convattn.initialization import Rotary

        values: dict[str, Any] = {"columns_first": True}
        if self.words[0] == "dinov3":
            values = {
                "layout": "halves",
                "spacing": tuple(4 * math.pi / side for side in grid),
                "origin": tuple((1 - side) / 2 for side in grid),
            }
        values |= {name: _as_float(value) for name, value in self.values.items()}
        for name in ("spacing", "origin"):
            if isinstance(values.get(name), float):
                values[name] = (values[name], values[name])
        return Rotary.axial(width, **values)


def _as_float(value: Any) -> Any:
    """JSON's integers and lists as numbers and pairs."""
    if isinstance(value, list):
        return tuple(_as_float(each) for each in value)
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def read_rotary(rotary: Any) -> Any:
    """None where nothing is turned; else a function from a head's width and the grid to the turns.

    Raises:
        ValueError: For what `diagnose` does not take.
    """
    words = tuple(rotary.split()) if isinstance(rotary, str) else rotary
    if words is None or words == ("none",):
        return None
    if isinstance(words, tuple) and all(isinstance(word, str) for word in words):
        return RotaryKind(words)
    if callable(words):
        return words
    from convattn.initialization import Rotary

    if isinstance(words, Rotary):
        return lambda width, grid: words
    raise ValueError(
        f"rotary={rotary!r}, but expected timm, dinov3 or none, a convattn.initialization.Rotary, "
        "or a function from the width of a head and the grid to one"
    )
