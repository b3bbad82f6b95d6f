"""Dropout and stochastic depth from a key that is passed in: modules hold no random state.

The exact rate, a multiple of 2⁻³², and the draws are those of the dropout of attention weights.

Source: Srivastava et al. 2014; for stochastic depth Huang et al. 2016, eq. 5, and DeiT (Touvron et
    al. 2021), whose rate rises linearly over the layers.
"""

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from convattn.fast.dropout import draw_kept, kept_scale
from convattn.nnx.layers.compute import wide_dtype


def split_keys(key: Array | None, count: int, training: bool = True) -> list[Array | None]:
    """A key of its own for each part of a model; None for each outside training or without a key.

    >>> split_keys(jax.random.key(0), 2, training=False)
    [None, None]
    """
    if key is None or not training:
        return [None] * count
    return [jax.random.fold_in(key, index) for index in range(count)]


def dropout(
    values: Float[Array, "*shape"], rate: float, key: Array | None
) -> Float[Array, "*shape"]:
    """Each number is zero with probability `rate`, else over 1 - rate; all stay without a key.

    Numbers are scaled in at least float32, and rounded once.

    Args:
        rate: In [0, 1).
        key: a JAX random key, or None outside training.

    >>> dropout(jnp.ones(4), 0.5, None).tolist()
    [1.0, 1.0, 1.0, 1.0]
    >>> sorted(set(dropout(jnp.ones(99), 0.5, jax.random.key(0)).tolist()))
    [0.0, 2.0]
    """
    if key is None or rate == 0:
        return values
    scaled = (values.astype(wide_dtype(values.dtype)) * kept_scale(rate)).astype(values.dtype)
    return jnp.where(draw_kept(key, rate, values.shape), scaled, jnp.zeros((), values.dtype))


def drop_path(
    values: Float[Array, " batch *shape"], rate: float, key: Array | None
) -> Float[Array, " batch *shape"]:
    """Each image's numbers are all zero with probability `rate`, else all over 1 - rate.

    Args:
        rate, key: As for `dropout`.

    >>> rows = drop_path(jnp.ones((99, 2)), 0.5, jax.random.key(0))
    >>> sorted(set(map(tuple, rows.tolist())))
    [(0.0, 0.0), (2.0, 2.0)]
    """
    if key is None or rate == 0:
        return values
    is_kept = draw_kept(key, rate, (values.shape[0],) + (1,) * (values.ndim - 1))
    return jnp.where(is_kept, values * jnp.asarray(kept_scale(rate), values.dtype), 0)


def depth_rates(most: float, depth: int) -> tuple[float, ...]:
    """The rate of each layer: most·l/(depth - 1), 0 in the first and `most` in the last.

    >>> depth_rates(0.5, 3), depth_rates(0.5, 1)
    ((0.0, 0.25, 0.5), (0.0,))
    """
    return tuple(most * layer / max(depth - 1, 1) for layer in range(depth))
