"""Any set of labelled images that is trained on: read whole, checked, and named."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from convattn.lab.data.archives import open_files
from convattn.lab.data.cifar_binary import read_cifar10_binary, read_cifar100_binary
from convattn.lab.data.cifar_python import read_cifar10_python, read_cifar100_python
from convattn.lab.data.cifar_records import TEST_BATCH, TRAINING_BATCHES
from convattn.lab.data.image_folders import read_image_folders
from convattn.ledger.images.cifar10_slice import CLASS_NAMES, SIDE, Images, load_cifar10_slice

RECOMPRESSED = "JPEG-recompressed"  # what the whole of CIFAR-10 is, as its originals are lossless
STORED_AS_JPEG = "stored as JPEG"  # whatever other images were before
OFFICIAL_SIZES = (50_000, 10_000)
BATCHES = (*TRAINING_BATCHES, TEST_BATCH)


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
        path: a folder or a tar archive with the official binary or Python version of CIFAR-10 or
            CIFAR-100, or with image folders ``train/CLASS/*.jpg|jpeg|png`` and ``test/CLASS/…``;
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
        raise ValueError(f"classes is {classes!r}, but 'fine' or 'coarse' was expected")
    if path is None:
        _refuse_coarse(classes, "the bundled slice of CIFAR-10")
        train, test = load_cifar10_slice("train"), load_cifar10_slice("test")
        return Dataset(f"CIFAR-10, slice of {len(train):,} + {len(test):,}", train, test)
    files = open_files(Path(path))
    for recognises, read in _FORMATS:
        if recognises(files):
            return read(files, Path(path), classes)
    raise ValueError(
        f"{path}: no known format; found {_list(files)}, but expected data_batch_1.bin to "
        "data_batch_5.bin and test_batch.bin (CIFAR-10, binary), train.bin and test.bin (CIFAR-100,"
        " binary), data_batch_1 to data_batch_5 and test_batch (CIFAR-10, Python), train, test and "
        "meta (CIFAR-100, Python), or train/CLASS/*.jpg|jpeg|png and test/CLASS/… (image folders), "
        "in one folder or tar archive; give the path of that folder or archive itself"
    )


def _cifar10_binary(files: Mapping[str, bytes], path: Path, classes: str) -> Dataset:
    _refuse_coarse(classes, f"{path} (CIFAR-10)")
    return _cifar("CIFAR-10", read_cifar10_binary(files))


def _cifar10_python(files: Mapping[str, bytes], path: Path, classes: str) -> Dataset:
    _refuse_coarse(classes, f"{path} (CIFAR-10)")
    return _cifar("CIFAR-10", read_cifar10_python(files))


def _cifar100_binary(
    files: Mapping[str, bytes], path: Path, classes: Literal["fine", "coarse"]
) -> Dataset:
    return _cifar(_CIFAR100[classes], read_cifar100_binary(files, classes))


def _cifar100_python(
    files: Mapping[str, bytes], path: Path, classes: Literal["fine", "coarse"]
) -> Dataset:
    return _cifar(_CIFAR100[classes], read_cifar100_python(files, classes))


def _image_folders(files: Mapping[str, bytes], path: Path, classes: str) -> Dataset:
    _refuse_coarse(classes, f"{path} (image folders)")
    found = read_image_folders(files)
    train, test = found.train, found.test
    name, note = _sized(path.resolve().name.partition(".")[0], train, test), STORED_AS_JPEG
    if train.class_names == CLASS_NAMES and train.images.shape[1:3] == (SIDE, SIDE):
        name = f"images with the classes of CIFAR-10, {len(train):,} + {len(test):,}"
        if _balanced(train, OFFICIAL_SIZES[0]) and _balanced(test, OFFICIAL_SIZES[1]):
            name, note = "CIFAR-10", RECOMPRESSED
    return Dataset(name, train, test, note if found.lossy else "")


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


def _refuse_coarse(classes: str, what: str) -> None:
    if classes == "coarse":
        raise ValueError(
            f"classes is 'coarse', but {what} has no superclasses; only CIFAR-100 has: leave it out"
        )


def _list(files: Mapping[str, bytes], most: int = 8) -> str:
    names = sorted(files)
    shown = ", ".join(names[:most]) or "no files"
    return shown + (f" and {len(names) - most:,} more" if len(names) > most else "")


_CIFAR100 = {"fine": "CIFAR-100", "coarse": "CIFAR-100, superclasses"}
_Reader = Callable[[Mapping[str, bytes], Path, Literal["fine", "coarse"]], Dataset]
_FORMATS: tuple[tuple[Callable[[Mapping[str, bytes]], bool], _Reader], ...] = (
    (lambda files: any(f"{n}.bin" in files for n in BATCHES), _cifar10_binary),
    (lambda files: "train.bin" in files or "test.bin" in files, _cifar100_binary),
    (lambda files: any(n in files for n in BATCHES), _cifar10_python),
    (lambda files: "train" in files or "test" in files, _cifar100_python),
    (lambda files: any(n.startswith(("train/", "test/")) for n in files), _image_folders),
)
