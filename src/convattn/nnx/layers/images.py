"""Which images a model takes, and how many tokens they make.

Tokens are s × s squares of pixels side by side, row-major and channels last: `patchify`. Nothing is
lost (the invertible down-sampling of Jacobsen, Smeulders and Oyallon 2018, i-RevNet, §3.1; C20 §4.1
takes s = 2).
"""

from typing import Any

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from convattn.operators.arrays import as_array
from convattn.operators.integers import as_integer


def read_images(images: Any, channels: int) -> Float[Array, "batch height width channels"]:
    """The images as an array, if a model of so many channels takes them.

    Raises:
        ValueError: For another number of axes or channels, and for integers.

    >>> read_images(jnp.ones((8, 8, 3)), 3)
    Traceback (most recent call last):
    ValueError: images.shape=(8, 8, 3), but expected [batch, height, width, 3]; add the batch axis \
of a single image with images[None]
    """
    array = as_array(images, "images")
    if array.ndim != 4 or array.shape[-1] != channels:
        remedy = (
            "add the batch axis of a single image with images[None]"
            if array.ndim == 3
            else "channels come last, and the model is made for so many"
        )
        raise ValueError(
            f"images.shape={array.shape}, but expected [batch, height, width, {channels}]; {remedy}"
        )
    if not jnp.issubdtype(array.dtype, jnp.floating):
        raise ValueError(
            f"images.dtype={array.dtype}, but expected floats, normalised: subtract the mean of "
            "the training set and divide by its deviation, as the model was trained"
        )
    return array


def token_grid(
    image_size: tuple[int, int], factor: int, *, name: str = "downsampling"
) -> tuple[int, int]:
    """How many rows and columns of tokens, s × s pixels each, an image gives.

    Args:
        factor: s.
        name: What a message calls it.

    Raises:
        ValueError: For a size that is not a pair of integers ≥ 1, or that s does not divide.

    >>> token_grid((32, 48), 2)
    (16, 24)
    """
    if not isinstance(image_size, list | tuple) or len(image_size) != 2:
        raise ValueError(f"image_size={image_size!r}, but expected (height, width)")
    height, width = (as_integer(side, "a side of image_size", 1) for side in image_size)
    if height % factor or width % factor:
        raise ValueError(
            f"image_size={image_size} with {name}={factor}, but expected two sides that "
            f"{factor} divides; crop, pad or resize the images, or take another {name}"
        )
    return height // factor, width // factor
