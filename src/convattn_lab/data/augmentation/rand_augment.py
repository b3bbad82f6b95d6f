"""RandAugment as in DeiT: timm's `rand-m9-mstd0.5-inc1`, for any magnitude.

For each image two of fifteen operations are drawn, with repetition, and each is done with
probability 1/2. A vmapped `lax.switch` would compute all fifteen; instead every operation is a case
of one chain, in which what it does not use leaves the image as it is:

    a function of each value  →  a blend with a duller image  →  an affine map

AutoContrast, Equalize, Invert, Posterize, Solarize and SolarizeAdd are functions of the values;
Color, Contrast, Brightness and Sharpness are blends; Rotate, ShearX, ShearY, TranslateX and
TranslateY are maps. All compute in float32 and cut fractions off after each operation, as Pillow
does: a value differs from Pillow's by at most one grey level.
"""

import math
from functools import cache
from statistics import NormalDist

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.ndimage import map_coordinates
from jaxtyping import Array, Bool, Float32, Int32, Key, UInt8, UInt32

STREAM = 16  # what an image's key is folded with; beyond the words for crop and flip
OPERATIONS = (
    *("AutoContrast", "Equalize", "Invert", "Posterize", "Solarize", "SolarizeAdd"),
    *("Color", "Contrast", "Brightness", "Sharpness"),
    *("Rotate", "ShearX", "ShearY", "TranslateX", "TranslateY"),
)
NOTHING = len(OPERATIONS)
BLENDS, MAPS = OPERATIONS.index("Color"), OPERATIONS.index("Rotate")  # where they begin
IN_A_ROW = 2
COUNT, DEVIATION, LARGEST = 1024, 0.5, 10.0  # of the magnitudes
ARGUMENTS = ("step", "threshold", "addition", "more", "less", "cosine", "sine", "shear", "shift")
ERROR = 2**-10  # of float32 in a value, at most: a whole number is not cut off to the one below
LIGHTNESS = (0.299, 0.587, 0.114)  # of red, green and blue: ITU-R 601-2


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
        ValueError: For images without three channels.

    >>> images = jnp.zeros((2, 4, 4, 3), jnp.uint8)
    >>> keys = jax.random.split(jax.random.key(0), 2)
    >>> augmented = jax.jit(rand_augment, static_argnums=2)
    >>> augmented(images, keys, 9, jnp.full(3, 128, jnp.int32)).shape
    (2, 4, 4, 3)
    """
    if images.shape[-1] != 3:
        raise ValueError(
            f"channels={images.shape[-1]}, but expected 3 for RandAugment; leave it out"
        )
    table = jnp.asarray(argument_table(magnitude))
    operations, levels, negative = draw_operations(keys)
    pixels = images.astype(jnp.float32)
    for number in range(IN_A_ROW):
        chosen = operations[:, number], table[levels[:, number]], negative[:, number]
        pixels = jax.vmap(apply_operation, (0, 0, 0, 0, None))(pixels, *chosen, fill)
    return pixels.astype(jnp.uint8)


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
        return jax.random.bits(jax.random.fold_in(key, STREAM), (IN_A_ROW, 4), dtype=jnp.uint32)

    bits = jax.vmap(words)(keys)
    operations = (bits[..., 0] % jnp.uint32(len(OPERATIONS))).astype(jnp.int32)
    done, negative = bits[..., 1] >= jnp.uint32(2**31), bits[..., 3] >= jnp.uint32(2**31)
    levels = (bits[..., 2] % jnp.uint32(COUNT)).astype(jnp.int32)
    return jnp.where(done, operations, NOTHING), levels, negative


def magnitudes(mean: float) -> list[float]:
    """The values a magnitude has, in ascending order.

    timm draws it from a normal distribution and cuts it to 0 … 10. Here it is one of the 1,024
    values at the quantiles (i + ½)/1024 of that distribution, each as likely as any other, so that
    all that is drawn on the device is i.

    >>> found = magnitudes(9)
    >>> len(found), round(found[512], 2), found[-1]
    (1024, 9.0, 10.0)
    """
    normal = NormalDist(mean, DEVIATION)
    quantiles = [normal.inv_cdf((number + 0.5) / COUNT) for number in range(COUNT)]
    return [min(max(value, 0.0), LARGEST) for value in quantiles]


@cache
def argument_table(mean: float) -> Float32[np.ndarray, "magnitudes arguments"]:
    """What the operations take at each of the magnitudes, severity growing with it: `ARGUMENTS`.

    The step 2⁸⁻ᵇ of Posterize, which keeps b = 4 … 0 bits; Solarize's threshold, 256 … 0;
    SolarizeAdd's addition, 0 … 110; the factors of a blend away from the duller image, 1 … 1.9, and
    towards it, 1 … 0.1; cosine and sine of a rotation by 0 … 30°; a shear of 0 … 0.3; a shift of
    0 … 0.45 of the side.

    Source: timm, the functions `_…_level_to_arg` of `auto_augment`, "increasing" where there are
        two.

    >>> argument_table(9)[512, :3].tolist()
    [128.0, 26.0, 99.0]
    """
    rows = []
    for magnitude in magnitudes(mean):
        level = magnitude / LARGEST
        angle = math.radians(30 * level)
        posterize, solarize = 2 ** (4 + int(4 * level)), 256 - int(256 * level)
        factors = 1 + 0.9 * level, max(0.1, 1 - 0.9 * level)
        turned = math.cos(angle), math.sin(angle)
        rows.append(
            (posterize, solarize, int(110 * level), *factors, *turned, 0.3 * level, 0.45 * level)
        )
    table = np.array(rows, np.float32)
    table.setflags(write=False)
    return table


def apply_operation(
    image: Float32[Array, "height width 3"],
    operation: Int32[Array, ""],
    arguments: Float32[Array, " arguments"],
    negative: Bool[Array, ""],
    fill: Array,
) -> Float32[Array, "height width 3"]:
    """One operation on one image of whole numbers 0 … 255.

    Args:
        operation: Its number in `OPERATIONS`; `NOTHING` changes nothing.
        arguments: A row of `argument_table`.
        negative: Whether a map goes the other way, and a blend towards the duller image.
        fill: One value a channel.
    """
    step, threshold, addition, more, less, *affine = arguments
    pixels = _by_value(image, operation, step, threshold, addition)
    pixels = _blended(pixels, operation, jnp.where(negative, less, more))
    pixels = _warped(pixels, operation, jnp.where(negative, -1, 1), affine, fill)
    return jnp.floor(jnp.clip(pixels, 0, 255) + ERROR)


def _by_value(
    image: Array, operation: Array, step: Array, threshold: Array, addition: Array
) -> Array:
    """Source: Pillow, `ImageOps`; timm, `solarize_add`."""
    low, high = image.min((0, 1)), image.max((0, 1))
    contrast = (image - low) * 255 / jnp.maximum(high - low, 1)
    cases = (
        jnp.where(high > low, jnp.floor(contrast + ERROR), image),
        _equalized(image),
        255 - image,
        jnp.floor(image / step) * step,
        jnp.where(image < threshold, image, 255 - image),
        jnp.where(image < 128, jnp.minimum(image + addition, 255), image),
        image,
    )
    return lax.select_n(jnp.minimum(operation, BLENDS), *cases)


def _equalized(image: Array) -> Array:
    """Each channel's histogram made flat.

    With b_x the number of pixels darker than x, and the step s = ⌊b_max / 255⌋ of the brightest
    value there is: x → min(⌊(⌊s/2⌋ + b_x) / s⌋, 255); no change if s = 0.

    Source: Pillow, `ImageOps.equalize`.
    """
    levels = image.astype(jnp.int32)
    channels = jnp.arange(image.shape[-1])
    counts = jnp.zeros((len(channels), 256), jnp.int32).at[channels, levels].add(1)
    darker = jnp.cumsum(counts, axis=1) - counts
    step = darker[channels, levels.max((0, 1))] // 255
    flat = (step // 2 + darker[channels, levels]) // jnp.maximum(step, 1)
    return jnp.where(step > 0, jnp.minimum(flat, 255), levels).astype(image.dtype)


def _blended(image: Array, operation: Array, factor: Array) -> Array:
    """d + a (x - d) with a duller image d: grey, its mean, black, or smoothed.

    Source: Pillow, `ImageEnhance`.
    """
    light = jnp.round(sum(weight * image[..., n] for n, weight in enumerate(LIGHTNESS)))
    grey = jnp.broadcast_to(light[..., None], image.shape)
    mean = jnp.broadcast_to(jnp.floor(jnp.mean(light) + 0.5), image.shape)
    dullers = (grey, mean, jnp.zeros_like(image), _smoothed(image))
    duller = lax.select_n((operation - BLENDS).clip(0, 3), *dullers)
    blends = (operation >= BLENDS) & (operation < MAPS)
    moved = jnp.floor(jnp.clip(duller + factor * (image - duller), 0, 255) + ERROR)
    return jnp.where(blends, moved, image)


def _smoothed(image: Array) -> Array:
    """Mean over 3 × 3 pixels, of which the middle counts five times; the outermost pixels stay.

    Source: Pillow, `ImageFilter.SMOOTH`.
    """
    if min(image.shape[:2]) < 3:
        return image
    rows = image[:-2] + image[1:-1] + image[2:]
    sums = rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:] + 4 * image[1:-1, 1:-1]
    return image.at[1:-1, 1:-1].set(jnp.round(sums / 13))


def _warped(image: Array, operation: Array, sign: Array, affine: list[Array], fill: Array) -> Array:
    """Out(x, y) = image(a x + b y + c, d x + e y + f), bilinear.

    Pixels are squares of side 1 and have their middles at halves. Where the place is outside the
    image the result is the fill; beyond the last middle the last pixel counts. A rotation by θ is
    a = e = cos θ and d = -b = sin θ about the middle of the image.

    Source: Pillow, `Image.transform` with `AFFINE` and `BILINEAR`.
    """
    height, width, _ = image.shape
    cosine, sine, shear, shift = affine
    rotated, sheared_x, sheared_y, moved_x, moved_y = (operation == MAPS + n for n in range(5))
    along = jnp.where(rotated, cosine, 1.0)
    turned, none = jnp.where(rotated, sign * sine, 0.0), 0.0
    across = -turned + jnp.where(sheared_x, sign * shear, none)
    down = turned + jnp.where(sheared_y, sign * shear, none)
    right = jnp.where(moved_x, sign * shift * width, none)
    lower = jnp.where(moved_y, sign * shift * height, none)
    # Rotations turn about the middle, all others about the corner.
    middle_x, middle_y = jnp.where(rotated, width / 2, 0.0), jnp.where(rotated, height / 2, 0.0)
    x = jnp.arange(width, dtype=jnp.float32) + 0.5 - middle_x
    y = (jnp.arange(height, dtype=jnp.float32) + 0.5 - middle_y)[:, None]
    columns = along * x + across * y + middle_x + right
    rows = down * x + along * y + middle_y + lower
    inside = (columns >= 0) & (columns < width) & (rows >= 0) & (rows < height)

    def sampled(channel: Array) -> Array:
        return map_coordinates(channel, [rows - 0.5, columns - 0.5], 1, mode="nearest")

    warped = jax.vmap(sampled, in_axes=-1, out_axes=-1)(image)
    return jnp.where(inside[..., None], warped, fill)
