"""Image folders: train/CLASS/*.jpg|jpeg|png and test/CLASS/*.jpg|jpeg|png.

The classes are numbered in the order of their names and the images of a class come in the order of
theirs, so that a folder and an archive of it give the same arrays. Grey images become three equal
channels, which loses nothing; palettes, transparency, CMYK, 16 bits, several pictures in a PNG and
an orientation in which an image should be shown are refused, as turning them into RGB is a choice.

A damaged PNG file is noticed by its checksum, and one with fewer rows than its header says by their
number, for Pillow would fill them in. JPEG has no checksum, and its decoder goes on after an error
within the compressed pixels: only damage that keeps it from decoding is noticed.
"""

import io
import os
import struct
import zlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import UInt8

from convattn.extras import require
from convattn.ledger.images.cifar10_slice import DataIntegrityError, Images

SUFFIXES = (".jpg", ".jpeg", ".png")
SPLITS = ("train", "test")
JPEG_FORMATS = ("JPEG", "MPO")  # a JPEG file that holds further pictures is "MPO" for Pillow
PNG_HEADER, PNG_DEPTH = slice(12, 16), 24  # the first chunk's name; its ninth byte
PNG_SIZE = slice(16, 24)  # width and height
PNG_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}  # by the tenth byte, the type of its colours
PNG_INTERLACED = 28  # its thirteenth; then the pixels come in these passes: first, and steps
ADAM7 = (
    *((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4)),
    *((0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)),
)
ORIENTATION, UPRIGHT = 0x0112, 1  # an EXIF tag and its value for an image shown as it is stored
LARGEST_SET = 16 * 2**30  # bytes of pixels: the whole set lives in memory
LARGEST_IMAGE = 2**24  # pixels


@dataclass(frozen=True)
class FolderImages:
    """What image folders hold.

    Attributes:
        train: the training images.
        test: the test images.
        lossy: whether an image was stored as JPEG.
    """

    train: Images
    test: Images
    lossy: bool


def read_image_folders(files: Mapping[str, bytes], *, most: int = LARGEST_SET) -> FolderImages:
    """Training and test images of image folders, all of one size.

    Args:
        files: ``train/CLASS/NAME`` and ``test/CLASS/NAME`` to the bytes of JPEG or PNG files.
        most: the number of bytes that the pixels of all images may have.

    Raises:
        DataIntegrityError: a split is missing, the splits have different classes, there is another
            file, an image can't be decoded, its size or its colours differ from what is read, or
            it or all of them are too large.
        ModuleNotFoundError: Pillow isn't installed.

    >>> from PIL import Image
    >>> stored = io.BytesIO()
    >>> Image.new("RGB", (3, 2), (1, 2, 3)).save(stored, "PNG")
    >>> names = ("train/cat/1.png", "train/dog/1.png", "test/dog/2.png", "test/cat/3.png")
    >>> found = read_image_folders(dict.fromkeys(names, stored.getvalue()))
    >>> found.train.images.shape, found.test.labels.tolist(), found.lossy
    ((2, 2, 3, 3), [0, 1], False)
    """
    names = _names_by_split(files)
    classes = _classes(names)
    first, _ = _decode(names["train"][0], files[names["train"][0]])
    count = sum(map(len, names.values()))
    most = min(most, LARGEST_SET)
    if count * first.size > most:
        raise DataIntegrityError(
            f"{count:,} images of {first.size:,} bytes of pixels, but {most:,} "
            "bytes are the most that is read here, as all of them are kept in memory; make them "
            "smaller first, or unpack an archive that is so small and give the folder"
        )
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        parts = [_split(files, names[split], classes, first.shape, threads) for split in SPLITS]
    (train, lossy), (test, lossy_too) = parts
    return FolderImages(train, test, lossy or lossy_too)


def _split(
    files: Mapping[str, bytes],
    names: list[str],
    classes: tuple[str, ...],
    shape: tuple[int, ...],
    threads: ThreadPoolExecutor,
) -> tuple[Images, bool]:
    """The images of a split, and whether one of them was stored as JPEG."""
    images = np.empty((len(names), *shape), np.uint8)

    def decode(place: int) -> bool:
        name = names[place]
        images[place], jpeg = _decode(name, files[name], (shape[1], shape[0]))
        return jpeg

    lossy = any(list(threads.map(decode, range(len(names)), chunksize=64)))
    labels = np.array([classes.index(_class_of(name)) for name in names], np.uint8)
    images.setflags(write=False)
    labels.setflags(write=False)
    return Images(images, labels, classes), lossy


def _names_by_split(files: Mapping[str, bytes]) -> dict[str, list[str]]:
    names: dict[str, list[str]] = {split: [] for split in SPLITS}
    for name in files:
        parts = name.split("/")
        if len(parts) != 3 or parts[0] not in SPLITS or not name.lower().endswith(SUFFIXES):
            raise DataIntegrityError(
                f"{name}: isn't train/CLASS/NAME or test/CLASS/NAME with one of {SUFFIXES}, which "
                "was expected of image folders; move it away, or convert it"
            )
        names[parts[0]].append(name)
    for split, found in names.items():
        if not found:
            raise DataIntegrityError(
                f"{split}/: no images, but {split}/CLASS/NAME was expected; image folders need both"
                " train/ and test/"
            )
        found.sort(key=lambda name: name.split("/"))
    return names


