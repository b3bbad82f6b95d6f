"""A validation set taken out of the training set, so that the test set chooses nothing."""

import math

import numpy as np
from jaxtyping import UInt64

from convattn.data.cifar10_slice import Images


def validation_split(images: Images, fraction: float, *, seed: int) -> tuple[Images, Images]:
    """Training and validation images, the same fraction of every class.

    Of the n images of class c the ⌊fraction · n + 1/2⌋ with the smallest random words become
    validation images, where the words are the first n of NumPy's Philox generator with the key
    (seed, c). That generator's output never changes, so the same seed gives the same split
    everywhere. Both parts keep the order of the given images.

    Args:
        images: what is divided.
        fraction: the part of each class that becomes validation images, between 0 and 1.
        seed: 0 … 2⁶⁴ - 1.

    Returns:
        The remaining training images, and the validation images; their arrays are read-only copies.

    Raises:
        ValueError: the fraction leaves a class without training or validation images, or the seed
            is out of range.

    >>> from convattn.data.cifar10_slice import load_cifar10_slice
    >>> train, validation = validation_split(load_cifar10_slice("train"), 0.1, seed=0)
    >>> len(train), len(validation), np.bincount(validation.labels).tolist()
    (1800, 200, [20, 20, 20, 20, 20, 20, 20, 20, 20, 20])
    """
    if not 0 < fraction < 1:
        raise ValueError(
            f"fraction={fraction}, but expected a number between 0 and 1, so that both parts hold "
            "something; 0.1 is usual"
        )
    chosen = np.zeros(len(images), bool)
    for label in np.unique(images.labels).tolist():
        members = np.flatnonzero(images.labels == label)
        count = math.floor(fraction * len(members) + 0.5)
        if not 0 < count < len(members):
            raise ValueError(
                f"fraction={fraction} takes {count} of the {len(members)} images of the class "
                f"{images.class_names[label]!r}, but expected at least one in both parts; choose "
                "another fraction, or add images of that class"
            )
        order = np.argsort(random_words(seed, label, len(members)), kind="stable")
        chosen[members[order[:count]]] = True
    train, validation = (
        Images(images.images[mask], images.labels[mask], images.class_names)
        for mask in (~chosen, chosen)
    )
    return train, validation


def random_words(seed: int, number: int, count: int) -> UInt64[np.ndarray, " count"]:
    """The first words of NumPy's Philox generator with the key (seed, number).

    Raises:
        ValueError: the seed is not one of 0 … 2⁶⁴ - 1.
    """
    if not 0 <= seed < 2**64:
        raise ValueError(f"seed={seed}, but expected 0 to 2**64 - 1")
    return np.random.Philox(key=np.array([seed, number], np.uint64)).random_raw(count)
