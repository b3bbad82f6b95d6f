from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from convattn.data import Images
from convattn_lab.data.augmentation.settings import Augmentation
from convattn_lab.data.batches import (
    draw_augmentation,
    epoch_order,
    example_keys,
    load_batch,
    put_on_device,
)

COUNT, HEIGHT, WIDTH = 11, 6, 7
PIXELS = np.random.default_rng(0).integers(0, 256, (COUNT, HEIGHT, WIDTH, 3), np.uint8)
LABELS = np.arange(COUNT, dtype=np.uint8) % 3
DATA = put_on_device(Images(PIXELS, LABELS, ("a", "b", "c")))
MEAN, STD = np.array([0.49, 0.48, 0.45]), np.array([0.247, 0.243, 0.262])
KEY = jax.random.key(5)
CROP = Augmentation(crop=2)
INDICES = np.array([4, 0, 10, 4, 7, 1], np.int32)


@partial(jax.jit, static_argnames=("augmentation", "dtype"))
def load(key, epoch, indices, augmentation=None, dtype=jnp.float32):
    keys = example_keys(key, epoch, indices)
    return load_batch(DATA, indices, keys, MEAN, STD, augmentation, dtype)


@partial(jax.jit, static_argnames="augmentation")
def draw(key, epoch, indices, augmentation):
    return draw_augmentation(example_keys(key, epoch, indices), augmentation)


def normalise(pixels: np.ndarray) -> np.ndarray:
    shift = (255 * MEAN).astype(np.float32)
    scale = (1 / (255 * STD)).astype(np.float32)
    return (pixels.astype(np.float32) - shift) * scale


def cropped(image: np.ndarray, corner: np.ndarray, flip: bool, crop: int) -> np.ndarray:
    """Black around it, cut out, mirrored: one step after the other."""
    padded = np.pad(image, ((crop, crop), (crop, crop), (0, 0)))
    row, column = corner
    cut = padded[row : row + HEIGHT, column : column + WIDTH]
    return cut[:, ::-1] if flip else cut


def test_without_augmentation_it_is_normalisation_bit_for_bit() -> None:
    images, labels = load(KEY, 0, INDICES)
    assert images.dtype == jnp.float32
    assert np.array_equal(images, normalise(PIXELS[INDICES]))
    assert np.array_equal(labels, LABELS[INDICES])
    keyless, _ = load_batch(DATA, jnp.asarray(INDICES), None, MEAN, STD)
    assert np.array_equal(keyless, images)


def test_every_grey_level_is_normalised_bit_for_bit() -> None:
    levels = np.arange(256, dtype=np.uint8).repeat(3).reshape(1, 16, 16, 3)
    data = put_on_device(Images(levels, np.zeros(1, np.uint8), ("a",)))
    run = jax.jit(lambda data, indices: load_batch(data, indices, None, MEAN, STD))
    images, _ = run(data, jnp.zeros(1, jnp.int32))
    assert np.array_equal(images, normalise(levels))
    # Each of three roundings to float32 (shift, scale, and so on) is of at most 2⁻²⁴: the shift's
    # is of a number below 255, the others are relative.
    direct = (levels / 255 - MEAN) / STD
    bound = 2.0**-24 * (255 / (255 * STD) + 3.01 * np.abs(direct))
    assert (np.abs(np.asarray(images, np.float64) - direct) <= bound).all()


@pytest.mark.quick(1)
@pytest.mark.parametrize("augmentation", [CROP, Augmentation(crop=0), Augmentation(2, flip=False)])
def test_it_is_the_crop_and_the_flip_that_were_drawn(augmentation) -> None:
    both = set()
    for epoch in range(4):
        corners, flips = draw(KEY, epoch, INDICES, augmentation)
        images, labels = load(KEY, epoch, INDICES, augmentation)
        for image, index, corner, flip in zip(images, INDICES, corners, flips, strict=True):
            expected = cropped(PIXELS[index], np.asarray(corner), bool(flip), augmentation.crop)
            assert np.array_equal(image, normalise(expected))
            both.add(bool(flip))
        assert np.array_equal(labels, LABELS[INDICES])
    assert both == ({False, True} if augmentation.flip else {False})


def test_bfloat16_is_the_float32_result_rounded_once() -> None:
    images, _ = load(KEY, 1, INDICES, CROP, jnp.bfloat16)
    exact, _ = load(KEY, 1, INDICES, CROP)
    assert images.dtype == jnp.bfloat16
    assert np.array_equal(images, np.asarray(exact).astype(jnp.bfloat16))


