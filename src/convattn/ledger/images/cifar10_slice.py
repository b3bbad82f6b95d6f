"""A lossless, balanced slice of CIFAR-10: 2,000 training and 500 test images.

The stored file is zlib over ``labels ‖ residual planes``: 2,500 label bytes (training, then test),
then 3·2500·32·32 bytes of ``convattn.ledger.images.planes.predict``. Nothing in it is ever
unpickled. PROVENANCE.md beside it says where the records come from.
"""

import hashlib
import zlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Literal

import numpy as np
from jaxtyping import UInt8

from convattn.ledger.images.integrity import DataIntegrityError
from convattn.ledger.images.planes import restore

FILE_NAME = "cifar10_slice.zlib"
FILE_SHA256 = "6931ae83c000fcf53e7c936bfb35f611dd0aab1e62c379c6e3350465f27e5bbb"
PAYLOAD_SHA256 = "9cd77a0cdaf7eb8f3b9397bf028eb3f3877bec4ace553f3f4834d8d768fd59a9"
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

    def __len__(self) -> int:
        """The number of images."""
        return len(self.labels)


def decode_slice(stored: bytes, *, sha256: str = FILE_SHA256) -> dict[str, Images]:
    """Both splits out of the stored bytes, after their digest was checked.

    Args:
        stored: the bytes of the stored file.
        sha256: the digest that they must have, in hexadecimal.

    Raises:
        DataIntegrityError: the digest differs, or the bytes decode to something else.
    """
    found = hashlib.sha256(stored).hexdigest()
    if found != sha256:
        raise DataIntegrityError(
            f"{FILE_NAME}: SHA-256 is {found} over {len(stored)} bytes, but {sha256} was expected; "
            "the file was changed or cut short: reinstall convattn, or run `make data`"
        )
    count = sum(SPLIT_SIZES.values())
    length = count * (1 + 3 * SIDE * SIDE)
    try:
        payload = zlib.decompress(stored, bufsize=length)
    except zlib.error as error:
        raise DataIntegrityError(f"{FILE_NAME}: not a zlib stream ({error})") from error
    if len(payload) != length:
        raise DataIntegrityError(
            f"{FILE_NAME}: holds {len(payload)} bytes, but {length} were expected; run `make data`"
        )
    labels = np.frombuffer(payload, np.uint8, count)
    images = restore(np.frombuffer(payload, np.uint8, offset=count).reshape(3, count, SIDE, SIDE))
    images.setflags(write=False)
    train = SPLIT_SIZES["train"]
    return {
        "train": Images(images[:train], labels[:train], CLASS_NAMES),
        "test": Images(images[train:], labels[train:], CLASS_NAMES),
    }


def read_stored(folder: Traversable) -> bytes:
    """The stored file's bytes.

    Args:
        folder: where the file lies, a folder or an installed package's resources.

    Raises:
        DataIntegrityError: it isn't there or can't be read.
    """
    try:
        return (folder / FILE_NAME).read_bytes()
    except OSError as error:
        raise DataIntegrityError(
            f"{FILE_NAME}: can't be read from {folder} ({error}); it comes with the package: "
            "reinstall convattn, or run `make data`"
        ) from error


@cache
def _both_splits() -> dict[str, Images]:
    return decode_slice(read_stored(files("convattn.ledger.images")))


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
        raise ValueError(f"split is {split!r}, but one of {list(SPLIT_SIZES)} was expected")
    return _both_splits()[split]
