"""Batches with all of it: the order, the size, and what an augmentation depends on."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_within, gamma
from lab.data.test_batches import DATA, HEIGHT, KEY, LABELS, MEAN, PIXELS, STD, WIDTH, normalise

from convattn_lab.data.augmentation.mixing import mix
from convattn_lab.data.augmentation.rand_augment import rand_augment
from convattn_lab.data.augmentation.random_erasing import erase
from convattn_lab.data.augmentation.settings import Augmentation
from convattn_lab.data.batches import (
    draw_augmentation,
    example_keys,
    load_batch,
    resized,
)

SIDE = 9
INDICES = np.array([4, 0, 10, 9, 7, 1], np.int32)
BOTH = {"mixup": 0.8, "cutmix": 1.0}
DEIT = Augmentation(2, rand_augment=9.0, erasing=0.25, **BOTH)
ALONE = replace(DEIT, mixup=0.0, cutmix=0.0)


@partial(jax.jit, static_argnames="augmentation")
def load(key, epoch, indices, augmentation):
    keys = example_keys(key, epoch, indices)
    return load_batch(DATA, indices, keys, MEAN, STD, augmentation, resize=SIDE, classes=3)


@jax.jit
def in_pieces(key, epoch, indices):
    """Cropped by padding, then piece by piece."""
    keys = example_keys(key, epoch, indices)
    padded = jnp.pad(PIXELS[INDICES], ((0, 0), (2, 2), (2, 2), (0, 0)))

    def cut(image, corner, flip):
        window = jax.lax.dynamic_slice(image, (*corner, np.int32(0)), (HEIGHT, WIDTH, 3))
        return jnp.where(flip, window[:, ::-1], window)

    pixels = jax.vmap(cut)(padded, *draw_augmentation(keys, DEIT))
    fill = jnp.asarray([round(255 * mean) for mean in MEAN], jnp.int32)
    augmented = rand_augment(pixels, keys, 9.0, fill)
    erased = erase(resized(normalise(augmented), SIDE), keys, 0.25)
    return pixels, augmented, erased, mix(erased, DATA.labels[indices], keys[0], **BOTH, classes=3)


@pytest.mark.slow
def test_all_of_it_is_done_in_the_order_that_is_promised() -> None:
    pixels, augmented, erased, (expected, shares) = in_pieces(KEY, 4, INDICES)
    assert not np.array_equal(augmented, pixels)
    images, targets = load(KEY, 4, INDICES, DEIT)
    assert images.shape == (6, SIDE, SIDE, 3)
    assert images.dtype == targets.dtype == jnp.float32
    # The same sums of 6 + 7 + 2 terms, with weights of total < 3, in whatever order.
    bound = 3 * gamma(30, jnp.float32) * np.abs(normalise(np.full((2, 3), [[0], [255]]))).max() * 2
    assert_within(images, expected, bound)
    assert np.array_equal(targets, shares)
    with pytest.raises(AssertionError, match="too far"):  # planted
        assert_within(images, erased, bound)


@pytest.mark.slow
def test_unmixed_images_depend_on_seed_epoch_and_index_alone() -> None:
    first, labels = load(KEY, 3, INDICES, ALONE)
    assert np.array_equal(labels, LABELS[INDICES])
    moved, _ = load(KEY, 3, np.roll(INDICES, 2), ALONE)
    assert np.array_equal(np.roll(first, -2, axis=0), np.roll(moved, -4, axis=0))
    for key, epoch in ((KEY, 4), (jax.random.key(6), 3)):
        assert not np.array_equal(load(key, epoch, INDICES, ALONE)[0], first)


def test_evaluation_changes_the_size_and_nothing_else() -> None:
    images, labels = load_batch(DATA, jnp.asarray(INDICES), None, MEAN, STD, resize=SIDE)
    assert np.array_equal(images, resized(jnp.asarray(normalise(PIXELS[INDICES])), SIDE))
    assert np.array_equal(labels, LABELS[INDICES])
