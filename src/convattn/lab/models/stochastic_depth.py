"""Stochastic depth: in training an image skips a sublayer with some probability.

Source: Huang et al. 2016, eq. 5; DeiT (Touvron et al. 2021), whose rate rises linearly over the
    layers.
"""

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from convattn.fast.dropout import draw_kept, kept_scale


def depth_rates(most: float, depth: int) -> tuple[float, ...]:
    """The rate of each layer: most·l/(depth - 1), 0 in the first and `most` in the last.

    >>> depth_rates(0.5, 3), depth_rates(0.5, 1)
    ((0.0, 0.25, 0.5), (0.0,))
    """
    return tuple(most * layer / max(depth - 1, 1) for layer in range(depth))


def skip(
    values: Float[Array, "batch *shape"], rate: float, key: Array | None
) -> Float[Array, "batch *shape"]:
    """Each image's numbers are all zero with probability `rate`, else all over 1 - rate.

    Without a key they stay. The exact rate, a multiple of 2⁻³², and the draws are those of dropout.

    Args:
        rate: In [0, 1).
        key: a JAX random key, or None outside training.

    >>> import jax
    >>> sorted({tuple(row) for row in skip(jnp.ones((99, 2)), 0.5, jax.random.key(0)).tolist()})
    [(0.0, 0.0), (2.0, 2.0)]
    """
    if key is None or rate == 0:
        return values
    kept = draw_kept(key, rate, (values.shape[0],) + (1,) * (values.ndim - 1))
    return jnp.where(kept, values * jnp.asarray(kept_scale(rate), values.dtype), 0)
