"""Four training and two test images of 4×5 pixels in two classes, as files."""

import io
import struct
import zlib

import numpy as np
from PIL import Image

PIXELS = np.random.default_rng(0).integers(0, 256, (6, 4, 5, 3), np.uint8)


def stored(pixels: np.ndarray, kind: str = "PNG", mode: str | None = None, **options) -> bytes:
    """An image file; `mode` converts it first."""
    file = io.BytesIO()
    image = Image.fromarray(pixels)
    (image.convert(mode) if mode else image).save(file, kind, **options)
    return file.getvalue()


def png_of_16_bits(first: bytes = b"IHDR") -> bytes:
    """Black, in three channels of 16 bits, which Pillow reads but can't write."""

    def chunk(name: bytes, content: bytes) -> bytes:
        body = name + content
        return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))

    before = b"" if first == b"IHDR" else chunk(first, bytes(9))
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 5, 4, 16, 2, 0, 0, 0))
    rows = chunk(b"IDAT", zlib.compress(4 * bytes(1 + 5 * 6)))
    return b"\x89PNG\r\n\x1a\n" + before + header + rows + chunk(b"IEND", b"")


def turned(orientation: int, kind: str) -> bytes:
    """The first image, with the orientation in which it should be shown."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    return stored(PIXELS[0], kind, exif=exif)


FILES = {
    "test/dog/0.png": stored(PIXELS[5]),
    "train/dog/b.png": stored(PIXELS[3]),
    "train/dog/a.PNG": stored(PIXELS[2]),
    "train/cat/2.png": stored(PIXELS[1]),
    "train/cat/10.png": stored(PIXELS[0]),
    "test/cat/9.png": stored(PIXELS[4]),
}
