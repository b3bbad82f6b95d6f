"""How time grows with the number of pixels: exponents of the whole range, and what comes next."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.rows import Row

FROM_SIDE, TO_SIDE = 32, 224
STEEPEST = 2.0


class Growth(NamedTuple):
    """The exponent of an implementation's time over a range of sides."""

    case: str
    features: int
    contestant: str
    first_side: int
    last_side: int
    exponent: float


def exponent(pixels: Sequence[float], seconds: Sequence[float]) -> float:
    """The slope of log seconds over log pixels, by least squares."""
    return float(np.polyfit(np.log(pixels), np.log(seconds), 1)[0])


def growths(rows: Iterable[Row]) -> list[Growth]:
    """The exponents from 32² to 224², for whoever was timed at two sizes of them or more."""
    series: dict[tuple[str, int, str], list[Row]] = {}
    for row in rows:
        if row.skipped is None and FROM_SIDE <= row.side <= TO_SIDE:
            series.setdefault((row.case, row.features, row.contestant), []).append(row)
    fits = []
    for key, members in series.items():
        members = sorted(members, key=lambda row: row.side)
        sides = [row.side for row in members]
        if len(sides) > 1:
            slope = exponent(
                [row.pixels for row in members], [row.backward_seconds for row in members]
            )
            fits.append(Growth(*key, sides[0], sides[-1], slope))
    return fits


def predicted_seconds(history: Sequence[tuple[int, float]], pixels: int) -> float:
    """A turn at a size that was not timed yet: the last one's time, grown as between the last two.

    With one size known, time is taken to grow with the square of the pixels; with none it is 0, so
    that somebody's first size is always tried.
    """
    if not history:
        return 0.0
    last_pixels, last_seconds = history[-1]
    slope = STEEPEST
    if len(history) > 1:
        slope = exponent(*zip(*history[-2:], strict=True))
    return last_seconds * (pixels / last_pixels) ** min(max(slope, 0.0), STEEPEST)
