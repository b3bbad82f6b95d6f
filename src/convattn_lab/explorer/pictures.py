"""Pictures that come in and go out: what is refused, and how they are brought to size."""

import io
from math import prod

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageOps, UnidentifiedImageError

from convattn.data.image_folders import require_all_rows

MAX_BYTES = 8 * 2**20
MAX_PIXELS = 2048**2  # that are decoded: 17 MB at four bytes each
TILE_SIDES = (322, 323)  # TIFF's tags of the width and the height
WHITE = 2**16 - 1  # of 16 bits
HALVED = ("JPEG", "MPO")  # can be decoded at half their size, so that 4096² are taken
FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF", "PPM")

Picture = UInt8[np.ndarray, "height width 3"]


class PictureRefused(ValueError):
    """What was sent is no picture that is taken; the message says why."""


def read_picture(content: bytes, size: tuple[int, int]) -> Picture:
    """The picture of a file, in RGB, its middle cut to the shape of `size` and brought to it.

    It is what a viewer shows: turned as its EXIF orientation says, transparent parts on white, and
    grey values of 16 bits scaled to 8.

    Raises:
        PictureRefused: For files that are empty or too large, of another format, of more than
            2048² pixels (4096² of JPEG, which is then decoded at half its size), cut short or
            damaged, and of numbers whose black and white are not known. Nothing is decoded before
            its size is known.
    """
    if not content or len(content) > MAX_BYTES:
        raise PictureRefused(
            f"the file has {len(content):,} bytes, but expected 1 to {MAX_BYTES:,}; send a "
            "smaller picture"
        )
    try:
        picture = Image.open(io.BytesIO(content), formats=FORMATS)
        width, height = picture.size
        limit = MAX_PIXELS * (4 if picture.format in HALVED else 1)
        if width * height > limit:
            raise PictureRefused(
                f"the picture has {width:,} × {height:,} pixels, but expected at most "
                f"{limit:,}; make it smaller"
            )
        if picture.format == "TIFF":
            _require_small_tiles(picture)
        if width * height > MAX_PIXELS:
            picture.draft(None, (width // 2, height // 2))
        if picture.format == "PNG":
            require_all_rows(picture, content)
        rgb = _as_rgb(picture)
    except PictureRefused:
        raise
    except Image.DecompressionBombError as error:  # Pillow's own, larger limit
        raise PictureRefused(f"{error}; expected at most {MAX_PIXELS:,} pixels") from error
    except Exception as error:  # decoders of damaged files raise whatever they come upon
        why = "it is none" if isinstance(error, UnidentifiedImageError) else f"{error}"
        raise PictureRefused(
            f"the file cannot be read as a picture ({why}), but expected a whole "
            f"{', '.join(FORMATS[:-1])} or {FORMATS[-1]}; it is damaged, cut short, or of another "
            "format"
        ) from error
    return resized(np.asarray(rgb), size)


def _require_small_tiles(picture: Image.Image) -> None:
    """A tile is decoded whole, however little of it lies within the picture."""
    tags = getattr(picture, "tag_v2", {})
    sides = [tags.get(tag, 1) for tag in TILE_SIDES]
    if not all(isinstance(side, int) for side in sides) or prod(sides) > MAX_PIXELS:
        raise PictureRefused(
            f"the picture has tiles of {' × '.join(map(str, sides))} pixels, but expected at most "
            f"{MAX_PIXELS:,}; save it without tiles"
        )


def _as_rgb(picture: Image.Image) -> Image.Image:
    ImageOps.exif_transpose(picture, in_place=True)
    if picture.mode.startswith("I"):
        values = np.asarray(picture)
        if values.min() < 0 or values.max() > WHITE:
            raise PictureRefused(
                f"the picture has grey values of {values.min()} to {values.max()}, but expected 0 "
                f"to {WHITE}; save it with 8 or 16 bits"
            )
        scaled = (values.astype(np.uint32) + WHITE // 510) // (WHITE // 255)
        picture = Image.fromarray(scaled.astype(np.uint8))
    elif picture.mode == "F":
        raise PictureRefused(
            "the picture holds floats, but expected 8 or 16 bits, whose black and white are known; "
            "save it as PNG"
        )
    if picture.has_transparency_data:
        picture = picture.convert("RGBA")
        white = Image.new("RGBA", picture.size, "white")
        picture = Image.alpha_composite(white, picture)
    return picture.convert("RGB")


def resized(pixels: Picture, size: tuple[int, int]) -> Picture:
    """The middle of a picture, in the shape of `size`, at that size (bicubic).

    >>> resized(np.zeros((4, 8, 3), np.uint8), (2, 2)).shape
    (2, 2, 3)
    """
    height, width = pixels.shape[:2]
    if (height, width) == size:
        return pixels
    scale = min(height / size[0], width / size[1])
    rows, columns = (side * scale for side in size)
    top, left = (height - rows) / 2, (width - columns) / 2
    box = (left, top, left + columns, top + rows)
    picture = Image.fromarray(pixels).resize((size[1], size[0]), Image.Resampling.BICUBIC, box=box)
    return np.asarray(picture)


def as_png(pixels: Picture) -> bytes:
    """A PNG of the pixels."""
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()
