"""Integers as arguments: one, or one for each axis, and how many numbers an array may hold.

Knows nothing of JAX or NumPy.
"""

import operator
from collections.abc import Sequence
from typing import Any

MAX_ENTRIES = 2**29  # of an array: 2 GiB in float32


def as_integer(value: Any, name: str, minimum: int = 1, most: int | None = None) -> int:
    """A Python integer from anything that is one, such as `numpy.int64`.

    >>> as_integer(3, "groups")
    3
    """
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or number < minimum:
        raise ValueError(f"{name}={value!r}, but expected an integer ≥ {minimum}")
    if most is not None and number > most:
        raise ValueError(f"{name}={value!r}, but expected at most {most}")
    return number


def per_axis(
    value: Any, axes: int, name: str, minimum: int = 1, most: int | None = None
) -> tuple[int, ...]:
    """One integer for each spatial axis, from one integer or from a sequence of them.

    >>> per_axis(2, 2, "stride"), per_axis((1, 3), 2, "stride")
    ((2, 2), (1, 3))
    """
    is_sequence = isinstance(value, Sequence) and not isinstance(value, str)
    values = tuple(value) if is_sequence else (value,) * axes
    if len(values) != axes:
        raise ValueError(
            f"{name}={value!r}, but expected an integer ≥ {minimum}, or {axes} of them, one for "
            "each axis"
        )
    return tuple(as_integer(entry, name, minimum, most) for entry in values)


def require_entries(entries: int, what: str, remedy: str) -> None:
    """Refuse an array too large to be made, before it is.

    >>> require_entries(9 * 64**4, "the maps", "take smaller patches")
    """
    if entries > MAX_ENTRIES:
        raise ValueError(
            f"{what} would hold {entries:,} numbers, but expected at most {MAX_ENTRIES:,}, 2 GiB "
            f"in float32; {remedy}"
        )
