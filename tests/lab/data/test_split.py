from dataclasses import replace

import numpy as np
import pytest

from convattn.data.cifar10_slice import Images
from convattn_lab.data import validation_split


def numbered(*counts: int) -> Images:
    """Images whose first pixel is their own number, classes mixed by the seed 0."""
    labels = np.repeat(np.arange(len(counts), dtype=np.uint8), counts)
    labels = np.random.default_rng(0).permutation(labels)
    images = np.zeros((len(labels), 1, 1, 3), np.uint8)
    images[:, 0, 0, 0] = np.arange(len(labels))
    return Images(images, labels, tuple("abcdefgh"[: len(counts)]))


def numbers(images: Images) -> list[int]:
    return images.images[:, 0, 0, 0].tolist()


def test_parts_are_disjoint_complete_in_order_and_keep_their_labels() -> None:
    images = numbered(40, 31, 12)
    train, validation = validation_split(images, 0.2, seed=3)
    assert sorted(numbers(train) + numbers(validation)) == list(range(83))
    for split in (train, validation):
        assert numbers(split) == sorted(numbers(split))
        assert np.array_equal(split.labels, images.labels[numbers(split)])
        assert split.class_names == images.class_names


@pytest.mark.parametrize(
    ("fraction", "expected"), [(0.2, [8, 6, 2]), (0.125, [5, 4, 2]), (0.9, [36, 28, 11])]
)
def test_every_class_gives_its_rounded_fraction(fraction, expected) -> None:
    _, validation = validation_split(numbered(40, 31, 12), fraction, seed=1)
    assert np.bincount(validation.labels).tolist() == expected


def test_the_seed_decides() -> None:
    images = numbered(40, 31, 12)
    first, again, other = (
        numbers(validation_split(images, 0.2, seed=seed)[1]) for seed in (5, 5, 6)
    )
    assert first == again != other


def test_the_split_is_the_same_in_every_version() -> None:
    images = replace(numbered(10, 10), labels=np.repeat(np.array([0, 1], np.uint8), 10))
    _, validation = validation_split(images, 0.3, seed=2**64 - 1)
    assert numbers(validation) == [0, 8, 9, 13, 17, 18]


@pytest.mark.parametrize(
    ("counts", "fraction", "message"),
    [
        *(((4, 4), fraction, "fraction") for fraction in (0.0, 1.0, -0.1, 1.5, float("nan"))),
        ((40, 4), 0.1, "takes 0 of the 4 images of the class 'b'"),
        ((40, 4), 0.9, "takes 4 of the 4 images of the class 'b'"),
        ((1, 40), 0.5, "takes 1 of the 1 images of the class 'a'"),
    ],
)
def test_fractions_that_are_none_or_leave_a_class_nothing_are_refused(
    counts, fraction, message
) -> None:
    with pytest.raises(ValueError, match=message):
        validation_split(numbered(*counts), fraction, seed=0)
