"""Build the bundled CIFAR-10 slice from an archive of CIFAR-10's binary records.

Usage: python scripts/make_cifar10_slice.py PATH/cifar10-lossless.tar.xz [--output FOLDER]

The archive holds the first 1,000 records of each official batch, bit for bit, in the official
layout: records of 1 label byte and 3,072 bytes, channel-major RGB. The slice takes the first 200
training and the first 50 test records of each class, in file order. The same archive always gives
the same arrays, and the same file under the same zlib.
"""

import argparse
import hashlib
import io
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from convattn.data.cifar10_slice import (
    FILE_NAME,
    SHA256,
    SIDE,
    DataIntegrityError,
    digest,
)
from convattn.files import write_file

FOLDER = "cifar-10-batches-bin"
TRAIN_FILES = tuple(f"{FOLDER}/data_batch_{number}.bin" for number in range(1, 6))
TEST_FILES = (f"{FOLDER}/test_batch.bin",)
CLASSES = 10
RECORD = 1 + 3 * SIDE * SIDE


@dataclass(frozen=True)
class Source:
    """An archive that the slice may be made from, and how much of it is taken.

    Attributes:
        sha256: the archive's digest.
        records: how many records each of its files holds.
        train: how many training images of each class are taken.
        test: how many test images of each class are taken.
    """

    sha256: str
    records: int
    train: int
    test: int


CIFAR10 = Source(
    sha256="6e45fbcb9c6011e220dbc51b6f76b31c5f89c507e5214335ec4ca7815f4b9591",
    records=1000,
    train=200,
    test=50,
)


def read_records(archive: Path, source: Source) -> dict[str, np.ndarray]:
    """The records of the six batch files, ``uint8[records, 3073]`` each.

    Only regular files of exactly the expected names and sizes are read, in memory: nothing is
    extracted to disk, so links, devices and paths that lead elsewhere can do nothing.

    Raises:
        DataIntegrityError: a digest, a name, a kind or a size isn't the expected one.
    """
    try:
        with archive.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise DataIntegrityError(f"{archive}: can't be read ({error})") from error
    if digest != source.sha256:
        raise DataIntegrityError(
            f"{archive}: SHA-256 is {digest}, but {source.sha256} was expected; fetch it again"
        )
    expected, size = {*TRAIN_FILES, *TEST_FILES}, source.records * RECORD
    records: dict[str, np.ndarray] = {}
    with tarfile.open(archive, "r:xz") as tar:
        for member in tar:
            if member.name not in expected:
                continue
            stream_of_member = tar.extractfile(member) if member.isreg() else None
            if stream_of_member is None or member.size != size or member.name in records:
                raise DataIntegrityError(
                    f"{archive}: {member.name} must be one regular file of {size} bytes, but is "
                    f"of tar type {member.type!r} with {member.size} bytes, or comes twice"
                )
            content = stream_of_member.read()
            records[member.name] = np.frombuffer(content, np.uint8).reshape(-1, RECORD)
    if missing := sorted(expected - records.keys()):
        raise DataIntegrityError(f"{archive}: holds no {', '.join(missing)}")
    return records


def first_of_each_class(records: np.ndarray, count: int) -> np.ndarray:
    """The first ``count`` records of each class, in file order.

    Raises:
        DataIntegrityError: a label is out of range or a class has too few records.
    """
    labels = records[:, 0]
    if labels.max() >= CLASSES:
        raise DataIntegrityError(f"a label is {labels.max()}, but 0..{CLASSES - 1} was expected")
    rows = [np.flatnonzero(labels == label)[:count] for label in range(CLASSES)]
    if short := [label for label, members in enumerate(rows) if len(members) < count]:
        raise DataIntegrityError(f"classes {short} have fewer than {count} records")
    return records[np.sort(np.concatenate(rows))]


def build_slice(archive: Path, source: Source = CIFAR10) -> dict[str, np.ndarray]:
    """The four arrays of the slice, under their names."""
    records = read_records(archive, source)
    arrays = {}
    for split, names, count in (
        ("train", TRAIN_FILES, source.train),
        ("test", TEST_FILES, source.test),
    ):
        chosen = first_of_each_class(np.concatenate([records[name] for name in names]), count)
        images = chosen[:, 1:].reshape(-1, 3, SIDE, SIDE).transpose(0, 2, 3, 1)
        arrays[f"{split}_images"] = np.ascontiguousarray(images)
        arrays[f"{split}_labels"] = chosen[:, 0].copy()
    return arrays


def main(arguments: list[str] | None = None, source: Source = CIFAR10) -> int:
    """Build the slice; 0 on success, 1 where the archive or the result is not as expected."""
    parser = argparse.ArgumentParser(description="Build the bundled CIFAR-10 slice.")
    parser.add_argument("archive", type=Path, help="PATH/cifar10-lossless.tar.xz")
    default = Path(__file__).resolve().parents[1] / "src" / "convattn" / "data"
    parser.add_argument("--output", type=Path, default=default, help="the folder to write into")
    parser.add_argument(
        "--new-digests", action="store_true", help="write even where the loader expects another one"
    )
    options = parser.parse_args(arguments)
    try:
        arrays = build_slice(options.archive, source)
    except DataIntegrityError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"SHA256 = {digest(arrays)}")
    if digest(arrays) != SHA256 and not options.new_digests:
        print(f"nothing written: the loader expects {SHA256}", file=sys.stderr)
        return 1
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)  # type: ignore[arg-type]
    write_file(options.output / FILE_NAME, content.getvalue())
    print(f"wrote {options.output / FILE_NAME}: {len(content.getvalue())} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
