"""The official binary version of CIFAR-10 and of CIFAR-100.

A CIFAR-10 record is one label byte and 3072 pixel bytes, a CIFAR-100 record a coarse label byte, a
fine label byte and 3072 pixel bytes. The pixels are the red, the green and the blue plane of 32×32
bytes, row by row.

Source: https://www.cs.toronto.edu/~kriz/cifar.html, "Binary version".
"""

from collections.abc import Mapping
from typing import Literal

import numpy as np
from jaxtyping import UInt8

from convattn.lab.data.cifar_records import (
    CLASSES,
    PIXELS,
    TEST_BATCH,
    TRAINING_BATCHES,
    distinct_names,
    images_from_planes,
    labelled,
    require,
    require_equal_batches,
)
from convattn.ledger.images.cifar10_slice import CLASS_NAMES, Images
from convattn.ledger.images.integrity import DataIntegrityError


def _names(files: Mapping[str, bytes], name: str, count: int) -> tuple[str, ...]:
    lines = files[name].decode("utf-8", "replace").splitlines()
    return distinct_names(name, [line.strip() for line in lines if line.strip()], count)


def read_cifar10_binary(files: Mapping[str, bytes]) -> tuple[Images, Images]:
    """Training and test images of CIFAR-10.

    Args:
        files: ``data_batch_1.bin`` … ``data_batch_5.bin``, ``test_batch.bin``, and perhaps
            ``batches.meta.txt``.

    Raises:
        DataIntegrityError: a batch is missing or cut short, a training batch is shorter than the
            others, or a label is out of range.

    >>> batch = bytes([3]) + bytes(3072)
    >>> names = [f"data_batch_{n}.bin" for n in range(1, 6)] + ["test_batch.bin"]
    >>> train, test = read_cifar10_binary(dict.fromkeys(names, batch))
    >>> train.images.shape, test.class_names[test.labels[0]]
    ((5, 32, 32, 3), 'cat')
    """
    training = tuple(f"{name}.bin" for name in TRAINING_BATCHES)
    test = f"{TEST_BATCH}.bin"
    require(files, (*training, test))
    meta = "batches.meta.txt"
    class_names = _names(files, meta, 10) if meta in files else CLASS_NAMES
    records = {name: _records(name, files[name], labels=1) for name in (*training, test)}
    require_equal_batches({name: len(records[name]) for name in training})
    for name, rows in records.items():  # so that a wrong label is reported with its file
        labelled(name, rows[:, 1:], rows[:, 0], class_names)
    everything = np.concatenate([records[name] for name in training])
    return (
        labelled("training", images_from_planes(everything[:, 1:]), everything[:, 0], class_names),
        labelled(test, images_from_planes(records[test][:, 1:]), records[test][:, 0], class_names),
    )


def read_cifar100_binary(
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
    >>> train, _ = read_cifar100_binary({**files, "train.bin": record, "test.bin": record})
    >>> train.class_names[train.labels[0]]
    'f71'
    """
    names_file = f"{classes}_label_names.txt"
    require(files, ("train.bin", "test.bin", names_file))
    class_names = _names(files, names_file, CLASSES[classes])
    column = {"coarse": 0, "fine": 1}[classes]
    splits = []
    for name in ("train.bin", "test.bin"):
        rows = _records(name, files[name], labels=2)
        splits.append(labelled(name, images_from_planes(rows[:, 2:]), rows[:, column], class_names))
    return splits[0], splits[1]


def _records(name: str, content: bytes, *, labels: int) -> UInt8[np.ndarray, "count record"]:
    length = labels + PIXELS
    if not content or len(content) % length:
        raise DataIntegrityError(
            f"{name}: holds {len(content):,} bytes, but a positive multiple of {length:,} (records "
            f"of {labels} label byte(s) and {PIXELS} pixel bytes) was expected; it was cut short, "
            "or isn't of this format: copy or download it again"
        )
    return np.frombuffer(content, np.uint8).reshape(-1, length)
