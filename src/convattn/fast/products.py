"""Matrix products with sums in at least float32, at the precision that the caller asks for."""

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from convattn.operators.attention import HIGHEST


def product(
    formula: str, *operands: Array, dtype: np.dtype, precision: lax.PrecisionLike = HIGHEST
) -> Array:
    """An einsum whose result and sums are of `dtype`.

    At the highest precision the operands are cast to `dtype` first. At another, floats narrower
    than `dtype` stay narrow, and all others are rounded to the narrowest: that is what tensor
    cores multiply.

    Args:
        formula, operands: As in `jnp.einsum`.
        dtype: Of the sums, at least float32.

    >>> halves = jnp.ones((300,), jnp.bfloat16)
    >>> float(product("i,i->", halves, halves, dtype=np.dtype("float32"), precision="default"))
    300.0
    """
    if is_highest(precision):
        wide = (operand.astype(dtype) for operand in operands)
        return jnp.einsum(formula, *wide, precision=precision)
    floats = (operand.dtype for operand in operands if jnp.issubdtype(operand.dtype, jnp.inexact))
    narrow = min((*floats, dtype), key=lambda d: jnp.dtype(d).itemsize)
    cast = (operand.astype(narrow) for operand in operands)
    return jnp.einsum(formula, *cast, precision=precision, preferred_element_type=dtype)


def is_highest(precision: lax.PrecisionLike) -> bool:
    """Whether a precision, or a pair of them, asks for full float32 products.

    >>> is_highest("highest"), is_highest(lax.Precision.HIGHEST), is_highest("default")
    (True, True, False)
    """
    return precision in ("highest", "float32", HIGHEST, (HIGHEST, HIGHEST))
