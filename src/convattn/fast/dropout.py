"""Attention dropout whose zeros depend on key, query and key token alone, not on the back end."""

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int

from convattn.fast.options import Dropout


def keep_scale(
    dropout: Dropout, batch: int, heads: int, queries: Int[Array, "*#pairs"], keys: Array
) -> Float[Array, "batch heads *pairs"]:
    """What each weight is multiplied with: 0 with probability `rate`, else 1/(1 - rate).

    The number for (image, head, query, key) is drawn from a random key folded with the query and
    with the key, so that a back end that looks at some pairs only draws the same for them.

    **Arguments:**

    - `queries`, `keys`: flat positions of queries among the queries and of keys among the keys
      (ring included), of shapes that broadcast.

    >>> dropout = Dropout(0.5, jax.random.key(0))
    >>> all_pairs = keep_scale(dropout, 1, 2, jnp.arange(3)[:, None], jnp.arange(4))
    >>> one_row = keep_scale(dropout, 1, 2, jnp.array([[1]]), jnp.arange(4))
    >>> all_pairs.shape, bool((all_pairs[:, :, 1:2] == one_row).all())
    ((1, 2, 3, 4), True)
    """
    queries, keys = jnp.broadcast_arrays(queries, keys)

    def draw(query: Array, key: Array) -> Array:
        pair = jax.random.fold_in(jax.random.fold_in(dropout.key, query), key)
        return jax.random.bernoulli(pair, 1 - dropout.rate, (batch, heads))

    kept = jax.vmap(draw)(queries.reshape(-1), keys.reshape(-1))
    kept = jnp.moveaxis(kept, 0, -1).reshape(batch, heads, *queries.shape)
    return kept.astype(jnp.float32) / (1 - dropout.rate)
