"""Dropout from a key that is passed in, so that modules hold no random state."""

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from convattn.fast.dropout import draw_kept, kept_scale
from convattn.lab.models.compute import wide_dtype


def drop(values: Float[Array, "*shape"], rate: float, key: Array | None) -> Float[Array, "*shape"]:
    """Each number is zero with probability `rate`, else over 1 - rate; all stay without a key.

    The exact rate, a multiple of 2⁻³², and the draws are those of attention's dropout. Numbers are
    scaled in at least float32, and rounded once.

    Args:
        rate: In [0, 1).
        key: a JAX random key, or None outside training.

    >>> import jax
    >>> drop(jnp.ones(4), 0.5, None).tolist()
    [1.0, 1.0, 1.0, 1.0]
    >>> sorted(set(drop(jnp.ones(99), 0.5, jax.random.key(0)).tolist()))
    [0.0, 2.0]
    """
    if key is None or rate == 0:
        return values
    scaled = (values.astype(wide_dtype(values.dtype)) * kept_scale(rate)).astype(values.dtype)
    return jnp.where(draw_kept(key, rate, values.shape), scaled, jnp.zeros((), values.dtype))
