"""The boxes' sizes and places, and the noise in them."""

import math
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from convattn_lab.data.augmentation.random_erasing import box_sizes, erase

COUNT, HEIGHT, WIDTH = 2000, 8, 12
KEYS = jax.random.split(jax.random.key(2), COUNT)
RUN = jax.jit(erase, static_argnums=2)


@cache
def erased(probability: float = 1.0) -> np.ndarray:
    return np.asarray(RUN(jnp.zeros((COUNT, HEIGHT, WIDTH, 2), jnp.float32), KEYS, probability))


def test_each_box_is_a_rectangle_of_noise_that_has_a_size_of_the_table() -> None:
    sizes = {tuple(size) for size in box_sizes(HEIGHT, WIDTH).tolist()}
    erased_sizes = set()
    for image in erased():
        changed = (image != 0).all(axis=-1)
        assert np.array_equal(changed, (image != 0).any(axis=-1))
        rows, columns = changed.any(axis=1), changed.any(axis=0)
        assert np.array_equal(changed, rows[:, None] & columns)
        for side in (rows, columns):
            positions = np.flatnonzero(side)
            assert np.array_equal(positions, np.arange(positions[0], positions[-1] + 1))
        erased_sizes.add((int(rows.sum()), int(columns.sum())))
    assert erased_sizes <= sizes
    assert len(erased_sizes) > len(sizes) / 2


def test_sizes_are_as_likely_as_by_attempts_that_never_end() -> None:
    """Of 64 × 64 middles those that fit; by timm's formula written out once more."""
    expected = []
    for area in range(64):
        for aspect in range(64):
            target = (0.02 + (1 / 3 - 0.02) * (area + 0.5) / 64) * HEIGHT * WIDTH
            logarithm = math.log(0.3) + (math.log(1 / 0.3) - math.log(0.3)) * (aspect + 0.5) / 64
            rows = round(math.sqrt(target * math.exp(logarithm)))
            columns = round(math.sqrt(target / math.exp(logarithm)))
            if rows < HEIGHT and columns < WIDTH:
                expected.append([rows, columns])
    assert sorted(box_sizes(HEIGHT, WIDTH).tolist()) == sorted(expected)
    assert len(expected) < 64**2  # some did not fit


def test_sizes_and_places_are_drawn_as_the_table_has_them() -> None:
    """The mean area, and how often a pixel is erased: within six deviations."""
    changed = (erased() != 0).all(axis=-1)
    areas = box_sizes(HEIGHT, WIDTH).prod(axis=1)
    result = changed.sum(axis=(1, 2)).mean()
    assert abs(result - areas.mean()) < 6 * areas.std() / COUNT**0.5
    expected = np.zeros((HEIGHT, WIDTH))
    for rows, columns in box_sizes(HEIGHT, WIDTH).tolist():
        covers = [
            np.array(
                [
                    sum(f <= position < f + side for f in range(n - side + 1))
                    for position in range(n)
                ]
            )
            / (n - side + 1)
            for n, side in ((HEIGHT, rows), (WIDTH, columns))
        ]
        expected += np.outer(*covers) / len(areas)
    deviation = (expected * (1 - expected) / COUNT) ** 0.5
    assert (np.abs(changed.mean(axis=0) - expected) < 6 * deviation).all()
    even = np.abs(changed.mean(axis=0) - expected.mean())  # planted
    assert (even > 6 * deviation).any()


def test_the_noise_is_normal_and_its_own_for_each_pixel() -> None:
    noise = erased()[erased() != 0]
    count = len(noise)
    assert abs(noise.mean()) < 6 / count**0.5
    assert abs(noise.var() - 1) < 6 * (2 / count) ** 0.5
    assert len(np.unique(noise)) > 0.95 * count


def test_so_many_images_are_erased() -> None:
    changed = (erased(0.25) != 0).any(axis=(1, 2, 3))
    assert abs(changed.sum() - COUNT / 4) < 6 * (COUNT * 3 / 16) ** 0.5
    assert np.array_equal(erased(0.25)[changed], erased()[changed])


@pytest.mark.slow
def test_other_pixels_stay_and_nothing_depends_on_the_place_or_64_bit_types() -> None:
    shape = (3, HEIGHT, WIDTH, 2)
    images = jnp.arange(math.prod(shape), dtype=jnp.float32).reshape(shape)
    result = np.asarray(RUN(images, KEYS[:3], 1.0))
    box = (erased()[:3] != 0).all(axis=-1, keepdims=True)
    assert np.array_equal(result, np.where(box, erased()[:3], images))
    assert not box.all()
    assert np.array_equal(RUN(images[::-1], KEYS[:3][::-1], 1.0)[::-1], result)
    with jax.enable_x64(False):
        assert np.array_equal(RUN(images, KEYS[:3], 1.0), result)


def test_an_image_without_room_is_refused() -> None:
    with pytest.raises(ValueError, match="no box is smaller than 1×1000 pixels on both sides"):
        erase(jnp.zeros((1, 1, 1000, 3), jnp.float32), KEYS[:1], 1.0)
