"""The one comparison of the tests: equal to the last bit, or within a bound that is passed in.

There is no tolerance here. Whoever calls `assert_within` derives the bound and says from what.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np


def gamma(operations: int, dtype: Any) -> float:
    """γ_n = n·u/(1 - n·u): what n roundings of relative size u can do together (Higham, ch. 3)."""
    accumulated = operations * float(jnp.finfo(dtype).eps) / 2
    if accumulated >= 1:
        raise ValueError(f"{operations} roundings in {dtype} bound nothing; use a wider type")
    return accumulated / (1 - accumulated)


def assert_equal(actual: Any, expected: Any, name: str = "out") -> None:
    """The same shape and the same numbers, whatever types hold them; NaN equals nothing."""
    actual_array, expected_array = exact(actual, name), exact(expected, "expected")
    _assert_same_shape(actual_array, expected_array, name)
    wrong = actual_array != expected_array
    if wrong.any():
        where = _first(wrong)
        raise AssertionError(
            f"{name}[{_index(where)}]={actual_array[where]}, but expected {expected_array[where]} "
            f"({int(wrong.sum())} of {wrong.size} entries differ)"
        )


def assert_within(actual: Any, expected: Any, bound: Any, name: str = "out") -> None:
    """The same shape, and |actual - expected| ≤ bound entry by entry.

    Args:
        bound: One number, or an array that broadcasts to the shape; finite and ≥ 0.

    The distance is taken in float64, so a bound should not rely on more than its 53 bits.
    """
    actual_array, expected_array = exact(actual, name), exact(expected, "expected")
    _assert_same_shape(actual_array, expected_array, name)
    limit = np.asarray(bound, np.float64)
    if not (np.isfinite(limit).all() and (limit >= 0).all()):
        raise ValueError(f"bound={bound}, but expected finite and ≥ 0: nothing fails another")
    limit = np.broadcast_to(limit, expected_array.shape)
    distance = np.abs(actual_array.astype(np.float64) - expected_array.astype(np.float64))
    wrong = ~(distance <= limit)
    if wrong.any():
        where = _first(wrong)
        raise AssertionError(
            f"{name}[{_index(where)}]={actual_array[where]}, but expected within {limit[where]} of "
            f"{expected_array[where]}; the distance is {distance[where]} "
            f"({int(wrong.sum())} of {wrong.size} entries are too far)"
        )


def assert_dtype(actual: Any, expected: Any, name: str = "out") -> None:
    """The same dtype, weak or not."""
    if np.dtype(actual.dtype) != np.dtype(expected):
        raise AssertionError(f"{name}.dtype={actual.dtype}, but expected {np.dtype(expected)}")


def exact(array: Any, name: str) -> np.ndarray:
    """The numbers as int64 or float64, none of them rounded on the way.

    Raises:
        TypeError: For what is not real numbers, `ValueError` for integers that float64 cannot hold
            next to floats (they stay int64, and NumPy compares those exactly).
    """
    values = np.asarray(array)
    if values.dtype.kind == "b" or values.dtype.kind in "iu":
        return values.astype(np.int64)
    if values.dtype.kind in "fV":  # V: the half types that NumPy does not know itself
        wide = values.astype(np.float64)
        if values.dtype.itemsize > 8:
            raise TypeError(f"{name}.dtype={values.dtype}, but expected to have at most 64 bits")
        return wide
    raise TypeError(f"{name}.dtype={values.dtype}, but expected real numbers")


def _assert_same_shape(actual: np.ndarray, expected: np.ndarray, name: str) -> None:
    if actual.shape != expected.shape:
        raise AssertionError(f"{name}.shape={actual.shape}, but expected {expected.shape}")


def _first(wrong: np.ndarray) -> tuple[int, ...]:
    return tuple(int(index) for index in np.argwhere(wrong)[0])


def _index(where: tuple[int, ...]) -> str:
    return ", ".join(str(index) for index in where) or "()"
