"""Dropout from a key that is passed in, so that modules hold no random state."""

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float


def drop(values: Float[Array, "*shape"], rate: float, key: Array | None) -> Float[Array, "*shape"]:
    """Each number is zero with probability `rate`, else over 1 - rate; all stay without a key.

    **Arguments:**

    - `rate`: in [0, 1).
    - `key`: a JAX random key, or None outside training.

    >>> drop(jnp.ones(4), 0.5, None).tolist()
    [1.0, 1.0, 1.0, 1.0]
    >>> sorted(set(drop(jnp.ones(99), 0.5, jax.random.key(0)).tolist()))
    [0.0, 2.0]
    """
    if key is None or rate == 0:
        return values
    kept = jax.random.bernoulli(key, 1 - rate, values.shape)
    return jnp.where(kept, values / (1 - rate), jnp.zeros((), values.dtype))
