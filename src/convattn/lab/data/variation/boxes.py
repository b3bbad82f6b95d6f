"""A box within an image."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int32


def inside_box(
    first: Int32[Array, "2"], end: Int32[Array, "2"], height: int, width: int
) -> Bool[Array, "height width"]:
    """Which pixels are in it.

    Args:
        first: Row and column of its first pixel.
        end: Of the first pixel beyond it.

    >>> inside_box(jnp.array([0, 1], jnp.int32), jnp.array([1, 3], jnp.int32), 2, 3).tolist()
    [[False, True, True], [False, False, False]]
    """
    rows = jnp.arange(height, dtype=jnp.int32)[:, None]
    columns = jnp.arange(width, dtype=jnp.int32)
    down = (rows >= first[0]) & (rows < end[0])
    return down & (columns >= first[1]) & (columns < end[1])
