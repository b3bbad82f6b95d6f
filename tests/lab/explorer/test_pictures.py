"""Pictures are taken as a viewer shows them, and refused where that is not known."""

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image, ImageOps

from convattn_lab.explorer.pictures import PictureRefused, read_picture

ORIENTATION = 0x0112


def saved(picture: Image.Image, kind: str = "PNG", **how) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, kind, **how)
    return buffer.getvalue()


def pixels(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)


TURNS = {
    1: lambda x: x,
    2: lambda x: x[:, ::-1],
    3: lambda x: x[::-1, ::-1],
    4: lambda x: x[::-1],
    5: lambda x: x.swapaxes(0, 1),
    6: lambda x: np.rot90(x, -1),
    7: lambda x: x[::-1, ::-1].swapaxes(0, 1),
    8: lambda x: np.rot90(x),
}


@pytest.mark.parametrize("orientation", TURNS)
def test_it_is_turned_as_it_says(orientation) -> None:
    stored = Image.fromarray(pixels(4, 6, 3))
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    expected = TURNS[orientation](np.asarray(stored))
    assert (read_picture(saved(stored, exif=exif), expected.shape[:2]) == expected).all()


def test_a_large_photograph_is_decoded_at_half_its_size_and_turned(monkeypatch) -> None:
    sizes, convert = [], Image.Image.convert

    def converted(picture, mode):
        sizes.append(picture.size)
        return convert(picture, mode)

    exif = Image.Exif()
    exif[ORIENTATION] = 6
    stored = Image.new("RGB", (3000, 2000), "black")
    stored.paste((255, 255, 255), (0, 0, 3000, 1000))
    content = saved(stored, "JPEG", exif=exif)
    monkeypatch.setattr(Image.Image, "convert", converted)
    result = read_picture(content, (6, 4))
    assert sizes[0] == (1000, 1500)
    assert (result[:, 3] > 200).all()  # what was above is at the right
    assert (result[:, 0] < 50).all()


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "PPM"])
def test_sixteen_bits_are_scaled(kind) -> None:
    values = np.array([[0, 127, 128, 257, 258], [32767, 32768, 65278, 65407, 65535]], np.uint16)
    result = read_picture(saved(Image.fromarray(values), kind), (2, 5))
    assert (result == np.rint(values / 257)[..., None]).all()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.full((2, 2), 70_000, np.int32), "grey values of 70000 to 70000, but expected 0 to"),
        (np.full((2, 2), -1, np.int32), "grey values of -1 to -1"),
        (np.full((2, 2), 0.5, np.float32), "the picture holds floats"),
    ],
)
def test_numbers_of_unknown_range_are_refused(values, message) -> None:
    with pytest.raises(PictureRefused, match=message):
        read_picture(saved(Image.fromarray(values), "TIFF"), (2, 2))


@pytest.mark.parametrize("mode", ["RGBA", "LA"])
def test_what_is_transparent_lies_on_white(mode) -> None:
    stored = pixels(3, 5, len(mode))
    stored[0, :, -1], stored[1, :, -1] = 0, 255
    result = read_picture(saved(Image.fromarray(stored, mode)), (3, 5))
    colour, alpha = stored[..., :-1].astype(float), stored[..., -1:] / 255
    expected = colour * alpha + 255 * (1 - alpha)
    assert np.abs(result - expected).max() <= 1
    assert (result[0] == 255).all()
    assert (result[1] == stored[1, :, :-1]).all()


def test_a_transparent_colour_of_a_palette_is_white() -> None:
    stored = Image.new("P", (4, 2), 1)
    stored.putpalette([255, 0, 0, 0, 0, 255])
    stored.paste(0, (0, 0, 2, 2))
    result = read_picture(saved(stored, "GIF", transparency=0), (2, 4))
    assert result[0].tolist() == [[255] * 3] * 2 + [[0, 0, 255]] * 2


def test_grey_pixels_stay_as_they_are() -> None:
    grey = ImageOps.grayscale(Image.fromarray(pixels(4, 6, 3)))
    assert (read_picture(saved(grey), (4, 6)) == np.asarray(grey)[..., None]).all()


def tiled(side: int, tile: tuple[int, int]) -> bytes:
    """A TIFF of a square in one tile, deflated; all of it is 7, however large the tile."""
    body = zlib.compress(bytes([7]) * 3 * min(tile[0] * tile[1], 2**12))
    numbers = {256: side, 257: side, 259: 8, 262: 2, 277: 3, 284: 1}
    numbers |= {322: tile[0], 323: tile[1], 325: len(body)}
    start = 8 + 2 + 12 * (len(numbers) + 2) + 4  # after the header and the directory
    entries = [(tag, 4, 1, number) for tag, number in numbers.items()]
    entries += [(258, 3, 3, start), (324, 4, 1, start + 6)]
    directory = b"".join(struct.pack("<HHII", *entry) for entry in sorted(entries))
    head = b"II*\0" + struct.pack("<IH", 8, len(entries)) + directory + bytes(4)
    return head + struct.pack("<HHH", 8, 8, 8) + body


def test_a_tile_is_no_larger_than_a_picture_may_be() -> None:
    assert (read_picture(tiled(4, (64, 64)), (4, 4)) == 7).all()
    with pytest.raises(PictureRefused, match="tiles of 2048 × 2064 pixels, but expected at most"):
        read_picture(tiled(4, (2048, 2064)), (4, 4))
