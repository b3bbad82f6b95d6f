"""RandAugment's operations done by Pillow, as timm calls it: the oracle."""

import numpy as np
from PIL import Image, ImageEnhance, ImageOps

FILL = (200, 3, 77)


def by_pillow(pixels: np.ndarray, name: str, given: dict[str, int], negative: bool) -> np.ndarray:
    """The operation of this name, with the arguments of `Arguments`."""
    image = Image.fromarray(pixels)
    sign = -1 if negative else 1
    factor = given["less" if negative else "more"] / 2**12
    if name in ("Color", "Contrast", "Brightness", "Sharpness"):
        return np.asarray(getattr(ImageEnhance, name)(image).enhance(factor))
    if name == "AutoContrast":
        return np.asarray(ImageOps.autocontrast(image))
    if name == "Equalize":
        return np.asarray(ImageOps.equalize(image))
    if name == "Invert":
        return np.asarray(ImageOps.invert(image))
    if name == "Posterize":  # of 0 bits, which Pillow refuses, nothing is left
        bits = given["bits"]
        return np.asarray(ImageOps.posterize(image, bits)) if bits else np.zeros_like(pixels)
    if name == "Solarize":
        return np.asarray(ImageOps.solarize(image, given["threshold"]))
    if name == "SolarizeAdd":
        table = [
            min(255, level + given["addition"]) if level < 128 else level for level in range(256)
        ]
        return np.asarray(image.point(table * 3))
    return np.asarray(mapped(image, matrix(image, name, given, sign)))


def matrix(image: Image.Image, name: str, given: dict[str, int], sign: int) -> tuple[float, ...]:
    """(a, b, c, d, e, f) of an affine map, as timm and Pillow's `rotate` make it."""
    if name == "Rotate":
        cosine, sine = given["cosine"] / 2**16, sign * given["sine"] / 2**16
        x, y = image.width / 2, image.height / 2
        return (
            *(cosine, -sine, x - cosine * x + sine * y),
            *(sine, cosine, y - sine * x - cosine * y),
        )
    return {
        "ShearX": (1, sign * given["shear"] / 2**16, 0, 0, 1, 0),
        "ShearY": (1, 0, 0, sign * given["shear"] / 2**16, 1, 0),
        "TranslateX": (1, 0, sign * given["across"] / 2**17, 0, 1, 0),
        "TranslateY": (1, 0, 0, 0, 1, sign * given["down"] / 2**17),
    }[name]


def mapped(image: Image.Image, affine: tuple[float, ...]) -> Image.Image:
    given = {"resample": Image.Resampling.BILINEAR, "fillcolor": FILL}
    return image.transform(image.size, Image.Transform.AFFINE, affine, **given)
