"""The official binary version of CIFAR-10 and of CIFAR-100.

A CIFAR-10 record is one label byte and 3072 pixel bytes, a CIFAR-100 record a coarse label byte, a
fine label byte and 3072 pixel bytes. The pixels are the red, the green and the blue plane of 32×32
bytes, row by row. CIFAR-10 has five training batches of equal size and a test batch.

Source: https://www.cs.toronto.edu/~kriz/cifar.html, "Binary version".
"""

from collections.abc import Mapping
from typing import Literal

import numpy as np

from convattn.data.cifar10_slice import CLASS_NAMES, SIDE, DataIntegrityError, Images

PIXELS = 3 * SIDE * SIDE
CLASSES = {"fine": 100, "coarse": 20}  # of CIFAR-100
TRAINING_BATCHES = tuple(f"data_batch_{number}.bin" for number in range(1, 6))
TEST_BATCH = "test_batch.bin"


def read_cifar10(files: Mapping[str, bytes]) -> tuple[Images, Images]:
    """Training and test images of CIFAR-10.

    Args:
        files: ``data_batch_1.bin`` … ``data_batch_5.bin``, ``test_batch.bin``, and perhaps
            ``batches.meta.txt``.

    Raises:
        DataIntegrityError: a batch is missing or cut short, a training batch is shorter than the
            others, or a label is out of range.

    >>> batch = bytes([3]) + bytes(3072)
    >>> train, test = read_cifar10(dict.fromkeys((*TRAINING_BATCHES, TEST_BATCH), batch))
    >>> train.images.shape, test.class_names[test.labels[0]]
    ((5, 32, 32, 3), 'cat')
    """
    _require(files, (*TRAINING_BATCHES, TEST_BATCH))
    meta = "batches.meta.txt"
    class_names = _class_names(files, meta, 10) if meta in files else CLASS_NAMES
    train, test = (
        _images(files, names, 1, 0, class_names) for names in (TRAINING_BATCHES, (TEST_BATCH,))
    )
    return train, test


def read_cifar100(
    files: Mapping[str, bytes], classes: Literal["fine", "coarse"] = "fine"
) -> tuple[Images, Images]:
    """Training and test images of CIFAR-100.

    Args:
        files: ``train.bin``, ``test.bin``, ``fine_label_names.txt`` and ``coarse_label_names.txt``.
        classes: "fine" for the 100 classes, "coarse" for the 20 superclasses.

    Raises:
        DataIntegrityError: a file is missing or cut short, or a label is out of range.

    >>> names = {"fine": b"\\n".join(b"f%d" % n for n in range(100)),
    ...          "coarse": b"\\n".join(b"c%d" % n for n in range(20))}
    >>> files = {f"{kind}_label_names.txt": text for kind, text in names.items()}
    >>> record = bytes([2, 71]) + bytes(3072)
    >>> train, _ = read_cifar100({**files, "train.bin": record, "test.bin": record})
    >>> train.class_names[train.labels[0]]
    'f71'
    """
    names_file = f"{classes}_label_names.txt"
    _require(files, ("train.bin", "test.bin", names_file))
    class_names = _class_names(files, names_file, CLASSES[classes])
    column = ("coarse", "fine").index(classes)
    train, test = (
        _images(files, (name,), 2, column, class_names) for name in ("train.bin", "test.bin")
    )
    return train, test


def _require(files: Mapping[str, bytes], names: tuple[str, ...]) -> None:
    missing = [name for name in names if name not in files]
    if missing:
        raise DataIntegrityError(
            f"{', '.join(missing)}: missing, though {', '.join(n for n in names if n in files)} "
            "is there; the whole set was expected: copy or download the rest"
        )


def _class_names(files: Mapping[str, bytes], name: str, count: int) -> tuple[str, ...]:
    lines = files[name].decode("utf-8", "replace").splitlines()
    listed = tuple(line.strip() for line in lines if line.strip())
    if len(listed) != count or len(set(listed)) != count:
        raise DataIntegrityError(
            f"{name}: lists {len(listed)} classes, {len(set(listed))} of them distinct, but "
            f"{count} distinct ones were expected; get the file from the official archive"
        )
    return listed


def _images(
    files: Mapping[str, bytes],
    names: tuple[str, ...],
    labels: int,
    column: int,
    class_names: tuple[str, ...],
) -> Images:
    """The images of files of equal length, channels last, and their labels in this column."""
    length, batches = labels + PIXELS, []
    for name in names:
        content = files[name]
        if not content or len(content) % length:
            raise DataIntegrityError(
                f"{name}: holds {len(content):,} bytes, but a positive multiple of {length:,} "
                f"(records of {labels} label byte(s) and {PIXELS} pixel bytes) was expected; it "
                "was cut short, or is not of this format: copy or download it again"
            )
        rows = np.frombuffer(content, np.uint8).reshape(-1, length)
        wrong = np.flatnonzero(rows[:, column] >= len(class_names))
        if wrong.size:
            raise DataIntegrityError(
                f"{name}: image {wrong[0]} has the label {rows[wrong[0], column]}, but 0 to "
                f"{len(class_names) - 1} were expected; is it another data set, or was it changed?"
            )
        batches.append(rows)
    if len({len(rows) for rows in batches}) > 1:
        sizes = zip(names, map(len, batches), strict=True)
        raise DataIntegrityError(
            "the training batches hold different numbers of images "
            f"({', '.join(f'{name} has {size:,}' for name, size in sizes)}), but equal ones were "
            "expected; the shorter ones were cut short: copy or download them again"
        )
    rows = np.concatenate(batches)
    planes = rows[:, labels:].reshape(-1, 3, SIDE, SIDE)
    pixels = np.ascontiguousarray(planes.transpose(0, 2, 3, 1))
    return Images(pixels, rows[:, column].copy(), class_names)
