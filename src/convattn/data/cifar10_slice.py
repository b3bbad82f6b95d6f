"""A lossless, balanced slice of CIFAR-10: 2,000 training and 500 test images.

The stored file is a deflated .npz of four arrays; PROVENANCE.md beside it says where the records
come from. Nothing in it is ever unpickled, and the SHA-256 of the arrays is checked.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Literal

import numpy as np
from jaxtyping import UInt8

FILE_NAME = "cifar10_slice.npz"
SHA256 = "f9aa71f92bdecb1fa11cc8901e0d33ddbe879757cd824150af38dbb09cbb7eab"
ARRAYS = ("train_images", "train_labels", "test_images", "test_labels")
CLASS_NAMES = (
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
)
SPLIT_SIZES = {"train": 2000, "test": 500}
SIDE = 32


class DataIntegrityError(ValueError):
    """Stored data is missing, cut short or not what it should be.

    The message names the file, what was found, what was expected, and how to get it back.

    >>> issubclass(DataIntegrityError, ValueError)
    True
    """


@dataclass(frozen=True, eq=False)
class Images:
    """Labelled colour images; the arrays are read-only.

    Attributes:
        images: RGB values of 0..255, ``[batch, height, width, 3]``.
        labels: indices into ``class_names``, ``[batch]``.
        class_names: the name of each class.

    >>> one = Images(np.zeros((1, 2, 2, 3), np.uint8), np.zeros(1, np.uint8), ("nothing",))
    >>> len(one)
    1
    """

    images: UInt8[np.ndarray, "batch height width 3"]
    labels: UInt8[np.ndarray, " batch"]
    class_names: tuple[str, ...]

    def __post_init__(self) -> None:
        """Make the arrays read-only."""
        self.images.setflags(write=False)
        self.labels.setflags(write=False)

    def __len__(self) -> int:
        """The number of images."""
        return len(self.labels)


def digest(arrays: Mapping[str, np.ndarray]) -> str:
    """The SHA-256 of the bytes of the four arrays, in the order of `ARRAYS`."""
    hasher = hashlib.sha256()
    for name in ARRAYS:
        hasher.update(np.ascontiguousarray(arrays[name]).data)
    return hasher.hexdigest()


def read_slice(folder: Traversable) -> dict[str, Images]:
    """Both splits out of the stored file, after the digest of its arrays was checked.

    Args:
        folder: where the file lies, a folder or an installed package's resources.

    Raises:
        DataIntegrityError: it is missing, cannot be read, or holds something else.
    """
    try:
        with (folder / FILE_NAME).open("rb") as file, np.load(file, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in ARRAYS}
    except Exception as error:  # NumPy and zipfile raise many for what is damaged
        raise DataIntegrityError(
            f"{FILE_NAME}: cannot be read from {folder} ({error}); it comes with the package: "
            "reinstall convattn, or run `make data`"
        ) from error
    shapes = {name: (array.dtype, array.shape) for name, array in arrays.items()}
    expected: dict[str, tuple[np.dtype, tuple[int, ...]]] = {}
    for split, count in SPLIT_SIZES.items():
        expected[f"{split}_images"] = np.dtype(np.uint8), (count, SIDE, SIDE, 3)
        expected[f"{split}_labels"] = np.dtype(np.uint8), (count,)
    if shapes != expected or digest(arrays) != SHA256:
        raise DataIntegrityError(
            f"{FILE_NAME}: SHA-256 of its arrays is {digest(arrays)}, but {SHA256} was expected; "
            "the file was changed: reinstall convattn, or run `make data`"
        )
    return {
        split: Images(arrays[f"{split}_images"], arrays[f"{split}_labels"], CLASS_NAMES)
        for split in SPLIT_SIZES
    }


@cache
def _both_splits() -> dict[str, Images]:
    return read_slice(files("convattn.data"))


def load_cifar10_slice(split: Literal["train", "test"] = "train") -> Images:
    """The bundled slice of CIFAR-10, lossless, decoded once per process.

    Args:
        split: "train" for 2,000 images, 200 of each class, or "test" for 500, 50 of each.

    Returns:
        Read-only uint8 images ``[batch, 32, 32, 3]`` in RGB, and uint8 labels ``[batch]``.

    Raises:
        ValueError: no such split.
        DataIntegrityError: the stored file is missing or isn't the one released.

    Source: A. Krizhevsky, "Learning Multiple Layers of Features from Tiny Images", 2009.

    >>> slice_ = load_cifar10_slice("test")
    >>> slice_.images.shape, slice_.class_names[slice_.labels[0]]
    ((500, 32, 32, 3), 'cat')
    """
    if split not in SPLIT_SIZES:
        raise ValueError(f"split={split!r}, but expected one of {list(SPLIT_SIZES)}")
    return _both_splits()[split]
