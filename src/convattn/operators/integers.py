"""What counts as an integer; knows nothing of JAX."""

import operator
from typing import Any

import numpy as np


def as_integer(value: Any, name: str, minimum: int) -> int:
    """A Python integer from anything that is one, such as `numpy.int64`.

    Raises:
        ValueError: For what is no integer, for True and False, and below `minimum`.

    >>> as_integer(np.int64(3), "groups", 1)
    3
    """
    try:
        number = None if isinstance(value, bool | np.bool_) else operator.index(value)
    except TypeError:
        number = None
    if number is None or number < minimum:
        raise ValueError(f"{name}={value!r}, but should be an integer ≥ {minimum}")
    return number
