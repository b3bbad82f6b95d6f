"""Any set of labelled images that is trained on: read whole, checked, and named."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from convattn.data.archives import open_files
from convattn.data.cifar import TEST_BATCH, TRAINING_BATCHES, read_cifar10, read_cifar100
from convattn.data.cifar10_slice import CLASS_NAMES, SIDE, Images, load_cifar10_slice
from convattn.data.image_folders import MAX_SET, read_image_folders
from convattn.files import most_unpacked

RECOMPRESSED = "JPEG-recompressed"  # what the whole of CIFAR-10 is, as its originals are lossless
STORED_AS_JPEG = "stored as JPEG"  # whatever other images were before
OFFICIAL_SIZES = (50_000, 10_000)
BATCHES = (*TRAINING_BATCHES, TEST_BATCH)
PICKLED = ("data_batch_1", "test_batch", "train", "test", "meta")  # of the Python versions


@dataclass(frozen=True, eq=False)
class Dataset:
    """Training and test images of the same classes.

    Attributes:
        name: the name of the data, such as "CIFAR-10".
        train: the training images.
        test: the test images.
        note: what must be said wherever a figure from these data appears, or "".

    >>> read_dataset().title
    'CIFAR-10, slice of 2,000 + 500'
    """

    name: str
    train: Images
    test: Images
    note: str = ""

    @property
    def title(self) -> str:
        """The name, with the note in parentheses if there is one."""
        return f"{self.name} ({self.note})" if self.note else self.name


def read_dataset(
    path: str | Path | None = None, *, classes: Literal["fine", "coarse"] = "fine"
) -> Dataset:
    """The images in a folder or a tar archive, or the bundled slice of CIFAR-10.

    Args:
        path: a folder or a tar archive with the official binary version of CIFAR-10 or CIFAR-100,
            or with image folders ``train/CLASS/*.jpg|jpeg|png`` and ``test/CLASS/…``;
            None for the bundled slice.
        classes: for CIFAR-100 "fine" for the 100 classes, "coarse" for the 20 superclasses.

    Returns:
        Images with their labels. A name that doesn't stand for the whole of CIFAR says how many
        images there are. Image folders are called CIFAR-10 if their classes, their size and
        their number in each class are CIFAR-10's. Images that were stored as JPEG have the
        note "JPEG-recompressed" if they are called that, and "stored as JPEG" otherwise.

    Raises:
        FileNotFoundError: nothing is there.
        ValueError: none of these formats, or "coarse" for anything but CIFAR-100.
        DataIntegrityError: of one of these formats, but incomplete or damaged.

    >>> data = read_dataset()
    >>> len(data.train), len(data.test), data.train.class_names[3]
    (2000, 500, 'cat')
    """
    if classes not in ("fine", "coarse"):
        raise ValueError(f"classes={classes!r}, but expected 'fine' or 'coarse'")
    files: Mapping[str, bytes] = {} if path is None else open_files(Path(path))
    if "train.bin" in files or "test.bin" in files:
        return _cifar(_CIFAR100[classes], read_cifar100(files, classes))
    if classes == "coarse":
        raise ValueError(
            f"classes='coarse', but expected 'fine' of {path or 'the bundled slice of CIFAR-10'}: "
            "only CIFAR-100 has superclasses; leave it out"
        )
    if path is None:
        train, test = load_cifar10_slice("train"), load_cifar10_slice("test")
        return Dataset(f"CIFAR-10, slice of {len(train):,} + {len(test):,}", train, test)
    if any(name in files for name in BATCHES):
        return _cifar("CIFAR-10", read_cifar10(files))
    if any(name in files for name in PICKLED):
        raise ValueError(
            f"{path}: found the Python version of CIFAR, but no pickle is read; expected the "
            "binary version, which holds the same images: cifar-10-binary.tar.gz or "
            "cifar-100-binary.tar.gz, which --download fetches"
        )
    if any(name.startswith(("train/", "test/")) for name in files):
        return _image_folders(files, Path(path))
    raise ValueError(
        f"{path}: no known format; found {_list(files)}, but expected data_batch_1.bin to "
        "data_batch_5.bin and test_batch.bin (CIFAR-10, binary), train.bin and test.bin (CIFAR-100,"
        " binary), or train/CLASS/*.jpg|jpeg|png and test/CLASS/… (image folders), in one folder "
        "or tar archive; give the path of that folder or archive itself"
    )


def _image_folders(files: Mapping[str, bytes], path: Path) -> Dataset:
    # else a small archive fills all memory
    most = most_unpacked(path.stat().st_size) if path.is_file() else MAX_SET
    images = read_image_folders(files, most=most)
    train, test = images.train, images.test
    name, note = _sized(path.resolve().name.partition(".")[0], train, test), STORED_AS_JPEG
    if train.class_names == CLASS_NAMES and train.images.shape[1:3] == (SIDE, SIDE):
        name = f"images with the classes of CIFAR-10, {len(train):,} + {len(test):,}"
        if _balanced(train, OFFICIAL_SIZES[0]) and _balanced(test, OFFICIAL_SIZES[1]):
            name, note = "CIFAR-10", RECOMPRESSED
    return Dataset(name, train, test, note if images.lossy else "")


def _balanced(images: Images, size: int) -> bool:
    classes = len(images.class_names)
    counts = np.bincount(images.labels, minlength=classes)
    return counts.tolist() == [size // classes] * classes


def _cifar(name: str, splits: tuple[Images, Images]) -> Dataset:
    train, test = splits
    official = (len(train), len(test)) == OFFICIAL_SIZES
    return Dataset(name if official else _sized(name, train, test), train, test)


def _sized(name: str, train: Images, test: Images) -> str:
    return f"{name}, {len(train):,} + {len(test):,} images"


def _list(files: Mapping[str, bytes], most: int = 8) -> str:
    names = sorted(files)
    listed = ", ".join(names[:most]) or "no files"
    return listed + (f" and {len(names) - most:,} more" if len(names) > most else "")


_CIFAR100 = {"fine": "CIFAR-100", "coarse": "CIFAR-100, superclasses"}
