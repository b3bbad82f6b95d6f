"""In which dtype, and at which precision, a model computes; its parameters are float32.

Norms are taken in at least float32, so that the gradients of their scales and biases are sums in
float32 over all tokens or pixels.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import Array, lax
from jax.typing import DTypeLike
from jaxtyping import Float


def compute_dtype(dtype: DTypeLike) -> np.dtype:
    """The dtype, if a model can compute in it.

    Raises:
        ValueError: For other than bfloat16, float16, float32 and float64, and for float64 while
            64-bit types are off in JAX.

    >>> compute_dtype("float32")
    dtype('float32')
    """
    try:
        result = None if dtype is None else jnp.dtype(dtype)
    except TypeError:
        result = None
    known = [jnp.dtype(name) for name in ("bfloat16", "float16", "float32", "float64")]
    if result is None or result not in known:
        raise ValueError(
            f"dtype={dtype!r}, but expected bfloat16, float16, float32 or float64; images are "
            "given as floats, normalised"
        )
    if result == jnp.float64 and not jax.config.jax_enable_x64:  # type: ignore[attr-defined]
        raise ValueError(
            "dtype='float64', but 64-bit types are off in JAX, which would compute in float32; "
            "enable them with jax.config.update('jax_enable_x64', True), or take float32"
        )
    return result


def wide_dtype(dtype: DTypeLike) -> np.dtype:
    """That of norms, softmax, means and logits: at least float32.

    >>> wide_dtype("bfloat16"), wide_dtype("float64")
    (dtype('float32'), dtype('float64'))
    """
    concrete = jnp.dtype(dtype)
    return concrete if concrete.itemsize >= 4 else jnp.dtype(jnp.float32)


def with_bias(
    values: Float[Array, "*shape features"], bias: Float[Array, " features"]
) -> Float[Array, "*shape features"]:
    """values + bias, also where JAX refuses to promote ranks.

    >>> with_bias(jnp.ones((1, 2)), jnp.array([1.0, 2.0])).tolist()
    [[2.0, 3.0]]
    """
    return values + bias.reshape((1,) * (values.ndim - 1) + bias.shape)


def product_precision(dtype: DTypeLike) -> lax.Precision:
    """Of matrix products: the highest, so that float32 never becomes TF32; halves as they are.

    >>> product_precision("float32").name, product_precision("bfloat16").name
    ('HIGHEST', 'DEFAULT')
    """
    is_wide = jnp.dtype(dtype).itemsize >= 4
    return lax.Precision.HIGHEST if is_wide else lax.Precision.DEFAULT


def gelu(values: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """x·Φ(x) = x·(1 + erf(x/√2))/2, in at least float32, rounded once.

    By erf, as PyTorch has it: `jax.nn.gelu` takes erfc, relatively exact for very negative x, and
    a step of a transformer's backward pass takes up to twice as long on a CPU.

    >>> [round(float(value), 4) for value in gelu(jnp.array([-1.0, 0.0, 2.0]))]
    [-0.1587, 0.0, 1.9545]
    """
    wide = values.astype(wide_dtype(values.dtype))
    result = 0.5 * wide * (1 + lax.erf(wide * math.sqrt(0.5)))
    return result.astype(values.dtype)


def layer_norm(width: int, epsilon: float, *, rngs: nnx.Rngs, dtype: DTypeLike) -> nnx.LayerNorm:
    """A LayerNorm in at least float32."""
    return nnx.LayerNorm(
        width,
        epsilon=epsilon,
        dtype=wide_dtype(dtype),
        use_fast_variance=False,  # E x² - (E x)² would lose all of a small variance
        rngs=rngs,
    )


def batch_norm(channels: int, *, rngs: nnx.Rngs, dtype: DTypeLike) -> nnx.BatchNorm:
    """A BatchNorm in at least float32, whose running statistics keep 0.9 of what they were."""
    return nnx.BatchNorm(channels, momentum=0.9, epsilon=1e-5, dtype=wide_dtype(dtype), rngs=rngs)
