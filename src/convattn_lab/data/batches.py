"""Batches made on the device: the whole set lives there as uint8.

Everything random is a function of (key, epoch, index): the order of an epoch of (key, epoch), and
the crop, the flip, the operations of RandAugment and the erased box of an image of (key, epoch, its
index in the set). They depend neither on the batch that the image is in, nor on its place there,
nor on how many devices there are, nor on whether JAX's 64-bit types are on, so that a run that
resumes does what it would have done. Only Mixup and CutMix look at a batch: an image is mixed with
the one at the mirrored place, as (key, epoch, index of the batch's first image) has it.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float, Float32, Int32, Key, UInt8, UInt32

from convattn.data.cifar10_slice import Images
from convattn_lab.data.augmentation.mixing import mix
from convattn_lab.data.augmentation.rand_augment import rand_augment
from convattn_lab.data.augmentation.random_erasing import erase
from convattn_lab.data.augmentation.settings import Augmentation

ORDER, EXAMPLES = 0, 1  # folded into the key, so that the order and the crops are independent


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class DeviceImages:
    """Labelled images as JAX arrays; a pytree.

    Attributes:
        images: values of 0..255, ``[count, height, width, channels]``.
        labels: class numbers, ``[count]``.
    """

    images: UInt8[Array, "count height width channels"]
    labels: Int32[Array, " count"]


def put_on_device(images: Images, sharding: Any = None) -> DeviceImages:
    """The images and labels as JAX arrays.

    Args:
        images: what is put there.
        sharding: where, a device or a sharding; JAX's default device if None.

    >>> black = Images(np.zeros((2, 4, 5, 3), np.uint8), np.zeros(2, np.uint8), ("night",))
    >>> data = put_on_device(black)
    >>> data.images.shape, data.labels.dtype
    ((2, 4, 5, 3), dtype('int32'))
    """
    arrays = DeviceImages(images.images, images.labels.astype(np.int32))  # type: ignore[arg-type]
    return jax.device_put(arrays, sharding)


def epoch_order(
    key: Key[Array, ""] | UInt32[Array, "2"], epoch: ArrayLike, count: int
) -> Int32[Array, " count"]:
    """The order of the images in an epoch: every index once.

    Args:
        key: the run's, of the kind "threefry2x32": others draw by the batch.
        epoch: the epoch's number, 0 or more; may be traced.
        count: how many images there are.

    >>> sorted(epoch_order(jax.random.key(0), 3, 5).tolist())
    [0, 1, 2, 3, 4]
    """
    chosen = jax.random.fold_in(jax.random.fold_in(key, ORDER), epoch)
    return jax.random.permutation(chosen, jnp.arange(count, dtype=jnp.int32))


def example_keys(
    key: Key[Array, ""] | UInt32[Array, "2"], epoch: ArrayLike, indices: Int32[Array, " batch"]
) -> Key[Array, " batch"] | UInt32[Array, "batch 2"]:
    """One key for each image, which only the run's key, the epoch and the image's index decide.

    Args:
        key: the run's, of the kind "threefry2x32": others draw by the batch.
        epoch: the epoch's number, 0 or more; may be traced.
        indices: of the images in the whole set, ``[batch]``.

    >>> key = jax.random.key(0)
    >>> keys = example_keys(key, 3, jnp.arange(5))
    >>> bool(keys[4] == example_keys(key, 3, jnp.array([4]))[0])
    True
    """
    chosen = jax.random.fold_in(jax.random.fold_in(key, EXAMPLES), epoch)
    return jax.vmap(jax.random.fold_in, (None, 0))(chosen, indices)


def draw_augmentation(
    keys: Key[Array, " batch"] | UInt32[Array, "batch 2"], augmentation: Augmentation
) -> tuple[Int32[Array, "batch 2"], Bool[Array, " batch"]]:
    """The corner at which each crop starts, and whether it is mirrored.

    Three 32-bit words are drawn with each key. The first two modulo 2·crop + 1 are the corner, so
    that each has its probability up to 2⁻³²; the highest bit of the third is the flip.

    Args:
        keys: one for each image, ``[batch]``.
        augmentation: how images are augmented.

    Returns:
        Rows and columns 0 … 2·crop of the image with black pixels around it, ``[batch, 2]``, where
        (crop, crop) leaves it as it is; and the flips, ``[batch]``.

    >>> corners, flips = draw_augmentation(jax.random.split(jax.random.key(0), 6), Augmentation(1))
    >>> corners.shape, bool(corners.min() >= 0), bool(corners.max() <= 2), flips.shape
    ((6, 2), True, True, (6,))
    """
    words = jax.vmap(lambda key: jax.random.bits(key, (3,), jnp.uint32))(keys)
    corners = (words[:, :2] % jnp.uint32(2 * augmentation.crop + 1)).astype(jnp.int32)
    flips = words[:, 2] >= jnp.uint32(2**31)
    return corners, flips if augmentation.flip else jnp.zeros_like(flips)


def load_batch(
    data: DeviceImages,
    indices: Int32[Array, " batch"],
    keys: Key[Array, " batch"] | UInt32[Array, "batch 2"] | None,
    mean: ArrayLike,
    std: ArrayLike,
    augmentation: Augmentation | None = None,
    dtype: Any = jnp.float32,
    *,
    resize: int | None = None,
    classes: int | None = None,
) -> tuple[
    Float[Array, "batch rows columns channels"],
    Int32[Array, " batch"] | Float32[Array, "batch classes"],
]:
    """Normalised images and what they show, augmented at random for training.

    In this order: the crop and the flip, RandAugment, normalising, another size, random erasing,
    and Mixup or CutMix. The first two are done on bytes, the others in float32.

    An image x becomes (x - m) s with m = 255·mean and s = 1/(255·std), both rounded to float32 on
    the host; the difference and the product are float32 too. In that form no compiler may contract
    or replace an operation, so the result is the same on every device. The black pixels of a crop
    are put there before normalising, and so is RandAugment's fill, the mean rounded to bytes.

    Args:
        data: the whole set.
        indices: 0 … count - 1, ``[batch]``. Their values aren't checked, as they may be traced:
            JAX counts negative ones from the end, and takes the nearest image for one beyond.
        keys: one for each image, from `example_keys`; None without augmentation.
        mean: of x/255, for each channel, ``[channels]``; a constant, not traced.
        std: of x/255, for each channel, above 0, ``[channels]``; a constant, not traced.
        augmentation: how images are augmented; None for evaluation.
        dtype: of the images returned.
        resize: the side of the images returned; None leaves their size.
        classes: how many there are; only Mixup and CutMix need it.

    Returns:
        The images, ``[batch, rows, columns, channels]``, and the labels, ``[batch]``, or with Mixup
        or CutMix how much of each class is in an image, ``[batch, classes]``.

    Raises:
        ValueError: keys are missing or not one for each index; classes are missing; the crop is not
            smaller than the image; or the images are none that `rand_augment` and `erase` take.

    >>> white = Images(np.full((2, 4, 5, 3), 255, np.uint8), np.zeros(2, np.uint8), ("snow",))
    >>> data = put_on_device(white)
    >>> images, labels = load_batch(data, jnp.array([1]), None, np.full(3, 0.5), np.full(3, 0.5))
    >>> images.shape, images[0, 0, 0].tolist(), labels.tolist()
    ((1, 4, 5, 3), [1.0, 1.0, 1.0], [0])
    """
    shift = (255 * np.asarray(mean, np.float64)).astype(np.float32)
    scale = (1 / (255 * np.asarray(std, np.float64))).astype(np.float32)
    if augmentation is None:
        images = (data.images[indices].astype(jnp.float32) - shift) * scale
        return resized(images, resize).astype(dtype), data.labels[indices]
    if keys is None or len(keys) != len(indices):
        raise ValueError(
            f"keys for {0 if keys is None else len(keys)} of {len(indices)} images, but expected "
            "one for each that is augmented; pass those of example_keys for the same indices"
        )
    pixels = _crop(data.images, indices, *draw_augmentation(keys, augmentation), augmentation)
    if augmentation.rand_augment:
        fill = jnp.asarray(np.rint(shift).clip(0, 255), jnp.int32)
        pixels = rand_augment(pixels, keys, augmentation.rand_augment, fill)
    images = resized((pixels.astype(jnp.float32) - shift) * scale, resize)
    if augmentation.erasing:
        images = erase(images, keys, augmentation.erasing)
    labels = data.labels[indices]
    if not augmentation.mixes:
        return images.astype(dtype), labels
    if classes is None:
        raise ValueError("classes=None, but expected their number for Mixup and CutMix; give it")
    alphas = {"mixup": augmentation.mixup, "cutmix": augmentation.cutmix}
    mixed, targets = mix(images, labels, keys[0], **alphas, classes=classes)
    return mixed.astype(dtype), targets


def resized(
    images: Float32[Array, "batch height width channels"], side: int | None
) -> Float32[Array, "batch rows columns channels"]:
    """Squares of this side, by Keys' bicubic interpolation with a = -1/2; None leaves the size.

    At the border the weights of the pixels there are are divided by their sum; when an image gets
    smaller the kernel grows wider, against aliasing.

    Source: Pillow, `Image.resize` with `BICUBIC`, for floating-point pixels.

    >>> resized(jnp.ones((1, 2, 2, 1), jnp.float32), 4).shape
    (1, 4, 4, 1)
    """
    if side is None or images.shape[1:3] == (side, side):
        return images
    return jax.image.resize(images, (len(images), side, side, images.shape[-1]), "cubic")


def require_crop(augmentation: Augmentation, height: int, width: int) -> None:
    """Refuse crops that might hold nothing of an image."""
    if augmentation.crop >= min(height, width):
        raise ValueError(
            f"crop={augmentation.crop}, but expected less than the {height}×{width} pixels of the "
            "image, or a crop could be all black; take a smaller one"
        )


def _crop(
    images: UInt8[Array, "count height width channels"],
    indices: Int32[Array, " batch"],
    corners: Int32[Array, "batch 2"],
    flips: Bool[Array, " batch"],
    augmentation: Augmentation,
) -> UInt8[Array, "batch height width channels"]:
    """One gather out of the whole set, and black where it leaves an image."""
    height, width = images.shape[1:3]
    require_crop(augmentation, height, width)
    down = jnp.arange(height, dtype=jnp.int32)
    across = jnp.arange(width, dtype=jnp.int32)
    mirrored = jnp.where(flips[:, None], width - 1 - across, across)
    rows = corners[:, :1] - augmentation.crop + down
    columns = corners[:, 1:] - augmentation.crop + mirrored
    inside = ((rows >= 0) & (rows < height))[:, :, None] & ((columns >= 0) & (columns < width))[
        :, None, :
    ]
    rows, columns = rows.clip(0, height - 1), columns.clip(0, width - 1)
    pixels = images[indices[:, None, None], rows[:, :, None], columns[:, None, :]]
    return jnp.where(inside[..., None], pixels, jnp.uint8(0))
