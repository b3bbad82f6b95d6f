"""Operations that draw an image towards a duller one, or away from it: d + a (x - d)."""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Int32

FACTOR_BITS = 12
"""A factor a is an integer number of 2⁻¹²: then float32, in which Pillow computes, is exact."""


def blend(
    duller: Int32[Array, "height width channels"],
    image: Int32[Array, "height width channels"],
    factor: Int32[Array, ""],
) -> Int32[Array, "height width channels"]:
    """⌊d + a (x - d)⌋, clipped to 0 … 255.

    Args:
        factor: A in units of 2⁻¹², 0 … 2¹³; with 2¹² it is the image itself.

    Source: Pillow, `Image.blend`, which cuts off and does not round.

    >>> black, grey = jnp.zeros((1, 1, 3), jnp.int32), jnp.full((1, 1, 3), 151, jnp.int32)
    >>> blend(black, grey, jnp.int32(2**11)).tolist()
    [[[75, 75, 75]]]
    """
    moved = (duller << FACTOR_BITS) + factor * (image - duller)
    return jnp.clip(moved >> FACTOR_BITS, 0, 255)


def grey(image: Int32[Array, "height width 3"]) -> Int32[Array, "height width 3"]:
    """L = 0.299 R + 0.587 G + 0.114 B in all channels: what Color blends with.

    Source: Pillow, mode "L" (ITU-R 601-2), in 16 bits with rounding.
    """
    return jnp.broadcast_to(_lightness(image)[..., None], image.shape)


def mean_grey(image: Int32[Array, "height width 3"]) -> Int32[Array, "height width 3"]:
    """The mean of L, rounded, everywhere: what Contrast blends with.

    Source: Pillow, `ImageEnhance.Contrast`.
    """
    count = image.shape[0] * image.shape[1]
    total = jnp.sum(_lightness(image), dtype=jnp.int32)
    return jnp.broadcast_to((2 * total + count) // (2 * count), image.shape)


def smooth(
    image: Int32[Array, "height width channels"],
) -> Int32[Array, "height width channels"]:
    """Mean over 3 × 3 pixels, of which the middle counts five times: what Sharpness blends with.

    The outermost pixels stay; an image with fewer than three pixels on a side, too. The mean is
    rounded; as 13 is odd, no mean lies halfway between integers.

    Source: Pillow, `ImageFilter.SMOOTH`.
    """
    if min(image.shape[:2]) < 3:
        return image
    rows = image[:-2] + image[1:-1] + image[2:]
    sums = rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:] + 4 * image[1:-1, 1:-1]
    inner = lax.div(2 * sums + 13, jnp.full_like(sums, 26))
    return image.at[1:-1, 1:-1].set(inner)


def _lightness(image: Int32[Array, "height width 3"]) -> Int32[Array, "height width"]:
    red, green, blue = image[..., 0], image[..., 1], image[..., 2]
    return (19595 * red + 38470 * green + 7471 * blue + 2**15) >> 16
