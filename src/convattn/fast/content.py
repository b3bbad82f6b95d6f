"""The two factors of the content scores, projected once for all blocks of queries."""

import math

import numpy as np
from jax import Array
from jaxtyping import Num

from convattn.encodings.layer import ContentScores
from convattn.fast.products import product
from convattn.operators.patches import add_zero_ring
from convattn.operators.shifts import TokenGrid


def content_factors(
    content: ContentScores,
    grid: TokenGrid,
    tokens: Num[Array, "batch *grid features"],
    dtype: np.dtype,
) -> tuple[Num[Array, "batch heads queries width"], Num[Array, "batch heads keys width"]]:
    """X_q Q_h + a_h of every query and X_k K_h + c_h of every key: scores without their scale.

    A token of the ring is zero, so that its factor is the bias c_h alone.

    Args:
        tokens: The image's own, without the ring.
        dtype: In which they are computed, at the highest precision as all scores are.

    Source: C20 eq. 2; L21 eq. 4.

    >>> import jax.numpy as jnp
    >>> content = ContentScores(jnp.ones((1, 2, 3)), jnp.ones((1, 2, 3)), None, jnp.ones((1, 3)))
    >>> grid = TokenGrid((2,), ((1, 0),))
    >>> left, right = content_factors(content, grid, jnp.ones((1, 2, 2)), np.dtype("float32"))
    >>> left[0, 0, :, 0].tolist(), right[0, 0, :, 0].tolist()
    ([2.0, 2.0], [1.0, 3.0, 3.0])
    """

    def project(weight: Array, bias: Array | None, ring: tuple[tuple[int, int], ...]) -> Array:
        projected = product("b...d,hde->bh...e", tokens, weight, dtype=dtype)
        projected = add_zero_ring(projected, ((0, 0), *ring))
        projected = projected.reshape(*projected.shape[:2], -1, weight.shape[-1])
        return projected if bias is None else projected + bias.astype(dtype)[None, :, None, :]

    bare = ((0, 0),) * len(grid.ring)
    left = project(content.query, content.query_bias, bare)
    return left, project(content.key, content.key_bias, grid.ring)


def content_scale(content: ContentScores) -> float:
    """What the product of the factors is divided by: √key_features or one.

    >>> import jax.numpy as jnp
    >>> content_scale(ContentScores(jnp.ones((1, 2, 4)), jnp.ones((1, 2, 4))))
    2.0
    """
    return math.sqrt(content.query.shape[-1]) if content.scaled else 1.0
