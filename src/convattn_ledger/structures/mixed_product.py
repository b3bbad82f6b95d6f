"""The mixed product a∘b = Σ_k a_k ⊗ b_k of two families of tensors (A19 eq. 1).

Arrays of Python objects (`fractions.Fraction`, unbounded integers) stay in NumPy, exactly; all
others go through JAX.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from convattn.operators.arrays import accumulation_dtype, as_array
from convattn.operators.attention import HIGHEST

Tensor = Array | np.ndarray


def mixed_product(a: Any, b: Any) -> Tensor:
    """a∘b = Σ_k a_k ⊗ b_k.

    Args:
        a: `[K, *S]`.
        b: `[K, *T]`; S and T may be empty. If either is a NumPy array of objects, both are taken as
            such.

    Returns:
        `[*S, *T]`, of dtype `result_type(a, b)`, summed in at least float32.

    Source: A19 eq. 1.

    >>> mixed_product([[1, 0], [0, 1]], [[5, 6, 7], [8, 9, 10]]).tolist()
    [[5, 6, 7], [8, 9, 10]]
    """
    exact = any(isinstance(array, np.ndarray) and array.dtype == object for array in (a, b))
    left, right = (
        np.asarray(array, object) if exact else as_array(array, name)
        for array, name in ((a, "a"), (b, "b"))
    )
    if not left.shape or left.shape[:1] != right.shape[:1]:
        raise ValueError(
            f"a.shape={left.shape} and b.shape={right.shape}, but both should begin with K, the "
            "number of terms"
        )
    if exact:
        return np.tensordot(left, right, axes=(0, 0))
    result = jnp.result_type(left, right)
    dtype = accumulation_dtype(result)
    product = jnp.tensordot(left.astype(dtype), right.astype(dtype), (0, 0), precision=HIGHEST)
    return product.astype(result)
