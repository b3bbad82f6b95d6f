"""Four training and two test images of 4×5 pixels in two classes, as files."""

import io

import numpy as np
from PIL import Image

PIXELS = np.random.default_rng(0).integers(0, 256, (6, 4, 5, 3), np.uint8)


def stored(pixels: np.ndarray, kind: str = "PNG", mode: str | None = None, **options) -> bytes:
    """An image file; `mode` converts it first."""
    file = io.BytesIO()
    image = Image.fromarray(pixels)
    (image.convert(mode) if mode else image).save(file, kind, **options)
    return file.getvalue()


FILES = {
    "test/dog/0.png": stored(PIXELS[5]),
    "train/dog/b.png": stored(PIXELS[3]),
    "train/dog/a.PNG": stored(PIXELS[2]),
    "train/cat/2.png": stored(PIXELS[1]),
    "train/cat/10.png": stored(PIXELS[0]),
    "test/cat/9.png": stored(PIXELS[4]),
}
