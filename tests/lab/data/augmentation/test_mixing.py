"""Mixup and CutMix: what is mixed, how labels follow, and the distributions of both."""

import math
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal
from scipy.stats import beta

from convattn_lab.data.augmentation.mixing import COUNT, draw_mixing, fractions, half_boxes, mix

BATCH, HEIGHT, WIDTH, CLASSES = 6, 9, 14, 4
RNG = np.random.default_rng(0)
# Integers of few bits: a fraction is a multiple of 2⁻¹⁶, so that float32 is exact.
IMAGES = RNG.integers(-100, 100, (BATCH, HEIGHT, WIDTH, 3)).astype(np.float32)
LABELS = np.array([0, 1, 1, 3, 2, 1], np.int32)
BOTH = {"mixup": 0.8, "cutmix": 1.0}


@partial(jax.jit, static_argnames=("mixup", "cutmix"))
def run(key, images=IMAGES, **alphas):
    mixing = draw_mixing(key, alphas["mixup"], alphas["cutmix"], HEIGHT, WIDTH)
    return mixing, mix(images, LABELS, key, classes=CLASSES, **alphas)


@pytest.mark.parametrize(
    "alphas", [BOTH, {"mixup": 0.2, "cutmix": 0.0}, {"mixup": 0.0, "cutmix": 1.0}]
)
@pytest.mark.quick(1)
def test_pictures_and_labels_are_mixed_with_those_at_the_mirrored_place(alphas) -> None:
    """In exact arithmetic, image by image."""
    kinds = set()
    for seed in range(12):
        (own, box, fraction), (mixed, targets) = run(jax.random.key(seed), **alphas)
        own, box, fraction = float(own), np.asarray(box), float(fraction)
        kinds.add("cut" if own == 1 else "mixed")
        exact = IMAGES.astype(float)
        expected = own * exact + (1 - own) * exact[::-1]
        expected = np.where(box[..., None], exact[::-1], expected)
        assert_equal(mixed, expected)
        if own == 1:  # the label's fraction is the fraction of the area that is left
            assert abs(fraction - (1 - box.mean())) <= 2**-23  # a reciprocal and a product
        else:
            assert fraction == own
            assert not box.any()
        named = np.eye(CLASSES)[LABELS]
        assert_equal(targets, fraction * named + float(np.float32(1 - fraction)) * named[::-1])
        assert_equal(targets.sum(axis=1), np.ones(BATCH))
        assert targets.dtype == jnp.float32
    expected_kinds = {"mixed"} if not alphas["cutmix"] else {"cut"} if not alphas["mixup"] else None
    assert kinds == (expected_kinds or {"cut", "mixed"})


@pytest.mark.parametrize("alpha", [0.8, 1.0, 0.2])
def test_fractions_are_of_the_beta_distribution(alpha) -> None:
    """Below any x there are as many as there should be, to 1/8,192 and the rounding by 2⁻¹⁷."""
    table = fractions(alpha).astype(float)
    assert (table * 2**16 == np.rint(table * 2**16)).all()
    assert 0 <= table.min() <= table.max() <= 1
    for x in (np.arange(300) + 0.5) / 300:
        low, high = (beta.cdf(x + moved * 2**-17, alpha, alpha) for moved in (-1, 1))
        fraction = np.mean(table <= x)
        assert low - 0.5001 / COUNT <= fraction <= high + 0.5001 / COUNT
    x = 0.25
    assert abs(np.mean(table <= x) - beta.cdf(x, alpha + 0.1, alpha + 0.1)) > 1 / COUNT  # planted


def test_boxes_have_timms_sides() -> None:
    for fraction, halves in zip(
        fractions(1.0).tolist(), half_boxes(1.0, HEIGHT, WIDTH), strict=True
    ):
        ratio = math.sqrt(1 - fraction)
        assert halves.tolist() == [int(HEIGHT * ratio) // 2, int(WIDTH * ratio) // 2]


@cache
def many(count: int = 20_000):
    keys = jax.random.split(jax.random.key(4), count)
    return jax.device_get(jax.jit(jax.vmap(lambda key: draw_mixing(key, 0.8, 1.0, 6, 7)))(keys))


def test_both_kinds_all_fractions_and_all_places_are_drawn() -> None:
    """Six deviations of a binomial count; places are those of the boxes' middles."""
    own, box, fraction = many()
    cut = (own == 1) & (fraction < 1)
    from_cutmix = own == 1  # a box may be empty; λ = 1 of Mixup has probability < 2⁻¹²
    assert abs(from_cutmix.sum() - len(own) / 2) < 6 * (len(own) / 4) ** 0.5 + len(own) / 4096
    assert np.abs(fraction[from_cutmix] - (1 - box[from_cutmix].mean(axis=(1, 2)))).max() <= 2**-23
    mixed = own[~from_cutmix]
    assert abs(mixed.mean() - 0.5) < 6 * (1 / 12 / len(mixed)) ** 0.5  # its variance is below 1/12
    assert cut.any()
    covered = np.zeros((6, 7))
    halves = half_boxes(1.0, 6, 7)
    for (rows, columns), times in zip(*np.unique(halves, axis=0, return_counts=True), strict=True):
        covers = [
            np.array(
                [sum(m - half <= position < m + half for m in range(n)) for position in range(n)]
            )
            / n
            for n, half in ((6, rows), (7, columns))
        ]
        covered += np.outer(*covers) * times / COUNT
    deviation = (covered * (1 - covered) / from_cutmix.sum()) ** 0.5
    assert (np.abs(box[from_cutmix].mean(axis=0) - covered) < 6 * deviation + 2**-11).all()


def test_64_bit_types_change_nothing() -> None:
    wide = run(jax.random.key(7), **BOTH)
    with jax.enable_x64(False):
        narrow = run(jax.random.key(7), **BOTH)
    for one, other in zip(jax.tree.leaves(wide), jax.tree.leaves(narrow), strict=True):
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)
