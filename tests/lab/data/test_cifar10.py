import hashlib
import os
import subprocess
import sys
import tarfile
import zlib
from pathlib import Path

import numpy as np
import pytest

from convattn.lab.data import CLASS_NAMES, DataIntegrityError, load_cifar10_slice
from convattn.ledger.images import cifar10_slice as cifar10

ROOT = Path(__file__).resolve().parents[3]
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


def test_decoded_once_and_read_only() -> None:
    data = load_cifar10_slice("train")
    assert load_cifar10_slice("train") is data
    for array in (data.images, data.labels):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_digests_in_code_hold_for_the_stored_file() -> None:
    stored = (FOLDER / cifar10.FILE_NAME).read_bytes()
    assert len(stored) < 8 * 2**20
    assert hashlib.sha256(stored).hexdigest() == cifar10.FILE_SHA256
    assert hashlib.sha256(zlib.decompress(stored)).hexdigest() == cifar10.PAYLOAD_SHA256


def test_provenance_names_the_digests() -> None:
    text = (FOLDER / "PROVENANCE.md").read_text()
    assert cifar10.FILE_SHA256 in text
    assert cifar10.PAYLOAD_SHA256 in text


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


def test_one_flipped_bit_is_detected() -> None:
    stored = bytearray((FOLDER / cifar10.FILE_NAME).read_bytes())
    stored[len(stored) // 2] ^= 1
    with pytest.raises(DataIntegrityError, match=r"SHA-256 is .* but 6931ae83"):
        cifar10.decode_slice(bytes(stored))


def test_truncation_is_detected() -> None:
    stored = (FOLDER / cifar10.FILE_NAME).read_bytes()
    with pytest.raises(DataIntegrityError, match="cut short"):
        cifar10.decode_slice(stored[:-1])


@pytest.mark.parametrize(
    ("stored", "message"),
    [(b"no zlib at all", "not a zlib stream"), (zlib.compress(b"short"), "holds 5 bytes")],
)
def test_a_wrong_file_with_the_right_digest_is_refused(stored, message) -> None:
    with pytest.raises(DataIntegrityError, match=message):
        cifar10.decode_slice(stored, sha256=hashlib.sha256(stored).hexdigest())


def test_missing_file_is_a_data_integrity_error(tmp_path) -> None:
    with pytest.raises(DataIntegrityError, match="can't be read from"):
        cifar10.read_stored(tmp_path)


def test_unknown_split_is_refused() -> None:
    with pytest.raises(ValueError, match="split is 'validation'"):
        load_cifar10_slice("validation")


def test_loads_no_jax() -> None:
    code = (
        "import sys; from convattn.lab.data import load_cifar10_slice; load_cifar10_slice(); "
        "sys.exit('jax' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
