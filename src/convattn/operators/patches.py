"""Images as grids of flattened patches (L21 §2.2), and the ring of zero patches around them.

A token is a patch, its pixels row-major and its channels last: pixel (p_1, p_2) and channel c of
a P_1 × P_2 patch stand at (p_1·P_2 + p_2)·C + c. With P = 1 the tokens are the pixels of C20.
"""

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax import Array
from jaxtyping import Num

from convattn.operators.arrays import as_array
from convattn.operators.integers import per_axis

Ring = tuple[tuple[int, int], ...]
_MAX_KEYS = 2**20  # of a single query; a ring of 500 tokens on every side of it has fewer


def patchify(
    images: Any, patch_size: int | Sequence[int], *, pad: bool = False
) -> Num[Array, "batch *grid features"]:
    """Cut images into non-overlapping patches and flatten each.

    Args:
        images: `[batch, height, width, channels]` or `[batch, length, channels]`.
        patch_size: P, or one for each axis.
        pad: Lay zeros after the image up to the next multiple of P instead of refusing.

    Returns:
        `[batch, ⌈height/P⌉, ⌈width/P⌉, P²·channels]`.

    Raises:
        ValueError: Where P does not divide a side and `pad` is off, or ranks do not fit.

    Source: L21 §2.2, "patch input".

    >>> patchify([[[1], [2], [3], [4]]], 2).tolist()
    [[[1, 2], [3, 4]]]
    """
    images = as_array(images, "images")
    if images.ndim not in (3, 4):
        raise ValueError(
            f"images.shape={images.shape}, but expected [batch, length, channels] or [batch, "
            "height, width, channels]; add the batch axis with images[None]"
        )
    if 0 in images.shape[1:]:
        raise ValueError(
            f"images.shape={images.shape}, but expected every axis but the batch to be ≥ 1"
        )
    axes = images.ndim - 2
    sizes = per_axis(patch_size, axes, "patch_size")
    missing = [-n % p for n, p in zip(images.shape[1:-1], sizes, strict=True)]
    if any(missing):
        if not pad:
            raise ValueError(
                f"images.shape={images.shape} has sides {images.shape[1:-1]}, which patches of "
                f"size {sizes} do not divide; crop the images, or pad them with zeros through "
                "patchify(..., pad=True)"
            )
        images = jnp.pad(images, [(0, 0), *((0, after) for after in missing), (0, 0)])
    batch, channels = images.shape[0], images.shape[-1]
    grid = [n // p for n, p in zip(images.shape[1:-1], sizes, strict=True)]
    split = [length for pair in zip(grid, sizes, strict=True) for length in pair]
    order = [0, *range(1, 2 * axes, 2), *range(2, 2 * axes + 1, 2), 2 * axes + 1]
    tokens = images.reshape(batch, *split, channels).transpose(order)
    return tokens.reshape(batch, *grid, math.prod(sizes) * channels)


def unpatchify(
    tokens: Any, patch_size: int | Sequence[int], *, image_size: Sequence[int] | None = None
) -> Num[Array, "batch *space channels"]:
    """Put patches back into an image: the inverse of `patchify`.

    Args:
        tokens: `[batch, rows, columns, P²·channels]`, or with one grid axis.
        patch_size: P, or one for each axis.
        image_size: Crop to this size, where `patchify` padded.

    Raises:
        ValueError: Where the features are no multiple of the pixels of a patch.

    >>> unpatchify([[[1, 2], [3, 4]]], 2, image_size=(3,))[..., 0].tolist()
    [[1, 2, 3]]
    """
    tokens = as_array(tokens, "tokens")
    axes = tokens.ndim - 2
    if axes not in (1, 2):
        raise ValueError(
            f"tokens.shape={tokens.shape}, but expected [batch, tokens, features] or [batch, "
            "rows, columns, features]"
        )
    sizes = per_axis(patch_size, axes, "patch_size")
    pixels = math.prod(sizes)
    if tokens.shape[-1] % pixels:
        raise ValueError(
            f"tokens.shape={tokens.shape} has {tokens.shape[-1]} features, but a patch of size "
            f"{sizes} holds a multiple of {pixels}"
        )
    grid = tokens.shape[1:-1]
    channels = tokens.shape[-1] // pixels
    patches = tokens.reshape(tokens.shape[0], *grid, *sizes, channels)
    order = [
        0,
        *(
            axis
            for pair in zip(range(1, axes + 1), range(axes + 1, 2 * axes + 1), strict=True)
            for axis in pair
        ),
        2 * axes + 1,
    ]
    sides = [n * p for n, p in zip(grid, sizes, strict=True)]
    images = patches.transpose(order).reshape(tokens.shape[0], *sides, channels)
    if image_size is None:
        return images
    image_sides = per_axis(image_size, axes, "image_size")
    if any(not n - p < side <= n for n, p, side in zip(sides, sizes, image_sides, strict=True)):
        raise ValueError(
            f"image_size={image_sides}, but tokens of shape {tokens.shape} with patches of "
            f"size {sizes} hold an image of sides {tuple(sides)}, of which at most the last patch "
            "may be cropped"
        )
    return images[(slice(None), *(slice(0, n) for n in image_sides))]


def add_zero_ring(
    tokens: Num[Array, "batch *grid features"], ring: Ring
) -> Num[Array, "batch *ringed features"]:
    """Lay zero tokens around the grid: `ring` holds (before, after) for each axis.

    >>> add_zero_ring(jnp.ones((1, 2, 1)), ((1, 2),))[0, :, 0].tolist()
    [0.0, 1.0, 1.0, 0.0, 0.0]
    """
    return jnp.pad(tokens, [(0, 0), *ring, (0, 0)])


def check_ring(ring: Any, axes: int) -> Ring:
    """Read a ring: an integer for every side, or a (before, after) pair for each axis.

    >>> check_ring(1, 2), check_ring([(0, 1)], 1)
    (((1, 1), (1, 1)), ((0, 1),))
    """
    pairs = ring if isinstance(ring, Sequence) else ((ring, ring),) * axes
    try:
        before, after = zip(*(per_axis(pair, 2, "ring", 0) for pair in pairs), strict=True)
        fits = len(before) == axes and all(isinstance(pair, Sequence) for pair in pairs)
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"ring={ring!r}, but expected an integer ≥ 0, or {axes} pairs (before, after)"
        )
    widths = tuple(zip(before, after, strict=True))
    keys = math.prod(1 + low + high for low, high in widths)
    if keys > _MAX_KEYS:
        raise ValueError(
            f"ring={widths}, which gives a single query {keys} keys, but at most {_MAX_KEYS} are "
            "expected; a ring is as wide as half the kernel with its dilation, in patches"
        )
    return widths
