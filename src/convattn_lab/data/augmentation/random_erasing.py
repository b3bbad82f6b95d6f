"""Random erasing: a box of a picture is replaced by noise.

timm draws the box's area, 2 % to 1/3 of the image, and the logarithm of its aspect, 0.3 to 1/0.3,
until the box is smaller than the image on both sides, at most ten times. Here both are at the
middles of 64 equal parts of their ranges, and the boxes that fit make a table, in which each is as
likely as any other: the same distribution without an end to the attempts.
"""

import math
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int32, Key, UInt32

STREAM = 17  # what an image's key is folded with
NUM_FRACTIONS = 64
SMALLEST, LARGEST = 0.02, 1 / 3
NARROWEST = 0.3
FINE = 2**24  # a probability is a multiple of 2⁻²⁴


def erase(
    images: Float[Array, "batch height width channels"],
    keys: Key[Array, " batch"] | UInt32[Array, "batch 2"],
    probability: float,
) -> Float[Array, "batch height width channels"]:
    """Independent normal numbers in one box of some images.

    Args:
        images: Normalised.
        keys: One for each image.
        probability: That an image has a box, rounded to 24 bits.

    Raises:
        ValueError: For images that no box fits into.

    >>> images = jnp.zeros((2, 8, 8, 3), jnp.float32)
    >>> keys = jax.random.split(jax.random.key(0), 2)
    >>> erased = jax.jit(erase, static_argnums=2)(images, keys, 1.0)
    >>> bool((erased != 0).any()), bool((erased == 0).any())
    (True, True)
    """
    height, width = images.shape[1:3]
    sizes = box_sizes(height, width)
    if not len(sizes):
        raise ValueError(
            f"no box is smaller than {height}×{width} pixels on both sides, so nothing can be "
            "erased; leave erasing out, or take larger images"
        )
    table = jnp.asarray(sizes)

    def one(image: Array, key: Array) -> Array:
        boxes, noise = jax.random.split(jax.random.fold_in(key, STREAM))
        words = jax.random.bits(boxes, (4,), jnp.uint32)
        erased = (words[0] >> 8) < jnp.uint32(round(probability * FINE))
        size = table[words[1] % jnp.uint32(len(sizes))]
        room = jnp.array([height, width], jnp.int32) - size + 1
        first = (words[2:] % room.astype(jnp.uint32)).astype(jnp.int32)
        box = erased & inside_box(first, first + size, height, width)
        fill = jax.random.normal(noise, image.shape, jnp.float32).astype(image.dtype)
        return jnp.where(box[..., None], fill, image)

    return jax.vmap(one)(images, keys)


def inside_box(
    first: Int32[Array, "2"], end: Int32[Array, "2"], height: int, width: int
) -> Bool[Array, "height width"]:
    """Which pixels are in a box, from row and column of its first pixel to those beyond its last.

    >>> inside_box(jnp.array([0, 1], jnp.int32), jnp.array([1, 3], jnp.int32), 2, 3).tolist()
    [[False, True, True], [False, False, False]]
    """
    rows = jnp.arange(height, dtype=jnp.int32)[:, None]
    columns = jnp.arange(width, dtype=jnp.int32)
    down = (rows >= first[0]) & (rows < end[0])
    return down & (columns >= first[1]) & (columns < end[1])


@cache
def box_sizes(height: int, width: int) -> Int32[np.ndarray, "boxes 2"]:
    """Rows and columns of each box that fits, in pixels.

    With area A and aspect r they are √(A r) and √(A/r), rounded.

    Source: timm, `RandomErasing`.

    >>> sizes = box_sizes(32, 32)
    >>> sizes.shape, sizes.max()
    ((4064, 2), np.int32(31))
    """
    middles = [(number + 0.5) / NUM_FRACTIONS for number in range(NUM_FRACTIONS)]
    areas = [(SMALLEST + (LARGEST - SMALLEST) * middle) * height * width for middle in middles]
    aspects = [NARROWEST ** (1 - 2 * middle) for middle in middles]
    boxes = [
        (round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect)))
        for area in areas
        for aspect in aspects
    ]
    fitting = [box for box in boxes if box[0] < height and box[1] < width]
    return np.array(fitting, np.int32).reshape(-1, 2)
