"""CIFAR's official formats, written by hand, byte by byte as their writers did."""

import io
import tarfile
from pathlib import Path
from typing import Any

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


def python2(value: Any) -> bytes:
    """The body of a pickle as Python 2 wrote it in protocol 2: text is bytes, and no memo."""
    if value is None:
        return b"N"
    if isinstance(value, bytes):
        short = len(value) < 256
        size = len(value).to_bytes(1 if short else 4, "little")
        return (b"U" if short else b"T") + size + value
    if isinstance(value, int):
        return (
            b"K" + bytes([value])
            if 0 <= value < 256
            else b"J" + value.to_bytes(4, "little", signed=True)
        )
    if isinstance(value, tuple):
        return b"(" + b"".join(map(python2, value)) + b"t"
    if isinstance(value, list):
        return b"](" + b"".join(map(python2, value)) + b"e"
    if isinstance(value, dict):
        return b"}(" + b"".join(python2(k) + python2(v) for k, v in value.items()) + b"u"
    return python2_array(value)


def python2_array(array: np.ndarray, *, code: bytes = b"u1", shape: Any = None) -> bytes:
    """An array, perhaps with another type or shape stated than it has."""
    kind = (
        b"cnumpy\ndtype\n"
        + python2((code, 0, 1))
        + b"R"
        + python2((3, b"|", *[None] * 3, -1, -1, 0))
        + b"b"
    )
    columns_first = array.flags.f_contiguous and not array.flags.c_contiguous
    flag = b"\x88" if columns_first else b"\x89"
    state = (
        b"(K\x01"
        + python2(array.shape if shape is None else shape)
        + kind
        + flag
        + python2(array.tobytes(order="F" if columns_first else "C"))
        + b"t"
    )
    empty = (
        b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n"
        + python2((0,))
        + python2(b"b")
        + b"tR"
    )
    return empty + state + b"b"


def python2_file(value: Any) -> bytes:
    """A whole pickle."""
    return b"\x80\x02" + python2(value) + b"."


def cifar10_python(count: int = 3) -> dict[str, bytes]:
    """The same images and labels as `cifar10_binary`."""
    return {
        name: python2_file(
            {
                b"batch_label": b"batch",
                b"labels": [(b + i) % 10 for i in range(count)],
                b"data": make_planes(b, count),
                b"filenames": [b"%d.png" % i for i in range(count)],
            }
        )
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


def cifar100_python() -> dict[str, bytes]:
    """The same images and labels as `cifar100_binary`."""

    def batch(seed: int, coarse: list[int], fine: list[int]) -> bytes:
        planes = make_planes(seed, len(fine))
        return python2_file({b"data": planes, b"fine_labels": fine, b"coarse_labels": coarse})

    meta = {
        b"fine_label_names": [b"fine%d" % n for n in range(100)],
        b"coarse_label_names": [b"coarse%d" % n for n in range(20)],
    }
    return {
        "train": batch(0, [0, 19, 5, 5], [99, 0, 31, 7]),
        "test": batch(1, [1, 2], [50, 60]),
        "meta": python2_file(meta),
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
