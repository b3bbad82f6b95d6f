"""Images of another size, on the device."""

import jax
from jaxtyping import Array, Float


def resize(
    images: Float[Array, "batch height width channels"], side: int
) -> Float[Array, "batch side side channels"]:
    """Squares of this side, by Keys' bicubic interpolation with a = -1/2.

    At the border the weights of the pixels there are are divided by their sum; when an image gets
    smaller the kernel grows wider, against aliasing. It is linear, and its weights sum to 1, so
    that it makes no difference whether it stands before or after normalising, but for rounding and
    for the clipping of bytes.

    Source: Pillow, `Image.resize` with `BICUBIC`, for floating-point pixels.

    >>> import jax.numpy as jnp
    >>> resize(jnp.ones((1, 2, 2, 1), jnp.float32), 4).shape
    (1, 4, 4, 1)
    """
    batch, height, width, channels = images.shape
    if (height, width) == (side, side):
        return images
    return jax.image.resize(images, (batch, side, side, channels), "cubic")
