import pickle

import numpy as np
import pytest
from lab.data.cifar_files import (
    cifar10_binary,
    cifar10_python,
    cifar100_binary,
    cifar100_python,
    make_planes,
    python2_file,
)

from convattn.lab.data import CLASS_NAMES, DataIntegrityError
from convattn.lab.data.cifar_binary import read_cifar10_binary, read_cifar100_binary
from convattn.lab.data.cifar_python import read_cifar10_python, read_cifar100_python


def same(found, expected) -> bool:
    return (
        np.array_equal(found.images, expected.images)
        and np.array_equal(found.labels, expected.labels)
        and found.class_names == expected.class_names
    )


def test_cifar10_is_what_the_binary_version_holds() -> None:
    pairs = list(
        zip(
            read_cifar10_python(cifar10_python()),
            read_cifar10_binary(cifar10_binary()),
            strict=True,
        )
    )
    assert all(same(*pair) for pair in pairs)
    assert [len(found) for found, _ in pairs] == [15, 3]
    assert all(found.labels.dtype == np.uint8 for found, _ in pairs)


@pytest.mark.parametrize("classes", ["fine", "coarse"])
def test_cifar100_is_what_the_binary_version_holds(classes) -> None:
    found = read_cifar100_python(cifar100_python(), classes)
    expected = read_cifar100_binary(cifar100_binary(), classes)
    assert all(map(same, found, expected))


def test_class_names_come_from_the_meta_file_if_it_is_there() -> None:
    names = [b"class%d" % n for n in range(10)]
    files = {**cifar10_python(), "batches.meta": python2_file({b"label_names": names})}
    assert read_cifar10_python(cifar10_python())[0].class_names == CLASS_NAMES
    assert read_cifar10_python(files)[1].class_names == tuple(f"class{n}" for n in range(10))


def test_arrays_are_read_only() -> None:
    for split in read_cifar10_python(cifar10_python()):
        for array in (split.images, split.labels):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0


def batch(**changes) -> dict[str, bytes]:
    """CIFAR-10 with one batch changed."""
    entries = {b"labels": [0, 1, 2], b"data": make_planes(3, 3)}
    entries.update({key.encode(): value for key, value in changes.items()})
    return {**cifar10_python(), "data_batch_4": python2_file(entries)}


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (batch(labels=[0, 10, 1]), "data_batch_4: image 1 has the label 10, but 0 to 9"),
        (batch(labels=[0, 1, -1]), "data_batch_4: image 2 has the label -1"),
        (batch(labels=[0, 1]), "data_batch_4: 2 labels for 3 images"),
        (batch(labels=[0, 1, b"2"]), "'labels' isn't a list of integers"),
        (batch(labels=b"012"), "'labels' isn't a list of integers"),
        (batch(data=b"012"), "'data' has no array"),
        (batch(data=make_planes(0, 3)[:, :-1].copy()), r"'data' has shape \(3, 3071\)"),
        (batch(data=make_planes(0, 0), labels=[]), r"'data' has shape \(0, 3072\)"),
        (batch(data=make_planes(0, 2), labels=[0, 1]), "data_batch_4 has 2, data_batch_5 has 3"),
        ({**cifar10_python(), "batches.meta": python2_file({b"label_names": [b"a"] * 10})},
         "batches.meta: lists 10 classes, 1 of them distinct"),
        ({**cifar10_python(), "batches.meta": python2_file({b"label_names": [b"a"]})},
         "batches.meta: lists 1 classes"),
        ({**cifar10_python(), "batches.meta": python2_file({b"label_names": [3]})},
         "'label_names' isn't a list of strings"),
        ({**cifar10_python(), "data_batch_2": python2_file({b"labels": [1]})},
         r"data_batch_2: no entry 'data' among \['labels'\]"),
        ({**cifar10_python(), "data_batch_2": b"cos\nsystem\n(S'ls'\ntR."}, r"asks for os\.system"),
        ({"data_batch_1": b"", "test_batch": b""},
         "data_batch_2, data_batch_3, data_batch_4, data_batch_5: missing, though data_batch_1"),
    ],
)  # fmt: skip
def test_damaged_cifar10_is_refused(files, message) -> None:
    with pytest.raises(DataIntegrityError, match=message):
        read_cifar10_python(files)


def test_a_label_beyond_64_bits_is_out_of_range() -> None:
    stored = pickle.dumps({"labels": [0, 1, 10**30], "data": make_planes(0, 3)}, protocol=2)
    with pytest.raises(DataIntegrityError, match="has the label 1000000000000000000000000000000"):
        read_cifar10_python({**cifar10_python(), "data_batch_1": stored})


@pytest.mark.parametrize("missing", ["train", "test", "meta"])
def test_incomplete_cifar100_is_refused(missing) -> None:
    files = {name: content for name, content in cifar100_python().items() if name != missing}
    with pytest.raises(DataIntegrityError, match=f"{missing}: missing, though"):
        read_cifar100_python(files)


def test_a_test_batch_may_have_another_size() -> None:
    smaller = batch(data=make_planes(0, 2), labels=[0, 1])["data_batch_4"]
    train, test = read_cifar10_python({**cifar10_python(), "test_batch": smaller})
    assert (len(train), test.labels.tolist()) == (15, [0, 1])
