"""RandAugment as in DeiT: timm's `rand-m9-mstd0.5-inc1`, for any magnitude.

For each image two of fifteen operations are drawn, with repetition, and each is done with
probability 1/2. A vmapped `lax.switch` would compute all fifteen; instead every operation is a case
of one chain, in which what it doesn't use leaves the image as it is:

    a table of values  →  a blend with a duller image  →  an affine map

AutoContrast, Equalize, Invert, Posterize, Solarize and SolarizeAdd are tables; Color, Contrast,
Brightness and Sharpness are blends; Rotate, ShearX, ShearY, TranslateX and TranslateY are maps.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int32, Key, UInt8, UInt32

from convattn.lab.data.variation import RAND_AUGMENT
from convattn.lab.data.variation.magnitudes import COUNT, Arguments, argument_table
from convattn.lab.data.variation.operations.blending import (
    FACTOR_BITS,
    blend,
    grey,
    mean_grey,
    smooth,
)
from convattn.lab.data.variation.operations.lookup import (
    autocontrast_table,
    equalize_table,
    identity_table,
    invert_table,
    look_up,
    posterize_table,
    solarize_add_table,
    solarize_table,
)
from convattn.lab.data.variation.operations.warping import MATRIX_BITS, warp

OPERATIONS = (
    *("AutoContrast", "Equalize", "Invert", "Posterize", "Solarize", "SolarizeAdd"),
    *("Color", "Contrast", "Brightness", "Sharpness"),
    *("Rotate", "ShearX", "ShearY", "TranslateX", "TranslateY"),
)
IN_A_ROW = 2
LARGEST_SIDE = 2048  # beyond it the int32 of a position or of a sum of values could overflow
TABLES, BLENDS = OPERATIONS.index("Color"), OPERATIONS.index("Rotate")  # where they end
NOTHING = len(OPERATIONS)


def rand_augment(
    images: UInt8[Array, "batch height width 3"],
    keys: Key[Array, " batch"] | UInt32[Array, "batch 2"],
    magnitude: float,
    fill: Int32[Array, "3"],
) -> UInt8[Array, "batch height width 3"]:
    """Two random operations, one after the other, on each image.

    Args:
        keys: One for each image.
        magnitude: The mean of the normal distribution, of deviation 1/2, from which each
            operation's is drawn and cut to 0 … 10.
        fill: What stands where a map reaches beyond the image, for each channel.

    Raises:
        ValueError: For images without three channels or with a side beyond 2048.

    >>> images = jnp.zeros((2, 4, 4, 3), jnp.uint8)
    >>> keys = jax.random.split(jax.random.key(0), 2)
    >>> rand_augment(images, keys, 9, jnp.full(3, 128, jnp.int32)).shape
    (2, 4, 4, 3)
    """
    _, height, width, channels = images.shape
    if channels != 3 or max(height, width) > LARGEST_SIDE:
        raise ValueError(
            f"the images have the shape {height}×{width}×{channels}, but RandAugment was made for "
            f"three channels and sides of up to {LARGEST_SIDE} pixels; leave it out, or make the "
            "images smaller"
        )
    table = jax.tree.map(jnp.asarray, argument_table(magnitude, height, width))
    wide = images.astype(jnp.int32)
    operations, places, negative = draw_operations(keys)
    for number in range(IN_A_ROW):
        given = jax.tree.map(lambda of: of[places[:, number]], table)  # noqa: B023
        chosen = operations[:, number], given, negative[:, number]
        wide = jax.vmap(apply_operation, (0, 0, 0, 0, None))(wide, *chosen, fill)
    return wide.astype(jnp.uint8)


def draw_operations(
    keys: Key[Array, " batch"] | UInt32[Array, "batch 2"],
) -> tuple[Int32[Array, "batch 2"], Int32[Array, "batch 2"], Bool[Array, "batch 2"]]:
    """Which operations, at which of the `COUNT` magnitudes, and in which of two directions.

    For each operation four 32-bit words are drawn: the first modulo 15, the highest bit of the
    second (whether it is done), the lowest ten bits of the third, the highest of the fourth.

    Returns:
        Numbers in `OPERATIONS`, or `NOTHING`; numbers below `COUNT`; and the directions.
    """

    def words(key: Array) -> Array:
        return jax.random.bits(
            jax.random.fold_in(key, RAND_AUGMENT), (IN_A_ROW, 4), dtype=jnp.uint32
        )

    drawn = jax.vmap(words)(keys)
    operations = (drawn[..., 0] % jnp.uint32(len(OPERATIONS))).astype(jnp.int32)
    done, negative = drawn[..., 1] >= jnp.uint32(2**31), drawn[..., 3] >= jnp.uint32(2**31)
    places = (drawn[..., 2] % jnp.uint32(COUNT)).astype(jnp.int32)
    return jnp.where(done, operations, NOTHING), places, negative


def apply_operation(
    image: Int32[Array, "height width 3"],
    operation: Int32[Array, ""],
    given: Arguments,
    negative: Bool[Array, ""],
    fill: Int32[Array, "3"],
) -> Int32[Array, "height width 3"]:
    """One operation on one image.

    Args:
        operation: Its number in `OPERATIONS`; `NOTHING` changes nothing.
        given: Its arguments, a number each.
        negative: Whether a map goes the other way, and a blend towards the duller image.
        fill: One value a channel.
    """
    found = look_up(image, _tables(image, given), jnp.minimum(operation, TABLES))
    duller = (grey(found), mean_grey(found), jnp.zeros_like(found), smooth(found))
    which = operation - TABLES
    blended = (which >= 0) & (operation < BLENDS)
    factor = jnp.where(negative, given.less, given.more)
    factor = jnp.where(blended, factor, jnp.int32(2**FACTOR_BITS))
    found = blend(jax.lax.select_n(which.clip(0, 3), *duller), found, factor)
    return warp(found, *_map(image.shape[0], image.shape[1], operation, given, negative), fill)


def _tables(image: Array, given: Arguments) -> Array:
    """Those of the first `TABLES` operations, and the identity for the others."""
    channels = image.shape[-1]
    tables = (
        autocontrast_table(image),
        equalize_table(image),
        invert_table(channels),
        posterize_table(channels, given.bits),
        solarize_table(channels, given.threshold),
        solarize_add_table(channels, given.addition),
        identity_table(channels),
    )
    return jnp.stack(tables)


def _map(
    height: int, width: int, operation: Array, given: Arguments, negative: Array
) -> tuple[Array, Array]:
    """Matrix and shift of the operation; the identity for those that have none.

    A rotation by θ is x' = cos θ x - sin θ y, y' = sin θ x + cos θ y, from the image's middle.
    """
    sign = jnp.where(negative, jnp.int32(-1), jnp.int32(1))
    one, none = jnp.full_like(sign, 2**MATRIX_BITS), jnp.zeros_like(sign)
    cosine, sine, shear = given.cosine, sign * given.sine, sign * given.shear
    turned = (one - cosine) * width + sine * height, (one - cosine) * height - sine * width
    maps = (
        (one, none, none, one, none, none),
        (cosine, -sine, sine, cosine, *turned),
        (one, shear, none, one, none, none),
        (one, none, shear, one, none, none),
        (one, none, none, one, sign * given.across, none),
        (one, none, none, one, none, sign * given.down),
    )
    which = operation - BLENDS + 1
    which = jnp.where(operation < NOTHING, which.clip(0), 0)
    a, b, c, d, *shift = jnp.stack([jnp.stack(each) for each in maps])[which]
    return jnp.stack([a, b, c, d]).reshape(2, 2), jnp.stack(shift)
