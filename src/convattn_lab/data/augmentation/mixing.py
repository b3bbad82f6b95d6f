"""Mixup and CutMix: each image of a batch is mixed with the one at the mirrored place.

One λ is drawn for a batch, from Beta(α, α). Mixup makes λ x_i + (1 - λ) x_j of the images i and j;
CutMix puts a box of x_j, of the area 1 - λ but for what is outside, into x_i. Labels are
mixed in the proportion of the images. With both, a batch has one of them with probability 1/2.

λ is one of the 4,096 values at the quantiles (i + ½)/4096 of its distribution, each as likely as
any other, rounded to a multiple of 2⁻¹⁶ so that λ and 1 - λ are exact in float32.
"""

import math
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Float32, Int32, Key, UInt32

from convattn_lab.data.augmentation.random_erasing import inside_box

STREAM = 18  # what a batch's key is folded with
COUNT = 4096
FINE = 2**16


def mix(
    images: Float[Array, "batch height width channels"],
    labels: Int32[Array, " batch"],
    key: Key[Array, ""] | UInt32[Array, "2"],
    *,
    mixup: float,
    cutmix: float,
    classes: int,
) -> tuple[Float[Array, "batch height width channels"], Float32[Array, "batch classes"]]:
    """Mixed images, and their classes as distributions.

    Args:
        key: Of the batch.
        mixup, cutmix: The α of each, 0 for none; not both 0.
        classes: How many there are.

    Source: timm, `Mixup`, in its mode "batch", with probability 1 and switched with 1/2.

    >>> images, labels = jnp.ones((2, 4, 4, 1), jnp.float32), jnp.array([0, 2], jnp.int32)
    >>> given = {"mixup": 0.8, "cutmix": 1.0, "classes": 3}
    >>> mixed, targets = mix(images, labels, jax.random.key(0), **given)
    >>> mixed.shape, targets.sum(axis=1).tolist()
    ((2, 4, 4, 1), [1.0, 1.0])
    """
    height, width = images.shape[1:3]
    own, box, fraction = draw_mixing(key, mixup, cutmix, height, width)
    other = images[::-1]
    blended = own.astype(images.dtype) * images + (1 - own).astype(images.dtype) * other
    named = jax.nn.one_hot(labels, classes, dtype=jnp.float32)
    targets = fraction * named + (1 - fraction) * named[::-1]
    return jnp.where(box[..., None], other, blended), targets


def draw_mixing(
    key: Key[Array, ""] | UInt32[Array, "2"],
    mixup: float,
    cutmix: float,
    height: int,
    width: int,
) -> tuple[Float32[Array, ""], Bool[Array, "height width"], Float32[Array, ""]]:
    """What a batch is mixed with.

    Returns:
        The weight of the own image outside of the box, 1 for CutMix; the box, empty for Mixup; and
        the weight of the own label: for CutMix the part of the area outside of the box.
    """
    words = jax.random.bits(jax.random.fold_in(key, STREAM), (4,), jnp.uint32)
    index = words[0] % jnp.uint32(COUNT)
    cut = words[1] >= jnp.uint32(2**31) if mixup and cutmix else jnp.asarray(bool(cutmix))
    own = jnp.where(cut, jnp.float32(1), jnp.asarray(fractions(mixup or 1.0))[index])
    sides = jnp.array([height, width], jnp.int32)
    middle = (words[2:] % sides.astype(jnp.uint32)).astype(jnp.int32)
    half = jnp.where(cut, jnp.asarray(half_boxes(cutmix or 1.0, height, width))[index], 0)
    first, end = jnp.maximum(middle - half, 0), jnp.minimum(middle + half, sides)
    area = (end[0] - first[0]) * (end[1] - first[1])
    left = (height * width - area).astype(jnp.float32) / jnp.float32(height * width)
    return own, inside_box(first, end, height, width), jnp.where(cut, left, own)


@cache
def fractions(alpha: float) -> Float32[np.ndarray, " quantiles"]:
    """Beta(α, α) at its quantiles (i + ½)/4096, in multiples of 2⁻¹⁶.

    >>> fractions(1.0)[:2] * 2**16
    array([ 8., 24.], dtype=float32)
    """
    from scipy.special import betaincinv

    quantiles = (np.arange(COUNT) + 0.5) / COUNT
    return (np.rint(betaincinv(alpha, alpha, quantiles) * FINE) / FINE).astype(np.float32)


@cache
def half_boxes(alpha: float, height: int, width: int) -> Int32[np.ndarray, "quantiles 2"]:
    """How far a box reaches from its middle, down and across, at each fraction.

    A side is ⌊n √(1 - λ)⌋ of n pixels, and half of it is rounded down.

    Source: timm, `rand_bbox`.

    >>> half_boxes(1.0, 32, 32)[[0, -1]].tolist()
    [[15, 15], [0, 0]]
    """
    ratios = [math.sqrt(1 - fraction) for fraction in fractions(alpha).tolist()]
    halves = [(int(height * ratio) // 2, int(width * ratio) // 2) for ratio in ratios]
    return np.array(halves, np.int32)
