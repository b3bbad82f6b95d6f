"""Attention dropout whose zeros depend on key, query and key token alone, not on the back end."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import DTypeLike
from jaxtyping import Bool, Float, Int

from convattn.fast.options import Dropout

_DRAWS = 2**32


def keep_scale(
    dropout: Dropout,
    batch: int,
    heads: int,
    queries: Int[Array, "*#pairs"],
    keys: Array,
    dtype: DTypeLike = jnp.float32,
) -> Float[Array, "batch heads *pairs"]:
    """What each weight is multiplied with: 0 with the exact rate, else 1/(1 - that rate).

    The number for (image, head, query, key) is drawn from a random key folded with the query and
    with the key, so that a back end that looks at some pairs only draws the same for them.

    Args:
        queries, keys: Flat positions of queries among the queries and of keys among the keys (ring
            included), of shapes that broadcast.
        dtype: Of the result.

    >>> dropout = Dropout(0.5, jax.random.key(0))
    >>> all_pairs = keep_scale(dropout, 1, 2, jnp.arange(3)[:, None], jnp.arange(4))
    >>> one_row = keep_scale(dropout, 1, 2, jnp.array([[1]]), jnp.arange(4))
    >>> all_pairs.shape, bool((all_pairs[:, :, 1:2] == one_row).all())
    ((1, 2, 3, 4), True)
    """
    queries, keys = jnp.broadcast_arrays(queries, keys)

    def draw(query: Array, key: Array) -> Array:
        pair = jax.random.fold_in(jax.random.fold_in(dropout.key, query), key)
        return draw_kept(pair, dropout.rate, (batch, heads))

    is_kept = jax.vmap(draw)(queries.reshape(-1), keys.reshape(-1))
    is_kept = jnp.moveaxis(is_kept, 0, -1).reshape(batch, heads, *queries.shape)
    return is_kept.astype(dtype) * kept_scale(dropout.rate)


def draw_kept(key: Array, rate: float, shape: tuple[int, ...]) -> Bool[Array, "*shape"]:
    """False with the exact rate: where 32 random bits are an integer below `dropped_draws(rate)`.

    Integers are the same whether 64-bit types are on or off, and so are the draws.

    >>> draws = draw_kept(jax.random.key(0), 0.25, (1000,))
    >>> 700 < int(draws.sum()) < 800
    True
    """
    return jax.random.bits(key, shape, jnp.uint32) >= np.uint32(dropped_draws(rate))


def dropped_draws(rate: float) -> int:
    """How many of the 2³² draws are dropped: rate·2³² to the nearest, but never all of them.

    The exact rate is this over 2³², within 2⁻³³ of the one asked for (2⁻³² next to 1).

    >>> dropped_draws(0.5), dropped_draws(0.1), dropped_draws(1 - 2.0**-40) == 2**32 - 1
    (2147483648, 429496730, True)
    """
    return min(round(rate * _DRAWS), _DRAWS - 1)


def kept_scale(rate: float) -> float:
    """1/(1 - exact rate), which makes the mean over all draws that of no dropout.

    >>> kept_scale(0.5), kept_scale(0.75)
    (2.0, 4.0)
    """
    return _DRAWS / (_DRAWS - dropped_draws(rate))
