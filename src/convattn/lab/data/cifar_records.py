"""What the official binary and Python versions of CIFAR-10 and CIFAR-100 share.

Both store an image as the red, the green and the blue plane of 32×32 bytes, row by row, and divide
CIFAR-10 into five training batches of equal size and a test batch.

Source: https://www.cs.toronto.edu/~kriz/cifar.html.
"""

from collections.abc import Iterable, Mapping

import numpy as np
from jaxtyping import UInt8

from convattn.ledger.images.cifar10_slice import SIDE, Images
from convattn.ledger.images.integrity import DataIntegrityError

PIXELS = 3 * SIDE * SIDE
CLASSES = {"fine": 100, "coarse": 20}  # of CIFAR-100
TRAINING_BATCHES = tuple(f"data_batch_{number}" for number in range(1, 6))
TEST_BATCH = "test_batch"


def images_from_planes(
    planes: UInt8[np.ndarray, "count 3072"],
) -> UInt8[np.ndarray, "count 32 32 3"]:
    """Read-only images, channels last, from rows of a red, a green and a blue plane.

    Args:
        planes: any bytes, ``[count, 3072]``.

    >>> row = np.repeat(np.array([1, 2, 3], np.uint8), 1024)
    >>> images_from_planes(row[None])[0, 31, 0].tolist()
    [1, 2, 3]
    """
    channels_first = planes.reshape(-1, 3, SIDE, SIDE)
    images = np.ascontiguousarray(channels_first.transpose(0, 2, 3, 1))
    images.setflags(write=False)
    return images


def labelled(
    name: str,
    images: UInt8[np.ndarray, "count height width 3"],
    labels: np.ndarray,
    class_names: tuple[str, ...],
) -> Images:
    """Images with labels, after the labels were checked.

    Args:
        name: the file, for the message.
        images: ``[count, height, width, 3]``.
        labels: integers, ``[count]``.
        class_names: the name of each class.

    Raises:
        DataIntegrityError: a label isn't in 0 … classes - 1.

    >>> two = labelled("x", np.zeros((1, 2, 2, 3), np.uint8), np.array([1]), ("cat", "dog"))
    >>> two.class_names[two.labels[0]]
    'dog'
    """
    wrong = np.flatnonzero((labels < 0) | (labels >= len(class_names)))
    if wrong.size:
        raise DataIntegrityError(
            f"{name}: image {wrong[0]} has the label {labels[wrong[0]]}, but 0 to "
            f"{len(class_names) - 1} were expected; is it another data set, or was it changed?"
        )
    checked = labels.astype(np.uint8)
    checked.setflags(write=False)
    return Images(images, checked, class_names)


def require(files: Mapping[str, bytes], names: tuple[str, ...]) -> None:
    """Nothing, if all these files are there.

    Args:
        files: what was found.
        names: what must be among it.

    Raises:
        DataIntegrityError: some are missing; the message lists them.

    >>> require({"train.bin": b""}, ("train.bin",))
    """
    missing = [name for name in names if name not in files]
    if missing:
        raise DataIntegrityError(
            f"{', '.join(missing)}: missing, though {', '.join(n for n in names if n in files)} "
            "is there; the whole set was expected: copy or download the rest"
        )


def require_equal_batches(sizes: Mapping[str, int]) -> None:
    """Nothing, if all training batches hold equally many records, as the official ones do.

    Args:
        sizes: the number of records of each file.

    Raises:
        DataIntegrityError: they differ, so that one was probably cut short between two records.

    >>> require_equal_batches({"a": 5, "b": 5})
    """
    if len(set(sizes.values())) > 1:
        found = ", ".join(f"{name} has {size:,}" for name, size in sizes.items())
        raise DataIntegrityError(
            f"the training batches hold different numbers of images ({found}), but equal ones were "
            "expected; the shorter ones were cut short: copy or download them again"
        )


def distinct_names(name: str, names: Iterable[str], count: int) -> tuple[str, ...]:
    """These class names, after they were counted.

    Args:
        name: the file, for the message.
        names: what it lists.
        count: how many classes there must be.

    Raises:
        DataIntegrityError: not so many, or a name twice.

    >>> distinct_names("names.txt", ["cat", "dog"], 2)
    ('cat', 'dog')
    """
    listed = tuple(names)
    if len(listed) != count or len(set(listed)) != count:
        raise DataIntegrityError(
            f"{name}: lists {len(listed)} classes, {len(set(listed))} of them distinct, but "
            f"{count} distinct ones were expected; get the file from the official archive"
        )
    return listed
