import hashlib
import importlib.util
import io
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest

from convattn.data import DataIntegrityError
from convattn.data import cifar10_slice as cifar10

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "make_cifar10_slice.py"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("make_cifar10_slice", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def synthetic_records(records=20):
    generator = np.random.default_rng(3)
    contents = {}
    for name in [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]:
        rows = generator.integers(0, 256, (records, 3073), np.uint8)
        rows[:, 0] = generator.permutation(np.arange(records) % 10)
        contents[f"cifar-10-batches-bin/{name}.bin"] = rows
    return contents


def write_archive(path, contents, extra=()):
    with tarfile.open(path, "w:xz") as tar:
        for name, rows in contents.items():
            info = tarfile.TarInfo(name)
            info.size = rows.size
            tar.addfile(info, io.BytesIO(rows.tobytes()))
        for info, content in extra:
            tar.addfile(info, io.BytesIO(content))
    return path


def source_of(script, path, **changes):
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    return script.Source(**{"sha256": sha256, "records": 20, "train": 3, "test": 2, **changes})


def test_it_holds_the_first_records_of_each_class_in_file_order(script, tmp_path) -> None:
    contents = synthetic_records()
    path = write_archive(tmp_path / "a.tar.xz", contents)
    arrays = script.build_slice(path, source_of(script, path))
    train = np.concatenate([contents[name] for name in script.TRAIN_FILES])
    for split, records, count in (("train", train, 3), ("test", contents[script.TEST_FILES[0]], 2)):
        counts, expected = [0] * 10, []
        for record in records:
            if counts[record[0]] < count:
                counts[record[0]] += 1
                expected.append(record)
        assert arrays[f"{split}_labels"].tolist() == [record[0] for record in expected]
        for image, record in zip(arrays[f"{split}_images"], expected, strict=True):
            assert image.transpose(2, 0, 1).tobytes() == record[1:].tobytes()


def test_same_archive_same_bytes(script, tmp_path, capsys) -> None:
    path = write_archive(tmp_path / "a.tar.xz", synthetic_records())
    words, source, contents = [str(path), "--output"], source_of(script, path), []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        assert script.main([*words, str(folder), "--new-digests"], source) == 0
        assert [file.name for file in folder.iterdir()] == [cifar10.FILE_NAME]
        contents.append((folder / cifar10.FILE_NAME).read_bytes())
    assert contents[0] == contents[1]
    assert script.main([*words, str(tmp_path)], source) == 1  # not the released slice
    assert "nothing written" in capsys.readouterr().err
    assert not (tmp_path / cifar10.FILE_NAME).exists()


def test_another_archive_is_refused(script, tmp_path, capsys) -> None:
    path = write_archive(tmp_path / "a.tar.xz", synthetic_records())
    assert script.main([str(path), "--output", str(tmp_path)]) == 1
    assert "but 6e45fbcb" in capsys.readouterr().err


def test_a_missing_archive_is_refused(script, tmp_path, capsys) -> None:
    assert script.main([str(tmp_path / "none.tar.xz")]) == 1
    assert "can't be read" in capsys.readouterr().err


def test_a_link_under_an_expected_name_is_refused(script, tmp_path) -> None:
    contents = synthetic_records()
    del contents["cifar-10-batches-bin/test_batch.bin"]
    link = tarfile.TarInfo("cifar-10-batches-bin/test_batch.bin")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/hostname"
    path = write_archive(tmp_path / "a.tar.xz", contents, [(link, b"")])
    with pytest.raises(DataIntegrityError, match="one regular file"):
        script.build_slice(path, source_of(script, path))


def test_a_wrong_size_is_refused(script, tmp_path) -> None:
    path = write_archive(tmp_path / "a.tar.xz", synthetic_records(records=30))
    with pytest.raises(DataIntegrityError, match="of 61460 bytes"):
        script.build_slice(path, source_of(script, path))


def test_a_missing_batch_is_refused(script, tmp_path) -> None:
    contents = synthetic_records()
    del contents["cifar-10-batches-bin/data_batch_3.bin"]
    path = write_archive(tmp_path / "a.tar.xz", contents)
    with pytest.raises(DataIntegrityError, match=r"holds no .*data_batch_3"):
        script.build_slice(path, source_of(script, path))


def test_a_label_out_of_range_is_refused(script, tmp_path) -> None:
    contents = synthetic_records()
    contents["cifar-10-batches-bin/data_batch_1.bin"][4, 0] = 10
    path = write_archive(tmp_path / "a.tar.xz", contents)
    with pytest.raises(DataIntegrityError, match="a label is 10"):
        script.build_slice(path, source_of(script, path))


def test_too_few_of_a_class_is_refused(script, tmp_path) -> None:
    path = write_archive(tmp_path / "a.tar.xz", synthetic_records())
    with pytest.raises(DataIntegrityError, match="fewer than 11"):
        script.build_slice(path, source_of(script, path, train=11))
