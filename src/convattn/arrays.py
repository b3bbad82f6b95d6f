"""What counts as an input array, and in which precision sums are taken."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import DTypeLike


def as_array(value: Any, name: str) -> Array:
    """`jnp.asarray`, except that it refuses where JAX would silently drop bits.

    A 64-bit NumPy array given while 64-bit types are off would be truncated to 32 bits. 64-bit
    floats and complex numbers are refused; 64-bit integers pass if every one of them fits.

    **Arguments:**

    - `value`: anything that `jnp.asarray` takes.
    - `name`: what the message calls it.

    **Raises:** `ValueError` for a 64-bit array that would lose bits, and for what is not
    numeric.

    >>> as_array([1, 2, 3], "images").shape
    (3,)
    """
    if isinstance(value, Array):
        array = value
    else:
        if not jax.config.jax_enable_x64:  # type: ignore[attr-defined]
            for part in jax.tree.leaves(value):
                if isinstance(part, np.ndarray | np.generic) or hasattr(part, "__array__"):
                    _refuse_truncation(np.asarray(part), name)
        try:
            array = jnp.asarray(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(
                f"{name} is {type(value).__name__}, which is not an array of numbers: {error}; "
                "pass a JAX or NumPy array, or nested lists of numbers of one depth"
            ) from error
    if not jnp.issubdtype(array.dtype, jnp.number) and array.dtype != jnp.bool_:
        raise ValueError(
            f"{name}.dtype={array.dtype}, but should be numeric; pass an array of numbers"
        )
    if array.dtype == jnp.bool_:
        raise ValueError(f"{name}.dtype=bool, but should be numeric; cast it, e.g. to float32")
    return array


def _refuse_truncation(array: np.ndarray, name: str) -> None:
    if array.dtype in (np.float64, np.complex128):
        raise ValueError(
            f"{name}.dtype={array.dtype}, but 64-bit types are off in JAX, which would truncate "
            f"it; enable them with jax.config.update('jax_enable_x64', True) or cast {name} to "
            "float32 yourself"
        )
    if array.dtype in (np.int64, np.uint64) and array.size:
        limits = np.iinfo(np.int32)
        if array.min() < limits.min or array.max() > limits.max:
            raise ValueError(
                f"{name}.dtype={array.dtype} holds values beyond 32 bits, but 64-bit types are off "
                "in JAX; enable them with jax.config.update('jax_enable_x64', True)"
            )


def accumulation_dtype(*operands: DTypeLike | Array) -> np.dtype:
    """The dtype in which products of these operands are summed: at least float32 for floats.

    >>> accumulation_dtype(jnp.bfloat16)
    dtype('float32')
    >>> accumulation_dtype(jnp.int32)
    dtype('int32')
    """
    result = jnp.result_type(*operands)
    return jnp.promote_types(result, jnp.float32) if jnp.issubdtype(result, jnp.inexact) else result


def require_finite(array: Array, name: str) -> None:
    """Refuse NaN and infinities in a concrete array; a traced one cannot be looked at.

    **Raises:** `ValueError` with the number of offending entries and the first one's index.
    """
    if isinstance(array, jax.core.Tracer) or not jnp.issubdtype(array.dtype, jnp.inexact):
        return
    bad = ~np.isfinite(np.asarray(array.astype(accumulation_dtype(array))))
    if bad.any():
        first = tuple(int(index) for index in np.argwhere(bad)[0])
        raise ValueError(
            f"{name} has {int(bad.sum())} non-finite entries, the first at index {first}, but "
            "every weight must be finite; look for a diverged training run or an overflow on cast"
        )
