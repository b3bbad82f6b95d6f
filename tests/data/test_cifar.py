import pytest
from lab.data.cifar_files import BATCHES, binary_batch, cifar10_binary, cifar100_binary, make_planes

from convattn.data import CLASS_NAMES, DataIntegrityError
from convattn.data.cifar import read_cifar10, read_cifar100


def test_every_byte_of_cifar10_is_where_the_format_puts_it() -> None:
    files = cifar10_binary()
    train, test = read_cifar10(files)
    assert train.class_names == test.class_names == CLASS_NAMES
    for split, names in ((train, BATCHES[:5]), (test, BATCHES[5:])):
        stored = b"".join(files[f"{name}.bin"] for name in names)
        records = [stored[start : start + 3073] for start in range(0, len(stored), 3073)]
        assert len(split) == len(records)
        for index, record in enumerate(records):
            assert split.labels[index] == record[0]
            for channel, row, column in ((0, 0, 0), (0, 3, 17), (1, 30, 2), (2, 31, 31)):
                expected = record[1 + 1024 * channel + 32 * row + column]
                assert split.images[index, row, column, channel] == expected
            assert split.images[index].transpose(2, 0, 1).tobytes() == record[1:]


def test_every_byte_of_cifar100_is_where_the_format_puts_it() -> None:
    files = cifar100_binary()
    for classes, position in (("coarse", 0), ("fine", 1)):
        for split, name in zip(read_cifar100(files, classes), ("train", "test"), strict=True):
            stored = files[f"{name}.bin"]
            records = [stored[start : start + 3074] for start in range(0, len(stored), 3074)]
            assert split.labels.tolist() == [record[position] for record in records]
            assert split.class_names[3] == f"{classes}3"
            for image, record in zip(split.images, records, strict=True):
                assert image.transpose(2, 0, 1).tobytes() == record[2:]


def test_class_names_come_from_the_meta_file_if_it_is_there() -> None:
    meta = "".join(f"class{n}\n" for n in range(10)).encode() + b"\n"
    train, _ = read_cifar10({**cifar10_binary(), "batches.meta.txt": meta})
    assert train.class_names == tuple(f"class{n}" for n in range(10))


TWO = binary_batch(make_planes(0, 2), [1, 2])
WRONG_LABEL = binary_batch(make_planes(0, 3), [9, 10, 11])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data_batch_3.bin": None}, "data_batch_3.bin: missing, though data_batch_1.bin"),
        ({"test_batch.bin": None}, "test_batch.bin: missing"),
        ({"data_batch_2.bin": TWO}, "data_batch_1.bin has 3, data_batch_2.bin has 2"),
        ({"data_batch_2.bin": TWO[:-1]}, "data_batch_2.bin: holds 6,145 bytes, but a positive mul"),
        ({"data_batch_2.bin": b""}, "data_batch_2.bin: holds 0 bytes"),
        ({"data_batch_5.bin": WRONG_LABEL}, "data_batch_5.bin: image 1 has the label 10"),
        ({"batches.meta.txt": b"cat\ndog\n"}, "batches.meta.txt: lists 2 classes"),
        ({"batches.meta.txt": b"cat\n" * 10}, "1 of them distinct, but 10"),
    ],
)
def test_damaged_cifar10_is_refused(changes, message) -> None:
    files = {**cifar10_binary(), **changes}
    with pytest.raises(DataIntegrityError, match=message):
        read_cifar10({name: content for name, content in files.items() if content is not None})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"test.bin": None}, "test.bin: missing, though train.bin, fine_label_names.txt is there"),
        ({"fine_label_names.txt": None}, "fine_label_names.txt: missing"),
        ({"test.bin": TWO}, "test.bin: holds 6,146 bytes"),
        ({"test.bin": binary_batch(make_planes(0, 1), [0], [100])}, "label 100, but 0 to 99"),
    ],
)
def test_damaged_cifar100_is_refused(changes, message) -> None:
    files = {**cifar100_binary(), **changes}
    with pytest.raises(DataIntegrityError, match=message):
        read_cifar100({name: content for name, content in files.items() if content is not None})


def test_a_coarse_label_out_of_range_is_refused() -> None:
    wrong = binary_batch(make_planes(0, 1), [20], [3])
    with pytest.raises(DataIntegrityError, match="has the label 20, but 0 to 19"):
        read_cifar100({**cifar100_binary(), "test.bin": wrong}, "coarse")
