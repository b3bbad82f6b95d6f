"""A number from the features of two images (B19 §6.1).

The paper does not say how to get one; the cosine is this library's choice.
"""

from typing import Any

import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Float

from convattn.operators.arrays import accumulation_dtype, as_array
from convattn.sac.attend import floating_result


def cosine_similarity(first: Any, second: Any) -> Float[Array, " batch"]:
    """The cosine between the mean features of both images; 0 where one of them has none.

    Of any scale: the features are divided by their largest entry, and so are their sums, before
    anything is squared.

    Args:
        first, second: `[batch, *space, channels]`; the spaces may differ.

    Returns:
        In the dtype of the features, float32 for integers; computed in at least float32.

    Raises:
        ValueError: For batches or channels that differ.

    >>> cosine_similarity(jnp.ones((1, 2, 2)), -jnp.ones((1, 3, 2))).round(6).tolist()
    [-1.0]
    """
    first, second = as_array(first, "first"), as_array(second, "second")
    if (
        min(first.ndim, second.ndim) < 2
        or first.shape[:: first.ndim - 1] != (second.shape[:: second.ndim - 1])
    ):
        raise ValueError(
            f"first.shape={first.shape} and second.shape={second.shape}, but both should be "
            "[batch, *space, channels] with one batch and one number of channels"
        )
    result = floating_result(first, second)
    sums = []
    for features in (first, second):
        scaled = _at_most_one(features.astype(accumulation_dtype(result)))
        sums.append(_at_most_one(scaled.sum(axis=tuple(range(1, features.ndim - 1)))))
    product = (sums[0] * sums[1]).sum(axis=-1)
    squares = (sums[0] ** 2).sum(axis=-1) * (sums[1] ** 2).sum(axis=-1)
    present = squares > 0
    cosine = product / jnp.sqrt(jnp.where(present, squares, 1))
    return jnp.where(present, cosine, 0).astype(result)


def _at_most_one(features: Float[Array, " batch *rest"]) -> Float[Array, " batch *rest"]:
    """The features divided by the largest entry of each image; zeros stay.

    The cosine does not depend on that scale, so neither does its gradient.

    >>> _at_most_one(jnp.array([[3.0, -4.0], [0.0, 0.0]])).tolist()
    [[0.75, -1.0], [0.0, 0.0]]
    """
    axes = tuple(range(1, features.ndim))
    largest = jnp.abs(lax.stop_gradient(features)).max(axis=axes, keepdims=True, initial=0)
    return features / jnp.where(largest > 0, largest, 1)
