"""Every operation against Pillow as timm calls it, what is drawn, and what it depends on."""

import math
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image, ImageEnhance, ImageOps
from scipy.stats import norm

from convattn_lab.data.augmentation.rand_augment import (
    BLENDS,
    COUNT,
    MAPS,
    NOTHING,
    OPERATIONS,
    apply_operation,
    argument_table,
    draw_operations,
    magnitudes,
    rand_augment,
)

HEIGHT, WIDTH, COPIES = 26, 29, 24  # large enough for Equalize to do something
FILL = (200, 3, 77)
LEVELS = np.linspace(0, COUNT - 1, COPIES // 2).astype(int).repeat(2)  # the lowest and the highest
NEGATIVE = np.arange(COPIES) % 2 == 1


def by_pillow(pixels: np.ndarray, name: str, magnitude: float, negative: bool) -> np.ndarray:
    """The operation of this name at this magnitude, with timm's formulas in double precision."""
    image, level, sign = Image.fromarray(pixels), magnitude / 10, -1 if negative else 1
    addition, x, y = int(110 * level), image.width / 2, image.height / 2
    cosine, sine = (of(math.radians(30 * level)) for of in (math.cos, math.sin))
    sine, shear = sign * sine, sign * 0.3 * level
    affine = {
        "Rotate": (*(cosine, -sine, x - cosine * x + sine * y),
                   *(sine, cosine, y - sine * x - cosine * y)),
        "ShearX": (1, shear, 0, 0, 1, 0),
        "ShearY": (1, 0, 0, shear, 1, 0),
        "TranslateX": (1, 0, sign * 0.45 * level * image.width, 0, 1, 0),
        "TranslateY": (1, 0, 0, 0, 1, sign * 0.45 * level * image.height),
    }  # fmt: skip
    if name in affine:
        how = {"resample": Image.Resampling.BILINEAR, "fillcolor": FILL}
        return np.asarray(
            image.transform(image.size, Image.Transform.AFFINE, affine[name], **how), int
        )
    if name in OPERATIONS[BLENDS:MAPS]:
        factor = max(0.1, 1 - 0.9 * level) if negative else 1 + 0.9 * level
        return np.asarray(getattr(ImageEnhance, name)(image).enhance(factor), int)
    if name == "Posterize":  # of 0 bits, which Pillow refuses, nothing is left
        bits = 4 - int(4 * level)
        return np.asarray(ImageOps.posterize(image, bits) if bits else 0 * pixels, int)
    if name == "Solarize":
        return np.asarray(ImageOps.solarize(image, 256 - int(256 * level)), int)
    if name == "SolarizeAdd":
        table = [min(255, x + addition) if x < 128 else x for x in range(256)]
        return np.asarray(image.point(table * 3), int)
    return np.asarray(getattr(ImageOps, name.lower())(image), int)


def pictures() -> np.ndarray:
    """Noise of many ranges, one value, two values, smooth slopes, and almost one value."""
    rng = np.random.default_rng(0)
    actual = rng.integers(0, 256, (COPIES, HEIGHT, WIDTH, 3))
    for number in range(8, COPIES):
        low, high = sorted(rng.integers(0, 256, 2))
        actual[number] = rng.integers(low, high + 1, actual[number].shape)
    actual[8], actual[9] = 77, np.where(actual[9] > 100, 255, 254)
    slope = 5 * np.arange(HEIGHT)[:, None] + 4 * np.arange(WIDTH)
    actual[10:14] = slope[None, :, :, None] + np.array([0, 5, 9])
    actual[14] = 3
    actual[14, 0, 0] = 250
    return actual.astype(np.uint8)


PICTURES = pictures()


@cache
def applied() -> np.ndarray:
    """All operations, and none, on all pictures, `[16, pictures, height, width, 3]`."""
    per_image = jax.vmap(apply_operation, (0, None, 0, 0, None))
    every = jax.jit(jax.vmap(per_image, (None, 0, None, None, None)))
    operations = jnp.arange(NOTHING + 1, dtype=jnp.int32)
    arguments = PICTURES.astype(np.float32), operations, argument_table(9)[LEVELS], NEGATIVE
    return np.asarray(every(*arguments, jnp.array(FILL, jnp.float32))).astype(int)


def expected(name: str, *, further: float = 0.0) -> np.ndarray:
    """By Pillow, at magnitudes that are further by so much."""
    values = [magnitudes(9)[level] - further for level in LEVELS]
    cases = zip(PICTURES, values, NEGATIVE.tolist(), strict=True)
    return np.array([by_pillow(picture, name, *rest) for picture, *rest in cases])


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_is_pillows_to_one_grey_level(name) -> None:
    result = applied()[OPERATIONS.index(name)]
    difference = np.abs(result - expected(name))
    assert difference.max() <= 1
    assert (difference > 0).mean() < 0.02  # a fraction just below an integer
    if name not in ("AutoContrast", "Equalize", "Invert"):  # planted: another magnitude
        assert np.abs(result - expected(name, further=0.3)).max() > 1


def test_operations_are_told_apart() -> None:
    """Each differs from each other one, and from none."""
    every = applied().reshape(NOTHING + 1, -1)
    assert len(np.unique(every, axis=0)) == NOTHING + 1
    assert np.array_equal(applied()[NOTHING], PICTURES)


@cache
def augmented(seed: int = 0) -> np.ndarray:
    return np.asarray(RUN(PICTURES, jax.random.split(jax.random.key(seed), COPIES)))


RUN = jax.jit(lambda images, keys: rand_augment(images, keys, 9, jnp.array(FILL, jnp.int32)))


@pytest.mark.slow
def test_it_is_the_operations_that_were_drawn_one_after_the_other() -> None:
    keys = jax.random.split(jax.random.key(0), COPIES)
    operations, levels, negative = map(np.asarray, draw_operations(keys))
    assert (operations == NOTHING).any(axis=1).any()
    table, fill = argument_table(9), jnp.array(FILL, jnp.float32)
    one = jax.jit(apply_operation)
    for number, result in enumerate(augmented()):
        image = PICTURES[number].astype(np.float32)
        for which in range(2):
            at = number, which
            image = one(image, operations[at], table[levels[at]], negative[at], fill)
        assert np.abs(result.astype(int) - np.asarray(image)).max() <= 1
    assert not np.array_equal(augmented(1), augmented())


@pytest.mark.parametrize("mean", [9, 2.5])
def test_magnitudes_are_normal_and_cut(mean) -> None:
    """The fraction of magnitudes below x is within 1/2,048 of the distribution's, for every x."""
    actual = np.array(magnitudes(mean))
    assert actual.min() >= 0
    assert actual.max() <= 10
    assert (np.diff(actual) >= 0).all()
    for x in np.linspace(0.01, 9.99, 300):
        fraction = np.mean(actual <= x)
        assert abs(fraction - norm.cdf(x, mean, 0.5)) <= 0.5 / COUNT + 1e-12
        if 0.1 < fraction < 0.9:  # planted
            assert abs(fraction - norm.cdf(x, mean, 0.45)) > 0.5 / COUNT or abs(x - mean) < 0.05


@pytest.mark.slow
def test_an_image_is_the_same_in_another_place_and_without_64_bit_types() -> None:
    keys = jax.random.split(jax.random.key(0), COPIES)
    moved = RUN(np.roll(PICTURES, 5, axis=0), jnp.roll(keys, 5))
    assert np.array_equal(np.roll(moved, -5, axis=0), augmented())
    assert moved.dtype == jnp.uint8
    with jax.enable_x64(False):
        assert np.array_equal(RUN(PICTURES, keys), augmented())


def test_operations_magnitudes_and_directions_are_equally_likely() -> None:
    count = 60_000
    keys = jax.random.split(jax.random.key(3), count // 2)
    operations, levels, negative = map(np.ravel, jax.jit(draw_operations)(keys))
    # Each number of cases is binomial; 6 deviations are exceeded with probability < 10⁻⁸.
    assert abs((operations == NOTHING).sum() - count / 2) < 6 * (count / 4) ** 0.5
    assert abs(negative.sum() - count / 2) < 6 * (count / 4) ** 0.5
    counts = np.bincount(operations, minlength=NOTHING + 1)[:NOTHING]
    assert np.abs(counts - count / 30).max() < 6 * (count / 30) ** 0.5
    several = np.bincount(levels, minlength=COUNT)
    # χ² with COUNT - 1 degrees of freedom: mean COUNT - 1, variance twice that
    statistic = ((several - count / COUNT) ** 2 / (count / COUNT)).sum()
    assert abs(statistic - (COUNT - 1)) < 8 * (2 * COUNT) ** 0.5


def test_grey_images_are_refused() -> None:
    grey, keys = jnp.zeros((1, 4, 4, 1), jnp.uint8), jax.random.split(jax.random.key(0), 1)
    with pytest.raises(ValueError, match="channels=1"):
        rand_augment(grey, keys, 9, FILL)
