"""Pairs of labelled images, half of them of one class and half of two."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int, UInt8

from convattn.data.cifar10_slice import Images
from convattn.operators.integers import as_integer
from convattn_lab.data.split import random_words

CLASS_NAMES = ("different", "same")
DIFFERENT, SAME = 0, 1


@dataclass(frozen=True, eq=False)
class ImagePairs:
    """Pairs out of a set of images.

    Attributes:
        images: The set.
        members: Which images make up each pair, x before z.
        labels: 1 for a pair of one class, else 0.
    """

    images: Images
    members: Int[np.ndarray, "pairs 2"]
    labels: UInt8[np.ndarray, " pairs"]

    def __len__(self) -> int:
        """The number of pairs."""
        return len(self.labels)


def draw_pairs(images: Images, *, rounds: int = 1, seed: int = 0) -> ImagePairs:
    """In each round the images are paired off, so that none is in two pairs of one round.

    A round of n images has ⌊n/4⌋ pairs of one class and as many of two, or as many as the sizes of
    the classes allow. All is drawn from NumPy's Philox generator with the key (seed, round), whose
    output never changes.

    Args:
        rounds: How many; with one, pairs share no image, so that their results are independent.
        seed: 0 … 2⁶⁴ - 1.

    Raises:
        ValueError: For a seed out of its range, and for images that have no such pairs.

    >>> from convattn.data.cifar10_slice import load_cifar10_slice
    >>> pairs = draw_pairs(load_cifar10_slice("test"))
    >>> len(pairs), int(pairs.labels.sum())
    (250, 125)
    """
    rounds = as_integer(rounds, "rounds", 1)
    members, labels = [], []
    for number in range(rounds):
        same, different = one_round(np.asarray(images.labels), number, seed)
        members += [same, different]
        labels += [np.full(len(same), SAME), np.full(len(different), DIFFERENT)]
    return ImagePairs(images, np.concatenate(members), np.concatenate(labels).astype(np.uint8))


def one_round(
    labels: UInt8[np.ndarray, " count"], number: int, seed: int
) -> tuple[Int[np.ndarray, "same 2"], Int[np.ndarray, "different 2"]]:
    """The pairs of one class and those of two; as many of the one as of the other."""
    words = random_words(seed, number, 2 * len(labels))
    order = np.argsort(words[: len(labels)], kind="stable")
    members = [order[labels[order] == name] for name in np.unique(labels)]
    counts = pairs_of_classes([len(member) for member in members])
    target = sum(counts)
    same = [member[: 2 * n].reshape(n, 2) for member, n in zip(members, counts, strict=True)]
    left = [member[2 * n :] for member, n in zip(members, counts, strict=True)]
    for _ in range(sum(map(len, left)) - 2 * target):  # who stays alone is of the largest class
        largest = max(range(len(left)), key=lambda index: len(left[index]))
        left[largest] = left[largest][:-1]
    rest = np.concatenate(left)
    rest = rest[np.argsort(words[len(labels) :][: len(rest)], kind="stable")]
    return np.concatenate(same), parted(rest.reshape(target, 2), labels)


def pairs_of_classes(sizes: list[int]) -> list[int]:
    """How many pairs of each class, the most of which there can be as many of two classes.

    They are taken, one after the other, from the class with most images left.

    Raises:
        ValueError: Where there can be none.

    >>> pairs_of_classes([50] * 10)
    [13, 13, 13, 13, 13, 12, 12, 12, 12, 12]
    """
    for target in range(sum(sizes) // 4, 0, -1):
        left = list(sizes)
        for _ in range(target):
            left[left.index(max(left))] -= 2
        if min(left) >= 0 and sum(left) - max(left) >= target:
            return [(size - rest) // 2 for size, rest in zip(sizes, left, strict=True)]
    raise ValueError(
        f"classes of {sizes} images have no pairs of one class and as many of two; take more "
        "images, or classes of more equal size"
    )


def parted(
    pairs: Int[np.ndarray, "count 2"], labels: UInt8[np.ndarray, " images"]
) -> Int[np.ndarray, "count 2"]:
    """The same images in pairs of two classes: a pair of one swaps its second image with the next
    pair where that helps.

    There is one if no class has more than half of the images: otherwise each pair would hold the
    class of that one, which holds it twice. The swap leaves two pairs of two classes.

    Raises:
        ValueError: Where there is none.

    >>> parted(np.array([[0, 1], [2, 3]]), np.array([5, 5, 6, 6], np.uint8)).tolist()
    [[0, 3], [2, 1]]
    """
    pairs = pairs.copy()
    for index in range(len(pairs)):
        one = labels[pairs[index]]
        if one[0] != one[1]:
            continue
        others = labels[pairs]
        helps = np.flatnonzero((others[:, 1] != one[0]) & (others[:, 0] != one[1]))
        if not len(helps):
            raise ValueError(
                f"too many images of one class (label {int(one[0])}) to pair each with one of "
                "another; take classes of more equal size"
            )
        other = helps[np.searchsorted(helps, index) % len(helps)]
        pairs[[index, other], 1] = pairs[[other, index], 1]
    return pairs
