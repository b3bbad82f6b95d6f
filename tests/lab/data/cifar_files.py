"""CIFAR's official formats, written by hand, byte by byte as their writers did."""

import io
import tarfile
from pathlib import Path

import numpy as np

BATCHES = (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch")


def make_planes(seed: int, count: int) -> np.ndarray:
    """Random rows of 3072 bytes."""
    return np.random.default_rng(seed).integers(0, 256, (count, 3072), np.uint8)


def binary_batch(planes: np.ndarray, *labels: list[int]) -> bytes:
    """Records of the label bytes, in the order of `labels`, and the pixel bytes."""
    columns = [np.array(column, np.uint8)[:, None] for column in labels]
    return np.concatenate([*columns, planes], axis=1).tobytes()


def cifar10_binary(count: int = 3) -> dict[str, bytes]:
    """A complete set: batch b has the labels b, b + 1, … modulo 10."""
    return {
        f"{name}.bin": binary_batch(make_planes(b, count), [(b + i) % 10 for i in range(count)])
        for b, name in enumerate(BATCHES)
    }


def cifar100_binary() -> dict[str, bytes]:
    """Four training and two test images."""
    return {
        "train.bin": binary_batch(make_planes(0, 4), [0, 19, 5, 5], [99, 0, 31, 7]),
        "test.bin": binary_batch(make_planes(1, 2), [1, 2], [50, 60]),
        "fine_label_names.txt": "".join(f"fine{n}\n" for n in range(100)).encode(),
        "coarse_label_names.txt": "".join(f"coarse{n}\n" for n in range(20)).encode(),
    }


def write_folder(folder: Path, files: dict[str, bytes]) -> Path:
    """The files below a folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def write_tar(path: Path, files: dict[str, bytes], wrapper: str = "") -> Path:
    """The files in a tar archive, compressed as the suffix says, perhaps in a wrapping folder."""
    kind = path.suffix[1:] if path.suffix in (".gz", ".xz", ".bz2") else ""
    with tarfile.open(path, f"w:{kind}") as tar:  # type: ignore[call-overload]
        for name, content in files.items():
            member = tarfile.TarInfo(wrapper + name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path
