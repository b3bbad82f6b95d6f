"""Invertible down-sampling: s × s pixels become one token, and nothing is lost.

That is `patchify`: the numbers of a square stand side by side, pixels row-major and channels last.

Source: Jacobsen, Smeulders and Oyallon 2018, i-RevNet, §3.1; C20 §4.1 takes s = 2.
"""

from jax import Array
from jaxtyping import Num

from convattn.operators.integers import as_integer
from convattn.operators.patches import patchify, unpatchify


def downsample(
    images: Num[Array, "batch height width channels"], factor: int
) -> Num[Array, "batch rows columns features"]:
    """Images of height/s × width/s tokens of s²·channels features.

    Args:
        factor: s, which divides both sides.

    Raises:
        ValueError: Where it does not.

    >>> import jax.numpy as jnp
    >>> downsample(jnp.arange(16).reshape(1, 4, 4, 1), 2)[0, 0].tolist()
    [[0, 1, 4, 5], [2, 3, 6, 7]]
    """
    return patchify(images, factor)


def upsample(
    tokens: Num[Array, "batch rows columns features"], factor: int
) -> Num[Array, "batch height width channels"]:
    """The inverse of `downsample`.

    Raises:
        ValueError: Where s² does not divide the features.

    >>> import jax.numpy as jnp
    >>> images = jnp.arange(48).reshape(1, 4, 4, 3)
    >>> bool((upsample(downsample(images, 2), 2) == images).all())
    True
    """
    return unpatchify(tokens, factor)


def token_grid(
    image_size: tuple[int, int],
    factor: int,
    *,
    name: str = "downsampling",
    remedy: str = "crop or pad the images, or take another downsampling",
) -> tuple[int, int]:
    """How many rows and columns of tokens an image gives.

    Args:
        name, remedy: What a message calls the factor s, and what it advises.

    Raises:
        ValueError: For a size that is no pair of integers ≥ 1, or that s does not divide.

    >>> token_grid((32, 48), 2)
    (16, 24)
    """
    if not isinstance(image_size, list | tuple) or len(image_size) != 2:
        raise ValueError(f"image_size={image_size!r}, but expected (height, width)")
    height, width = (as_integer(side, "a side of image_size", 1) for side in image_size)
    if height % factor or width % factor:
        raise ValueError(
            f"image_size={image_size} with {name}={factor}, but expected two sides that "
            f"{factor} divides; {remedy}"
        )
    return height // factor, width // factor
