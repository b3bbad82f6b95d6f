"""Image folders: train/CLASS/*.jpg|jpeg|png and test/CLASS/*.jpg|jpeg|png.

The classes are numbered in the order of their names and the images of a class come in the order of
theirs, so that a folder and an archive of it give the same arrays. Grey images become three equal
channels, which loses nothing; palettes, transparency, CMYK, 16 bits, several pictures in a PNG and
an orientation in which an image should be shown are refused, as turning them into RGB is a choice.

A damaged PNG file is noticed by its checksum, and one with fewer rows than its header says by what
Pillow leaves as it was. JPEG has no checksum, and its decoder goes on after an error within the
compressed pixels: only damage that keeps it from decoding is noticed.
"""

import io
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import UInt8

from convattn.data.cifar10_slice import DataIntegrityError, Images
from convattn.extras import require

SUFFIXES = (".jpg", ".jpeg", ".png")
SPLITS = ("train", "test")
ORIENTATION, UPRIGHT = 0x0112, 1  # an EXIF tag and its value for an image shown as it is stored
MAX_SET = 16 * 2**30  # bytes of pixels: the whole set lives in memory
MAX_IMAGE = 2**24  # pixels


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


def read_image_folders(files: Mapping[str, bytes], *, most: int = MAX_SET) -> FolderImages:
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
    >>> folders = read_image_folders(dict.fromkeys(names, stored.getvalue()))
    >>> folders.train.images.shape, folders.test.labels.tolist(), folders.lossy
    ((2, 2, 3, 3), [0, 1], False)
    """
    names = _names_by_split(files)
    classes = _classes(names)
    every = [name for split in SPLITS for name in names[split]]
    first, _ = _decode(every[0], files[every[0]])
    count = len(every)
    most = min(most, MAX_SET)
    if count * first.size > most:
        raise DataIntegrityError(
            f"{count:,} images of {first.size:,} bytes of pixels, but {most:,} "
            "bytes are the most that is read here, as all of them are kept in memory; make them "
            "smaller first, or unpack an archive that is so small and give the folder"
        )
    images = np.empty((count, *first.shape), np.uint8)

    def decode(index: int) -> bool:
        images[index], jpeg = _decode(every[index], files[every[index]], first.shape[1::-1])
        return jpeg

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        lossy = any(list(threads.map(decode, range(count))))
    labels = np.array([classes.index(_class_of(name)) for name in every], np.uint8)
    at = [len(names["train"])]
    train, test = (
        Images(pixels, numbers, classes)
        for pixels, numbers in zip(np.split(images, at), np.split(labels, at), strict=True)
    )
    return FolderImages(train, test, lossy)


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
    for split, split_names in names.items():
        if not split_names:
            raise DataIntegrityError(
                f"{split}/: no images, but {split}/CLASS/NAME was expected; image folders need both"
                " train/ and test/"
            )
        split_names.sort(key=lambda name: name.split("/"))
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
    name: str, content: bytes, size: tuple[int, ...] | None = None
) -> tuple[UInt8[np.ndarray, "height width 3"], bool]:
    """An image's pixels, and whether it was stored as JPEG; no pixel of another size is decoded."""
    require("PIL")
    from PIL import Image

    try:
        with Image.open(io.BytesIO(content), formats=("JPEG", "PNG")) as image:
            _require_plain(image, content, size)
            return np.asarray(image.convert("RGB")), image.format != "PNG"
    except DataIntegrityError as error:
        raise DataIntegrityError(f"{name}: {error}") from None
    # Pillow documents no list of what its decoders raise on a damaged file.
    except Exception as error:
        raise DataIntegrityError(
            f"{name}: can't be decoded ({type(error).__name__}: {error}), but a JPEG or PNG file "
            "was expected; copy it again"
        ) from error


def _require_plain(image: Any, content: bytes, size: tuple[int, ...] | None) -> None:
    """Refuse an image that is large, of another size, damaged, or that RGB makes a choice of."""
    size_text = f"{image.width}×{image.height} pixels (width×height), but"
    if image.width * image.height > MAX_IMAGE:
        raise DataIntegrityError(
            f"{size_text} at most {MAX_IMAGE:,} in all were expected; make it smaller first"
        )
    if size not in (None, image.size):
        raise DataIntegrityError(
            f"{size_text} {size[0]}×{size[1]} were expected, as in the first image; make them all "
            "the same size first"
        )
    png, orientation = image.format == "PNG", UPRIGHT
    obstacle = None
    if image.mode not in ("RGB", "L"):
        obstacle = f"the mode {image.mode}"
    elif "transparency" in image.info:
        obstacle = f"the mode {image.mode} with transparency"
    elif png and image.n_frames > 1:
        obstacle = f"a PNG of {image.n_frames} pictures"
    # Pillow drops the lower byte of 16 bits of colour and gives the mode RGB all the same.
    elif png and image.tile and image.tile[0].args.endswith(";16B"):
        obstacle = "a depth of 16 bits a channel"
    else:
        if png:
            require_all_rows(image, content)
        if (orientation := image.getexif().get(ORIENTATION, UPRIGHT)) != UPRIGHT:
            obstacle = f"the orientation {orientation} in its EXIF data"
    if obstacle:
        raise DataIntegrityError(
            f"{obstacle} isn't read, but upright RGB and L (grey) images of 8 bits a channel are; "
            "convert the images first"
        )


def require_all_rows(image: Any, content: bytes) -> None:
    """Decode a PNG, and refuse it if it has fewer rows than its size asks for.

    Pillow leaves such rows as they were, so it decodes onto two colours.

    Args:
        image: What Pillow has opened, and not decoded.
        content: The file.
    """
    from PIL import Image

    with Image.open(io.BytesIO(content), formats=("PNG",)) as again:
        for each, colour in ((image, 0), (again, 255)):
            each.im = Image.new(each.mode, each.size, colour).im
        if image.tobytes() != again.tobytes():
            raise ValueError("it holds fewer pixels than its header says")
