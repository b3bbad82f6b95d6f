import hashlib
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest

from convattn.data import CLASS_NAMES, DataIntegrityError, load_cifar10_slice
from convattn.data import cifar10_slice as cifar10

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "src" / "convattn" / "data"
ARCHIVE = Path(
    os.environ.get("CIFAR10_ARCHIVE", ROOT.parent / "shared" / "data" / "cifar10-lossless.tar.xz")
)


@pytest.mark.parametrize(("split", "each"), [("train", 200), ("test", 50)])
def test_shape_type_and_balance(split, each) -> None:
    data = load_cifar10_slice(split)
    assert data.images.shape == (10 * each, 32, 32, 3)
    assert data.images.dtype == data.labels.dtype == np.uint8
    assert np.bincount(data.labels).tolist() == [each] * 10
    assert len(data) == 10 * each
    assert data.class_names == CLASS_NAMES


def test_images_are_distinct_and_use_the_whole_range() -> None:
    everything = [load_cifar10_slice(split).images for split in ("train", "test")]
    distinct = {image.tobytes() for images in everything for image in images}
    assert len(distinct) == 2500
    assert (everything[0].min(), everything[0].max()) == (0, 255)


def test_the_digest_is_that_of_the_stored_arrays() -> None:
    assert (FOLDER / cifar10.FILE_NAME).stat().st_size < 8 * 2**20
    assert cifar10.SHA256 in (FOLDER / "PROVENANCE.md").read_text()
    hasher = hashlib.sha256()
    for split in ("train", "test"):
        data = load_cifar10_slice(split)
        hasher.update(data.images.tobytes() + data.labels.tobytes())
    assert hasher.hexdigest() == cifar10.SHA256


@pytest.mark.slow
@pytest.mark.skipif(not ARCHIVE.exists(), reason=f"the source archive isn't at {ARCHIVE}")
def test_bytes_equal_the_first_records_of_each_class() -> None:
    with tarfile.open(ARCHIVE) as tar:
        content = {
            Path(member.name).name: tar.extractfile(member).read()
            for member in tar
            if member.name.endswith(".bin")
        }
    batches = {
        "train": b"".join(content[f"data_batch_{number}.bin"] for number in range(1, 6)),
        "test": content["test_batch.bin"],
    }
    for split, each in (("train", 200), ("test", 50)):
        data, taken, position = load_cifar10_slice(split), [0] * 10, 0
        for start in range(0, len(batches[split]), 3073):
            record = batches[split][start : start + 3073]
            label = record[0]
            if taken[label] < each:
                taken[label] += 1
                assert data.labels[position] == label
                assert data.images[position].transpose(2, 0, 1).tobytes() == record[1:]
                position += 1
        assert position == len(data)


def write_slice(folder, **changes):
    with np.load(FOLDER / cifar10.FILE_NAME) as stored:
        arrays = {name: stored[name].copy() for name in stored.files}
    np.savez(folder / cifar10.FILE_NAME, **{**arrays, **changes})
    return arrays


def test_one_changed_pixel_is_detected(tmp_path) -> None:
    labels = write_slice(tmp_path)["test_labels"]
    assert len(cifar10.read_slice(tmp_path)["train"]) == 2000
    labels[3] ^= 1
    write_slice(tmp_path, test_labels=labels)
    with pytest.raises(DataIntegrityError, match=r"SHA-256 of its arrays is .* but f9aa71f9"):
        cifar10.read_slice(tmp_path)


@pytest.mark.parametrize("kind", ["missing", "empty", "truncated", "flipped", "array missing"])
def test_a_damaged_file_is_a_data_integrity_error(tmp_path, kind) -> None:
    stored = bytearray((FOLDER / cifar10.FILE_NAME).read_bytes())
    path = tmp_path / cifar10.FILE_NAME
    if kind == "array missing":
        np.savez(path, train_images=np.zeros(1))
    elif kind == "flipped":
        stored[len(stored) // 2] ^= 1
        path.write_bytes(stored)
    elif kind != "missing":
        path.write_bytes(stored[:-1] if kind == "truncated" else b"")
    with pytest.raises(DataIntegrityError, match="cannot be read from"):
        cifar10.read_slice(tmp_path)


def test_loads_no_jax() -> None:
    code = (
        "import sys; from convattn.data import load_cifar10_slice; load_cifar10_slice(); "
        "sys.exit('jax' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
