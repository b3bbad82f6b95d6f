"""Images: archives, folders and single pictures."""

import io
import tarfile
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.reader import Disagreement, chosen, packed, same, unpacked


def cifar_files(side: int = 1) -> dict[str, bytes]:
    """CIFAR-10, binary, of one image a batch."""
    from convattn.data.cifar import TEST_BATCH, TRAINING_BATCHES

    return {name: bytes([3]) + bytes(3072) for name in (*TRAINING_BATCHES, TEST_BATCH)}


def cifar100_files() -> dict[str, bytes]:
    """CIFAR-100, binary, of one image a split."""
    names = {"fine": 100, "coarse": 20}
    texts = {
        f"{kind}_label_names.txt": b"\n".join(b"%s%d" % (kind.encode(), n) for n in range(count))
        for kind, count in names.items()
    }
    record = bytes([2, 71]) + bytes(3072)
    return {**texts, "train.bin": record, "test.bin": record}


def picture(mode: str, kind: str, size: tuple[int, int] = (6, 5), **how: Any) -> bytes:
    """A small picture of a mode in a format."""
    from PIL import Image

    buffer = io.BytesIO()
    noise = np.random.default_rng(0).integers(0, 256, (size[1], size[0], 3)).astype(np.uint8)
    image = Image.fromarray(noise)
    if mode == "I;16":
        image = Image.fromarray(noise[..., 0].astype(np.uint16) * 200)
    elif mode != "RGB":
        image = image.convert(mode)
    image.save(buffer, kind, **how)
    return buffer.getvalue()


def image_files() -> dict[str, bytes]:
    """Image folders of PNG and JPEG."""
    names = ("train/cat/1.png", "train/dog/1.jpg", "test/dog/2.png", "test/cat/3.png")
    kinds = [picture("RGB", "PNG"), picture("RGB", "JPEG"), picture("L", "PNG")]
    return dict(zip(names, (*kinds, kinds[0]), strict=True))


def tar_of(files: Mapping[str, bytes], mode: str = "w") -> bytes:
    """An archive of files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:  # type: ignore[call-overload]
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def read_archive(content: bytes, folder: Path) -> None:
    """A tar archive of images."""
    from convattn.data.datasets import read_dataset

    path = folder / "given"
    path.write_bytes(content)
    read_dataset(path)


def archive_seeds() -> list[bytes]:
    """Archives of all three sets, with each compression, and a ZIP archive, which is refused."""
    images = image_files()
    return [
        tar_of(images),
        tar_of(images, "w:gz"),
        tar_of({f"set/{name}": content for name, content in images.items()}, "w:bz2"),
        tar_of(cifar100_files(), "w:xz"),
        tar_of(cifar_files(), "w:gz"),
        packed(images),
    ]


def read_folder(content: bytes, folder: Path) -> None:
    """A folder of images; an archive of it gives the same."""
    from convattn.data.datasets import read_dataset

    path = unpacked(content, folder)
    problem: ValueError | None = None
    try:
        dataset = read_dataset(path)
    except ValueError as refused:
        problem = refused
    files = {p.relative_to(path).as_posix(): p.read_bytes() for p in path.rglob("*") if p.is_file()}
    empty = any(p.is_dir() and not any(p.iterdir()) for p in path.rglob("*"))
    if files and not empty and chosen(content, 10):
        archive = folder / "given.tar"
        archive.write_bytes(tar_of(files))
        try:
            theirs = read_dataset(archive)
            if problem is not None:
                raise Disagreement(f"the archive of the folder is read, but the folder: {problem}")
            same(dataset.train.images.tobytes(), theirs.train.images.tobytes(), "training images")
            same(dataset.test.labels.tobytes(), theirs.test.labels.tobytes(), "test labels")
        except ValueError as refused:
            if problem is None:
                raise Disagreement(f"the folder is read, but the archive: {refused}") from refused
    if problem is not None:
        raise problem


def folder_seeds() -> list[bytes]:
    """The three sets."""
    return [packed(files) for files in (image_files(), cifar100_files(), cifar_files())]


def read_sent_picture(content: bytes, folder: Path) -> None:
    """A picture that is sent to the explorer."""
    from convattn_lab.explorer.pictures import read_picture

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pixels = read_picture(content, (8, 8))
    same((pixels.shape, pixels.dtype), ((8, 8, 3), np.dtype(np.uint8)), "the shape")


def picture_seeds() -> list[bytes]:
    """A picture in each format, and PNG in each mode."""
    from PIL import Image

    exif = Image.Exif()
    exif[0x0112] = 6
    kinds = ("PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF", "PPM")
    modes = ("L", "1", "P", "LA", "RGBA", "I;16")
    return [
        *(picture("RGB", kind) for kind in kinds),
        *(picture(mode, "PNG") for mode in modes),
        picture("P", "PNG", transparency=0),
        picture("RGB", "JPEG", exif=exif),
        picture("L", "TIFF", compression="tiff_lzw"),
        picture("CMYK", "JPEG"),
    ]


def read_slice_file(content: bytes, folder: Path) -> None:
    """Another file in place of the bundled slice of CIFAR-10."""
    from convattn.data.cifar10_slice import FILE_NAME, read_slice

    (folder / FILE_NAME).write_bytes(content)
    try:
        read_slice(folder)
    finally:
        (folder / FILE_NAME).unlink()