def test_an_image_has_the_same_crop_in_every_batch_and_place() -> None:
    order = np.array([4, 0, 10, 7, 1, 2], np.int32)
    first, _ = load(KEY, 3, order, CROP)
    moved, _ = load(KEY, 3, np.roll(order, 2), CROP)
    assert np.array_equal(np.roll(first, 2, axis=0), moved)
    alone, _ = load(KEY, 3, np.array([10], np.int32), CROP)
    assert np.array_equal(alone[0], first[2])


def test_the_run_the_epoch_and_the_index_each_change_the_draw() -> None:
    everything = np.arange(6, dtype=np.int32)

    def crops(key, epoch, indices):
        corners, flips = draw(key, epoch, indices, CROP)
        return [*np.asarray(corners).ravel().tolist(), *np.asarray(flips).tolist()]

    base = crops(KEY, 0, everything)
    assert crops(KEY, 0, everything) == base
    assert crops(KEY, 1, everything) != base
    assert crops(jax.random.key(6), 0, everything) != base
    assert crops(KEY, 0, everything + 1) != base


def test_all_corners_and_both_flips_are_reached_about_equally_often() -> None:
    crop = Augmentation(crop=4)
    corners, flips = draw(KEY, 0, np.arange(50_000, dtype=np.int32), crop)
    counts = np.zeros((9, 9, 2), int)
    np.add.at(counts, (*np.asarray(corners).T, np.asarray(flips).astype(int)), 1)
    assert counts.min() > 0
    # χ² with 161 degrees of freedom: mean 161, variance 322; beyond 8 deviations by < 10⁻¹⁰
    expected = 50_000 / 162
    statistic = ((counts - expected) ** 2 / expected).sum()
    assert abs(statistic - 161) < 8 * 322**0.5


def test_each_epoch_takes_every_image_once_in_its_own_order() -> None:
    order = jax.jit(epoch_order, static_argnums=2)
    orders = [np.asarray(order(KEY, epoch, COUNT)).tolist() for epoch in range(3)]
    assert all(sorted(order) == list(range(COUNT)) for order in orders)
    assert len({tuple(order) for order in orders}) == 3
    assert order(KEY, 0, COUNT).tolist() == orders[0]
    assert order(jax.random.key(6), 0, COUNT).tolist() != orders[0]
    assert order(KEY, 0, COUNT).dtype == jnp.int32


@pytest.mark.slow
def test_nothing_depends_on_64_bit_types() -> None:
    def everything():
        batch = load(KEY, 2, INDICES, CROP)
        return draw(KEY, 2, INDICES, CROP), epoch_order(KEY, 2, COUNT), batch

    wide = everything()
    with jax.enable_x64(False):
        narrow = everything()
    for one, other in zip(jax.tree.leaves(wide), jax.tree.leaves(narrow), strict=True):
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)


def test_old_keys_draw_the_same() -> None:
    old = jax.random.key_data(KEY)
    assert np.array_equal(epoch_order(old, 1, COUNT), epoch_order(KEY, 1, COUNT))
    assert jax.tree.all(
        jax.tree.map(np.array_equal, draw(old, 1, INDICES, CROP), draw(KEY, 1, INDICES, CROP))
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"augmentation": CROP, "keys": None}, "keys for 0 of 3 images"),
        ({"augmentation": CROP, "keys": jax.random.split(KEY, 1)}, "keys for 1 of 3 images"),
        ({"augmentation": Augmentation(6)}, "crop=6, .* 6×7 pixels"),
        ({"augmentation": Augmentation(crop=0, cutmix=1.0)}, "classes=None"),
    ],
)
@pytest.mark.quick(2)
def test_other_arguments_are_refused(changes, message) -> None:
    indices = jnp.arange(3)
    keys = example_keys(KEY, 0, indices)
    arguments = {"indices": indices, "keys": keys, "mean": MEAN, "std": STD, **changes}
    with pytest.raises(ValueError, match=message):
        load_batch(DATA, **arguments)


def test_an_index_beyond_the_set_takes_the_nearest_image() -> None:
    _, labels = load_batch(DATA, jnp.array([COUNT + 5, -1, -COUNT - 5]), None, MEAN, STD)
    assert labels.tolist() == LABELS[[-1, -1, 0]].tolist()


@pytest.mark.parametrize(("name", "value"), [("rand_augment", 10.5), ("crop", 1.5)])
def test_augmentations_have_ranges(name, value) -> None:
    """They are declared; what declarations refuse, tests/lab/test_settings.py has."""
    with pytest.raises(ValueError, match=f"{name}={value}, but expected"):
        Augmentation(**{name: value})
