"""Summing what stands twice at one place of a sparse matrix, without wrapping around.

Summed in their own dtype, two entries of 200 and 100 in uint8 are 44. Here integers are summed in
64 bits, or where even those could overflow as Python's, and floats in float64; the cast back to the
narrower dtype is refused where it would change an integer or make a finite float infinite.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Int, Num, Shaped

EXACT_IN_64_BITS = 2.0**63 * (1 - 2.0**-30)
"""Sums of absolute values below this, taken in float64, fit in int64: n < 2²² roundings apart."""


def sum_duplicates(
    values: Num[np.ndarray, "entries"], places: Int[np.ndarray, "entries"], name: str
) -> tuple[Num[np.ndarray, "distinct"], Int[np.ndarray, "distinct"]]:
    """The sum of the values at each place, and the distinct places in ascending order.

    Returns:
        Sums of the dtype of `values`.

    Raises:
        ValueError: For a sum that this dtype cannot hold.

    >>> values, places = sum_duplicates(np.array([1, 2, 4]), np.array([7, 3, 7]), "values")
    >>> values.tolist(), places.tolist()
    ([2, 5], [3, 7])
    """
    found, where = np.unique(places, return_inverse=True)
    if len(found) == len(values):
        return values[np.argsort(where)], found
    if values.dtype.kind in "iu":
        magnitude = np.bincount(where, np.abs(values.astype(np.float64)))
        wide = np.zeros(len(found), np.int64 if magnitude.max() < EXACT_IN_64_BITS else object)
    else:
        wide = np.zeros(len(found), np.complex128 if values.dtype.kind == "c" else np.float64)
    np.add.at(wide, where, values.astype(wide.dtype))
    return narrowed(wide, values.dtype, f"the entries of {name} at one place add up to"), found


def narrowed(wide: Shaped[np.ndarray, "*shape"], dtype: np.dtype, what: str) -> np.ndarray:
    """The values in a narrower dtype, if it can hold them; floats may be rounded.

    Raises:
        ValueError: Beginning with `what`, for an integer beyond the dtype and for a finite float
            that would become infinite.

    >>> narrowed(np.array([300]), np.dtype("uint8"), "the sum is")
    Traceback (most recent call last):
        ...
    ValueError: the sum is 300, but uint8 ends at 255; cast to a wider type first, or scale down
    """
    dtype = np.dtype(dtype)
    low: Any
    high: Any
    if jnp.issubdtype(dtype, jnp.integer):
        limits = jnp.iinfo(dtype)
        low, high = int(limits.min), int(limits.max)
        bad = (wide < low) | (wide > high)
        result = wide if bad.any() else wide.astype(dtype)
    else:
        low, high = (float(part) for part in (jnp.finfo(dtype).min, jnp.finfo(dtype).max))
        with np.errstate(over="ignore"):
            result = wide.astype(dtype)
        bad = np.isfinite(wide) & ~np.isfinite(result)
    if bad.any():
        first = wide[bad].reshape(-1)[0]
        end = f"starts at {low}" if np.real(first) < low else f"ends at {high}"
        raise ValueError(
            f"{what} {first}, but {dtype} {end}; cast to a wider type first, or scale down"
        )
    return result
