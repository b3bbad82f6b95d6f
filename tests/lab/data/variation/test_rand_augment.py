"""Every operation against Pillow, what is drawn, and what it depends on."""

import dataclasses
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from lab.data.variation.pillow_operations import FILL, by_pillow

from convattn.lab.data.variation.magnitudes import COUNT, argument_table
from convattn.lab.data.variation.rand_augment import (
    NOTHING,
    OPERATIONS,
    apply_operation,
    draw_operations,
    rand_augment,
)

HEIGHT, WIDTH, EACH = 26, 29, 24  # large enough for Equalize to do something
TABLE = argument_table(9, HEIGHT, WIDTH)
PLACES = np.linspace(0, COUNT - 1, EACH // 2).astype(int).repeat(2)  # the lowest and the highest
NEGATIVE = np.arange(EACH) % 2 == 1


def pictures() -> np.ndarray:
    """Noise of many ranges, one value, two values, smooth slopes, and almost one value."""
    rng = np.random.default_rng(0)
    found = rng.integers(0, 256, (EACH, HEIGHT, WIDTH, 3))
    for number in range(8, EACH):
        low, high = sorted(rng.integers(0, 256, 2))
        found[number] = rng.integers(low, high + 1, found[number].shape)
    found[8], found[9] = 77, np.where(found[9] > 100, 255, 254)
    slope = 5 * np.arange(HEIGHT)[:, None] + 4 * np.arange(WIDTH)
    found[10:14] = slope[None, :, :, None] + np.array([0, 5, 9])
    found[14] = 3
    found[14, 0, 0] = 250
    return found.astype(np.uint8)


PICTURES = pictures()


@cache
def found() -> np.ndarray:
    """All operations, and none, on all pictures, `[16, pictures, height, width, 3]`."""

    def one(image, operation, place, negative):
        given = jax.tree.map(lambda of: jnp.asarray(of)[place], TABLE)
        fill = jnp.array(FILL, jnp.int32)
        return apply_operation(image, operation, given, negative, fill)

    each = jax.vmap(one, (0, None, 0, 0))
    every = jax.jit(jax.vmap(each, (None, 0, None, None)))
    operations = jnp.arange(NOTHING + 1, dtype=jnp.int32)
    return np.asarray(every(PICTURES.astype(np.int32), operations, PLACES, NEGATIVE))


def expected(name: str, *, shifted: int = 0) -> np.ndarray:
    """By Pillow; with the arguments of the picture before if shifted by 1."""
    results = []
    for number, picture in enumerate(PICTURES):
        row = {f.name: int(getattr(TABLE, f.name)[PLACES[number]]) for f in ARGUMENTS}
        row = {key: value + shifted * PLANTED.get(key, 0) for key, value in row.items()}
        results.append(by_pillow(picture, name, row, bool(NEGATIVE[number])))
    return np.array(results, int)


ARGUMENTS = dataclasses.fields(TABLE)
# The smallest change of an argument that moves a bit.
PLANTED = {
    **{"bits": 1, "threshold": -20, "addition": 1, "more": 4, "less": 4},
    **{"cosine": 0, "sine": 2000, "shear": 64, "across": 64, "down": 64},
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_is_pillows(name) -> None:
    """Exactly; a rotated value may differ by 1, since its weights are rounded to 2⁻¹¹."""
    allowed = 1 if name == "Rotate" else 0
    difference = np.abs(found()[OPERATIONS.index(name)] - expected(name))
    assert difference.max() <= allowed
    assert (difference > 0).mean() < 0.02  # a fraction just below an integer


@pytest.mark.parametrize(
    "name", [n for n in OPERATIONS if n not in ("AutoContrast", "Equalize", "Invert")]
)
def test_another_argument_is_noticed(name) -> None:
    difference = np.abs(found()[OPERATIONS.index(name)] - expected(name, shifted=1))
    assert difference.max() > (1 if name == "Rotate" else 0)


def test_operations_are_told_apart() -> None:
    """Each differs from each other one, and from none."""
    every = found().reshape(NOTHING + 1, -1)
    assert len(np.unique(every, axis=0)) == NOTHING + 1
    assert np.array_equal(found()[NOTHING], PICTURES)


@cache
def augmented(seed: int = 0) -> np.ndarray:
    return np.asarray(RUN(PICTURES, jax.random.split(jax.random.key(seed), EACH)))


RUN = jax.jit(lambda images, keys: rand_augment(images, keys, 9, jnp.array(FILL, jnp.int32)))


def test_it_is_the_operations_that_were_drawn_one_after_the_other() -> None:
    keys = jax.random.split(jax.random.key(0), EACH)
    operations, places, negative = map(np.asarray, draw_operations(keys))
    assert (operations == NOTHING).any(axis=1).any()
    compared = 0
    for number, result in enumerate(augmented()):
        image = PICTURES[number]
        for which, place, against in zip(
            operations[number], places[number], negative[number], strict=True
        ):
            if which == NOTHING:
                continue
            row = {f.name: int(getattr(TABLE, f.name)[place]) for f in ARGUMENTS}
            image = by_pillow(image, OPERATIONS[which], row, bool(against))
        if OPERATIONS.index("Rotate") not in operations[number]:
            assert np.array_equal(result, image)
            compared += 1
    assert compared > 12
    assert not np.array_equal(augmented(1), augmented())


def test_an_image_is_the_same_in_another_place_and_without_64_bit_types() -> None:
    keys = jax.random.split(jax.random.key(0), EACH)
    moved = RUN(np.roll(PICTURES, 5, axis=0), jnp.roll(keys, 5))
    assert np.array_equal(np.roll(moved, -5, axis=0), augmented())
    assert moved.dtype == jnp.uint8
    with jax.enable_x64(False):
        assert np.array_equal(RUN(PICTURES, keys), augmented())


def test_operations_magnitudes_and_directions_are_equally_likely() -> None:
    count = 60_000
    keys = jax.random.split(jax.random.key(3), count // 2)
    operations, places, negative = map(np.ravel, jax.jit(draw_operations)(keys))
    # Each number of cases is binomial; 6 deviations are exceeded with probability < 10⁻⁸.
    assert abs((operations == NOTHING).sum() - count / 2) < 6 * (count / 4) ** 0.5
    assert abs(negative.sum() - count / 2) < 6 * (count / 4) ** 0.5
    each = np.bincount(operations, minlength=NOTHING + 1)[:NOTHING]
    assert np.abs(each - count / 30).max() < 6 * (count / 30) ** 0.5
    several = np.bincount(places, minlength=COUNT)
    # χ² with COUNT - 1 degrees of freedom: mean COUNT - 1, variance twice that
    statistic = ((several - count / COUNT) ** 2 / (count / COUNT)).sum()
    assert abs(statistic - (COUNT - 1)) < 8 * (2 * COUNT) ** 0.5


@pytest.mark.parametrize("shape", [(1, 4, 4, 1), (1, 1, 2049, 3)])
def test_images_it_was_not_made_for_are_refused(shape) -> None:
    with pytest.raises(ValueError, match="three channels and sides of up to 2048 pixels"):
        rand_augment(jnp.zeros(shape, jnp.uint8), jax.random.split(jax.random.key(0), 1), 9, FILL)
