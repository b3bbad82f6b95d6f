"""Which images a model takes."""

from typing import Any

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from convattn.operators.arrays import as_array


def read_images(images: Any, channels: int) -> Float[Array, "batch height width channels"]:
    """The images as an array, if a model of so many channels takes them.

    Raises:
        ValueError: For another number of axes or channels, and for integers.

    >>> read_images(jnp.ones((8, 8, 3)), 3)
    Traceback (most recent call last):
    ValueError: images.shape=(8, 8, 3), but expected [batch, height, width, 3]; add the batch axis \
of a single image with images[None]
    """
    found = as_array(images, "images")
    if found.ndim != 4 or found.shape[-1] != channels:
        remedy = (
            "add the batch axis of a single image with images[None]"
            if found.ndim == 3
            else "channels come last, and the model is made for so many"
        )
        raise ValueError(
            f"images.shape={found.shape}, but expected [batch, height, width, {channels}]; {remedy}"
        )
    if not jnp.issubdtype(found.dtype, jnp.floating):
        raise ValueError(
            f"images.dtype={found.dtype}, but expected floats, normalised: subtract the mean of "
            "the training set and divide by its deviation, as the model was trained"
        )
    return found