def _class_of(name: str) -> str:
    return name.split("/")[1]


def _classes(names: Mapping[str, list[str]]) -> tuple[str, ...]:
    train, test = ({_class_of(name) for name in names[split]} for split in SPLITS)
    if train != test:
        raise DataIntegrityError(
            f"classes only in train/: {sorted(train - test)}, only in test/: "
            f"{sorted(test - train)}; the same classes were expected in both: add images or remove "
            "the folders"
        )
    if len(train) > 256:
        raise DataIntegrityError(
            f"{len(train)} classes, but 256 are the most that are read, as a label is one byte"
        )
    return tuple(sorted(train))


def _decode(
    name: str, content: bytes, size: tuple[int, int] | None = None
) -> tuple[UInt8[np.ndarray, "height width 3"], bool]:
    """An image's pixels, and whether it was stored as JPEG; no pixel of another size is decoded."""
    require("PIL")
    from PIL import Image

    try:
        with Image.open(io.BytesIO(content), formats=("JPEG", "PNG")) as image:
            _require_size(name, image.size, size)
            obstacle = _obstacle(image, content)
            if not obstacle and image.format == "PNG":
                require_all_rows(content)
            pixels = None if obstacle else np.asarray(image.convert("RGB"))
            orientation = image.getexif().get(ORIENTATION, UPRIGHT)
            lossy = image.format in JPEG_FORMATS
    except DataIntegrityError:
        raise
    # Pillow documents no list of what its decoders raise on a damaged file.
    except Exception as error:
        raise DataIntegrityError(
            f"{name}: can't be decoded ({type(error).__name__}: {error}), but a JPEG or PNG file "
            "was expected; copy it again"
        ) from error
    if pixels is None or orientation != UPRIGHT:
        obstacle = obstacle or f"the orientation {orientation} in its EXIF data"
        raise DataIntegrityError(
            f"{name}: {obstacle} isn't read, but upright RGB and L (grey) images of 8 bits a "
            "channel are; convert the images first"
        )
    return pixels, lossy


def _require_size(name: str, found: tuple[int, int], wanted: tuple[int, int] | None) -> None:
    shown = f"{name}: {found[0]}×{found[1]} pixels (width×height), but"
    if found[0] * found[1] > LARGEST_IMAGE:
        raise DataIntegrityError(
            f"{shown} at most {LARGEST_IMAGE:,} in all were expected; make it smaller first"
        )
    if wanted is not None and found != wanted:
        raise DataIntegrityError(
            f"{shown} {wanted[0]}×{wanted[1]} were expected, as in the first image; make them all "
            "the same size first"
        )


def _obstacle(image: Any, content: bytes) -> str | None:
    """What in an image's header makes turning it into RGB a choice, or None."""
    if image.format not in (*JPEG_FORMATS, "PNG"):
        return f"the format {image.format}"
    if image.mode not in ("RGB", "L"):
        return f"the mode {image.mode}"
    if "transparency" in image.info:
        return f"the mode {image.mode} with transparency"
    if image.format == "PNG" and image.n_frames > 1:
        return f"a PNG of {image.n_frames} pictures"
    # Pillow drops the lower byte of 16 bits of colour and gives the mode RGB all the same.
    if image.format == "PNG" and (content[PNG_HEADER] != b"IHDR" or content[PNG_DEPTH] > 8):
        return f"a depth of {content[PNG_DEPTH]} bits a channel"
    return None


def require_all_rows(content: bytes) -> None:
    """Refuse a PNG with fewer bytes of rows than its size asks for; Pillow would fill them in.

    Args:
        content: The file, which Pillow has opened.

    Raises:
        ValueError: As described above.
    """
    if len(content) <= PNG_INTERLACED or content[PNG_HEADER] != b"IHDR":
        raise ValueError("it does not begin with its header")
    width, height = struct.unpack(">II", content[PNG_SIZE])
    bits = content[PNG_DEPTH] * PNG_CHANNELS.get(content[PNG_DEPTH + 1], 1)
    passes = ADAM7 if content[PNG_INTERLACED] else ((0, 0, 1, 1),)
    expected = 0
    for left, top, step, down in passes:
        columns, rows = -(-(width - left) // step), -(-(height - top) // down)
        expected += max(rows, 0) * (1 + (columns * bits + 7) // 8) if columns > 0 else 0
    packed, start = [], 8
    while start + 8 <= len(content):
        length = int.from_bytes(content[start : start + 4])
        if content[start + 4 : start + 8] == b"IDAT":
            packed.append(content[start + 8 : start + 8 + length])
        start += length + 12
    if len(zlib.decompressobj().decompress(b"".join(packed), expected)) < expected:
        raise ValueError("it holds fewer pixels than its header says")
