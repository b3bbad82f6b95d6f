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
    got, wanted = exact(actual, name), exact(expected, "expected")
    _assert_same_shape(got, wanted, name)
    wrong = got != wanted
    if wrong.any():
        where = _first(wrong)
        raise AssertionError(
            f"{name}[{_index(where)}]={got[where]}, but expected {wanted[where]} "
            f"({int(wrong.sum())} of {wrong.size} entries differ)"
        )


def assert_within(actual: Any, expected: Any, bound: Any, name: str = "out") -> None:
    """The same shape, and |actual - expected| ≤ bound entry by entry.

    Args:
        bound: One number, or an array that broadcasts to the shape; finite and ≥ 0.

    The distance is taken in float64, so a bound should not rely on more than its 53 bits.
    """
    got, wanted = exact(actual, name), exact(expected, "expected")
    _assert_same_shape(got, wanted, name)
    limit = np.asarray(bound, np.float64)
    if not (np.isfinite(limit).all() and (limit >= 0).all()):
        raise ValueError(f"bound={bound}, but expected finite and ≥ 0: nothing fails another")
    limit = np.broadcast_to(limit, wanted.shape)
    distance = np.abs(got.astype(np.float64) - wanted.astype(np.float64))
    wrong = ~(distance <= limit)
    if wrong.any():
        where = _first(wrong)
        raise AssertionError(
            f"{name}[{_index(where)}]={got[where]}, but expected within {limit[where]} of "
            f"{wanted[where]}; the distance is {distance[where]} "
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
    given = np.asarray(array)
    if given.dtype.kind == "b" or given.dtype.kind in "iu":
        return given.astype(np.int64)
    if given.dtype.kind in "fV":  # V: the half types that NumPy does not know itself
        wide = given.astype(np.float64)
        if given.dtype.itemsize > 8:
            raise TypeError(f"{name}.dtype={given.dtype}, but expected to have at most 64 bits")
        return wide
    raise TypeError(f"{name}.dtype={given.dtype}, but expected real numbers")


def _assert_same_shape(got: np.ndarray, wanted: np.ndarray, name: str) -> None:
    if got.shape != wanted.shape:
        raise AssertionError(f"{name}.shape={got.shape}, but expected {wanted.shape}")


def _first(wrong: np.ndarray) -> tuple[int, ...]:
    return tuple(int(index) for index in np.argwhere(wrong)[0])


def _index(where: tuple[int, ...]) -> str:
    return ", ".join(str(index) for index in where) or "()"
