"""AutoContrast for every darkest and brightest value: Pillow computes it in double precision."""

import jax
import numpy as np
from PIL import Image, ImageOps

from convattn.lab.data.variation.operations.lookup import autocontrast_table, look_up, shortfalls

PAIRS = [(low, high) for low in range(256) for high in range(low, 256)]  # 32,896
RAMPS = np.array([np.arange(256).clip(*pair) for pair in PAIRS[: len(PAIRS) // 3 * 3]])
PICTURES = RAMPS.reshape(-1, 3, 1, 256).transpose(0, 2, 3, 1).astype(np.int32)


def test_every_pair_of_extremes_is_as_in_pillow() -> None:
    def contrast(image):
        return look_up(image, autocontrast_table(image)[None], np.int32(0))

    found = np.asarray(jax.jit(jax.vmap(contrast))(PICTURES))
    pixels = PICTURES.astype(np.uint8)
    expected = np.array([ImageOps.autocontrast(Image.fromarray(each)) for each in pixels])
    assert np.array_equal(found, expected)
    assert not np.array_equal(exact(PICTURES), expected)  # without the shortfalls it is another


def exact(pictures: np.ndarray) -> np.ndarray:
    low = pictures.min(axis=(1, 2), keepdims=True)
    width = pictures.max(axis=(1, 2), keepdims=True) - low
    stretched = 255 * (pictures - low) // np.maximum(width, 1)
    return np.where(width > 0, stretched, pictures)


def test_the_shortfalls_are_those_of_double_precision() -> None:
    """Counted by a loop over all extremes and all quotients that are integers."""
    which, short = shortfalls()
    rng = np.random.default_rng(0)
    for low in range(0, 256, 5):
        for high in rng.integers(low + 1, 257, 20).clip(max=255).tolist():
            if high == low:
                continue
            scale = 255.0 / (high - low)
            offset = -low * scale
            for value in range(low, high + 1):
                quotient, rest = divmod(255 * (value - low), high - low)
                falls = min(int(value * scale + offset), 255) < quotient
                assert falls == (rest == 0 and short[which[low, high], quotient])
    assert len(np.unique(which)) == len(short) == 223
