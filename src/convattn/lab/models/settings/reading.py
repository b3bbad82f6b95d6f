"""Numbers of settings, read as Python's or refused."""

import numbers
from typing import Any

from convattn.operators.integers import as_integer


def read_count(value: object, name: str) -> int:
    """An integer ≥ 1, NumPy's included, as Python's.

    Raises:
        ValueError: For anything else.

    >>> read_count(3, "width")
    3
    """
    try:
        return as_integer(value, name, 1)
    except ValueError as error:
        raise ValueError(f"{name}={value!r}, but expected an integer ≥ 1") from error


def read_counts(values: Any, name: str, least: int, each: str) -> tuple[int, ...]:
    """One integer of at least so much for each of something.

    Raises:
        ValueError: For anything else.

    >>> read_counts([1, 2], "heads", 0, "layer")
    (1, 2)
    """
    try:
        counts = tuple(as_integer(value, name, least) for value in values)
    except (TypeError, ValueError):
        counts = ()
    if not counts:
        raise ValueError(f"{name}={values!r}, but expected one integer ≥ {least} for each {each}")
    return counts


def read_number(value: Any) -> float:
    """A number as Python's float, and NaN for what is none.

    >>> read_number(1), read_number("0.1"), read_number(True)
    (1.0, nan, nan)
    """
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    return float(value) if is_number else float("nan")


def hold(settings: object, values: dict[str, Any]) -> None:
    """Set fields of a frozen dataclass while it is made."""
    for name, value in values.items():
        object.__setattr__(settings, name, value)
