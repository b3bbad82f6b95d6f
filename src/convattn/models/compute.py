"""In which dtype, and at which precision, a model computes; its parameters are float32."""

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.typing import DTypeLike


def compute_dtype(dtype: DTypeLike) -> np.dtype:
    """The dtype, if a model can compute in it.

    **Raises:** `ValueError` for other than bfloat16, float16, float32 and float64.

    >>> compute_dtype("float32")
    dtype('float32')
    """
    found = jnp.dtype(dtype)
    if found not in [jnp.dtype(name) for name in ("bfloat16", "float16", "float32", "float64")]:
        raise ValueError(
            f"dtype={dtype!r}, but expected bfloat16, float16, float32 or float64; images are "
            "given as floats, normalised"
        )
    return found


def wide_dtype(dtype: DTypeLike) -> np.dtype:
    """That of norms, softmax, means and logits: at least float32.

    >>> wide_dtype("bfloat16"), wide_dtype("float64")
    (dtype('float32'), dtype('float64'))
    """
    return jnp.promote_types(dtype, jnp.float32)


def product_precision(dtype: DTypeLike) -> lax.Precision:
    """Of matrix products: the highest, so that float32 never becomes TF32; halves as they are.

    >>> product_precision("float32").name, product_precision("bfloat16").name
    ('HIGHEST', 'DEFAULT')
    """
    whole = jnp.dtype(dtype).itemsize >= 4
    return lax.Precision.HIGHEST if whole else lax.Precision.DEFAULT
