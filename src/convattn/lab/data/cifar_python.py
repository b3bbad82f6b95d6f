"""The official Python version of CIFAR-10 and of CIFAR-100: pickles, read without trusting them.

A batch is a pickled dictionary (Python 2, protocol 2) of an array "data" of 3072 bytes an image, a
list "labels" ("fine_labels" and "coarse_labels" in CIFAR-100) and things not needed here.
`restricted_pickle` reads them.

Source: https://www.cs.toronto.edu/~kriz/cifar.html, "Dataset layout".
"""

from collections.abc import Mapping
from typing import Any, Literal

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
from convattn.lab.data.restricted_pickle import load_dictionary
from convattn.ledger.images.cifar10_slice import CLASS_NAMES, Images
from convattn.ledger.images.integrity import DataIntegrityError


def read_cifar10_python(files: Mapping[str, bytes]) -> tuple[Images, Images]:
    """Training and test images of CIFAR-10.

    Args:
        files: ``data_batch_1`` … ``data_batch_5``, ``test_batch``, and perhaps ``batches.meta``.

    Raises:
        DataIntegrityError: a batch is missing or holds anything but plain values and byte arrays, a
            training batch is smaller than the others, or a label is out of range.

    >>> import pickle
    >>> batch = {"data": np.zeros((1, 3072), np.uint8), "labels": [3]}
    >>> names = (*TRAINING_BATCHES, TEST_BATCH)
    >>> train, test = read_cifar10_python(dict.fromkeys(names, pickle.dumps(batch, protocol=2)))
    >>> train.images.shape, test.class_names[test.labels[0]]
    ((5, 32, 32, 3), 'cat')
    """
    require(files, (*TRAINING_BATCHES, TEST_BATCH))
    class_names: tuple[str, ...] = CLASS_NAMES
    if "batches.meta" in files:
        class_names = _names(files, "batches.meta", "label_names", 10)
    batches = {}
    for name in (*TRAINING_BATCHES, TEST_BATCH):
        batches[name] = _batch(name, files[name], "labels", class_names)
    require_equal_batches({name: len(batches[name]) for name in TRAINING_BATCHES})
    training = [batches[name] for name in TRAINING_BATCHES]
    images = np.concatenate([batch.images for batch in training])
    labels = np.concatenate([batch.labels for batch in training])
    images.setflags(write=False)
    return labelled("training", images, labels, class_names), batches[TEST_BATCH]


def read_cifar100_python(
    files: Mapping[str, bytes], classes: Literal["fine", "coarse"] = "fine"
) -> tuple[Images, Images]:
    """Training and test images of CIFAR-100.

    Args:
        files: ``train``, ``test`` and ``meta``.
        classes: "fine" for the 100 classes, "coarse" for the 20 superclasses.

    Raises:
        DataIntegrityError: a file is missing, holds anything but plain values and byte arrays, or a
            label is out of range.

    >>> import pickle
    >>> batch = {"data": np.zeros((1, 3072), np.uint8), "coarse_labels": [7]}
    >>> stored = pickle.dumps(batch, protocol=2)
    >>> meta = pickle.dumps({"coarse_label_names": [f"c{n}" for n in range(20)]}, protocol=2)
    >>> train, _ = read_cifar100_python({"train": stored, "test": stored, "meta": meta}, "coarse")
    >>> train.class_names[train.labels[0]]
    'c7'
    """
    require(files, ("train", "test", "meta"))
    class_names = _names(files, "meta", f"{classes}_label_names", CLASSES[classes])
    train, test = (
        _batch(name, files[name], f"{classes}_labels", class_names) for name in ("train", "test")
    )
    return train, test


def _batch(name: str, content: bytes, labels_key: str, class_names: tuple[str, ...]) -> Images:
    batch = load_dictionary(content, name)
    planes = _planes(name, batch)
    labels = _entry(name, batch, labels_key)
    if not isinstance(labels, list) or any(type(label) is not int for label in labels):
        raise DataIntegrityError(
            f"{name}: {labels_key!r} isn't a list of integers, which was expected; download the "
            "official archive again"
        )
    if len(labels) != len(planes):
        raise DataIntegrityError(
            f"{name}: {len(labels):,} labels for {len(planes):,} images, but one each was expected;"
            " download the official archive again"
        )
    # As objects, so that an integer beyond 64 bits is out of range rather than an overflow.
    return labelled(name, images_from_planes(planes), np.array(labels, object), class_names)


def _planes(name: str, batch: Mapping[str, Any]) -> UInt8[np.ndarray, "count 3072"]:
    planes = _entry(name, batch, "data")
    if not isinstance(planes, np.ndarray) or planes.shape[1:] != (PIXELS,) or not len(planes):
        found = f"shape {planes.shape}" if isinstance(planes, np.ndarray) else "no array"
        raise DataIntegrityError(
            f"{name}: 'data' has {found}, but a uint8 array of shape (count, {PIXELS}) was "
            "expected; is it another data set?"
        )
    return planes


def _names(files: Mapping[str, bytes], name: str, key: str, count: int) -> tuple[str, ...]:
    listed = _entry(name, load_dictionary(files[name], name), key)
    if not isinstance(listed, list) or not all(isinstance(entry, bytes | str) for entry in listed):
        raise DataIntegrityError(
            f"{name}: {key!r} isn't a list of strings, which was expected; download the official "
            "archive again"
        )
    texts = [e.decode("utf-8", "replace") if isinstance(e, bytes) else e for e in listed]
    return distinct_names(name, texts, count)


def _entry(name: str, batch: Mapping[str, Any], key: str) -> Any:
    if key not in batch:
        raise DataIntegrityError(
            f"{name}: no entry {key!r} among {sorted(batch)[:10]}; is it another data set?"
        )
    return batch[key]
