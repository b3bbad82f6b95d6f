"""The least number of a format from which something holds, found by bisection over bit patterns.

For positive numbers of an IEEE format the order of the values is the order of the bit patterns, so
halving an interval of patterns ends at two neighbouring numbers of the format: the answer is exact,
not a point of some grid.
"""

from collections.abc import Callable

import numpy as np

from convattn.ledger.audit.float_format import FloatFormat


def least_representable(
    predicate: Callable[[np.ndarray], bool], low: float, high: float, number_format: FloatFormat
) -> float | None:
    """The least x of the format in (low, high] with predicate(x), None if predicate(high) fails.

    It assumes that the predicate is false, then true. Where it isn't so, the answer is still an x
    at which it turns from false to true. If predicate(low) already holds, low is returned.

    Args:
        predicate: Gets a zero-dimensional array of the format.
        low, high: 0 < low < high, both numbers of the format.

    Raises:
        ValueError: Unless 0 < low < high in the format.

    >>> from convattn.ledger.audit.float_format import float_format
    >>> least_representable(lambda x: x * x >= 2, 1.0, 2.0, float_format("bfloat16"))
    1.4140625
    """
    dtype = number_format.dtype
    unsigned = np.dtype(f"u{dtype.itemsize}")
    ends = np.array([low, high], np.float64).astype(dtype)
    if not 0 < float(ends[0]) < float(ends[1]) < float("inf"):
        raise ValueError(
            f"low={low} and high={high} are {ends.tolist()} in {number_format.name}, but should "
            "be finite with 0 < low < high there"
        )

    def number(pattern: int) -> np.ndarray:
        return np.array(pattern, unsigned).view(dtype)

    below, above = (int(pattern) for pattern in ends.view(unsigned))
    if predicate(number(below)):
        return float(number(below))
    if not predicate(number(above)):
        return None
    while above - below > 1:
        middle = (below + above) // 2
        if predicate(number(middle)):
            above = middle
        else:
            below = middle
    return float(number(above))
