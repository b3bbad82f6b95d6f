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


def _chunk(name: bytes, content: bytes) -> bytes:
    body = name + content
    return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))


def _png(rows: bytes, depth: int, interlaced: bool = False, before: bytes = b"") -> bytes:
    """A PNG of 5×4 pixels in three channels."""
    header = _chunk(b"IHDR", struct.pack(">IIBBBBB", 5, 4, depth, 2, 0, 0, interlaced))
    data = _chunk(b"IDAT", zlib.compress(rows))
    return b"\x89PNG\r\n\x1a\n" + before + header + data + _chunk(b"IEND", b"")


def png_of_16_bits(first: bytes = b"IHDR") -> bytes:
    """Black, in three channels of 16 bits, which Pillow reads but can't write."""
    before = b"" if first == b"IHDR" else _chunk(first, bytes(9))
    return _png(4 * bytes(1 + 5 * 6), 16, before=before)


def black_png(interlaced: bool, missing: int) -> bytes:
    """Black, without the last bytes of its rows, and yet with all checksums."""
    # the columns and rows of Adam7's passes that 5×4 pixels have
    passes = ((1, 1), (1, 1), (1, 1), (3, 1), (2, 2), (5, 2))
    rows = sum(r * (1 + 3 * c) for c, r in passes) if interlaced else 4 * (1 + 5 * 3)
    return _png(bytes(rows - missing), 8, interlaced)


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
