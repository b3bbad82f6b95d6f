"""What the figures of the report start from: small real images, kernels, thresholds, models."""

import base64
import math
from functools import cache
from typing import Any

import ml_dtypes

from convattn.data.cifar10_slice import load_cifar10_slice
from convattn_ledger.bounds.vision_transformers import VISION_TRANSFORMERS
from convattn_ledger.page.compiled_figure import compiled_figure

IMAGES = (("horse", 7), ("ship", 8), ("frog", 6))
DTYPES = ("float16", "bfloat16", "float32", "float64")
KERNELS: dict[str, list[list[int]]] = {
    "emboss": [[-5, -4, -2], [-3, 6, 3], [2, 4, 5]],  # the first: it leaves no head idle
    "Sobel": [[1, 0, -1], [2, 0, -2], [1, 0, -1]],
    "sharpen": [[0, -1, 0], [-1, 5, -1], [0, -1, 0]],
    "Laplace": [[0, 1, 0], [1, -4, 1], [0, 1, 0]],
    "blur": [[1, 2, 1], [2, 4, 2], [1, 2, 1]],
    "shift": [[0, 0, 0], [0, 0, 1], [0, 0, 0]],
    "blur, 5 × 5": [[i * j for j in (1, 4, 6, 4, 1)] for i in (1, 4, 6, 4, 1)],
}


def _one_hot_scores(dtype: str) -> tuple[float, float]:
    """From which score above all others softmax is exactly one-hot: subnormals flushed, or kept.

    Source: C20.alpha46 of this project's ledger.

    Example:
        >>> [round(score, 1) for score in _one_hot_scores("float32")]
        [87.3, 104.0]
    """
    number = ml_dtypes.finfo(dtype)
    exponent, precision = int(number.minexp), int(number.nmant) + 1
    return -exponent * math.log(2), (precision - exponent) * math.log(2)


@cache
def figure_data() -> dict[str, Any]:
    """Everything as JSON can hold it; the pixels of an image are bytes in base64."""
    test = load_cifar10_slice("test")
    images: dict[str, dict[str, Any]] = {}
    compiled: list[dict[str, Any]] = []
    for name, label in IMAGES:
        pixels = test.images[test.labels == label][0]
        height, width, channels = pixels.shape
        images[name] = {
            "height": height,
            "width": width,
            "channels": channels,
            "pixels": base64.b64encode(pixels.tobytes()).decode(),
        }
        compiled = compiled or compiled_figure(pixels)
    return {
        "images": images,
        "compiled": compiled,
        "kernels": KERNELS,
        "roundoff": {dtype: float(ml_dtypes.finfo(dtype).eps) / 2 for dtype in DTYPES},
        "thresholds": {dtype: _one_hot_scores(dtype) for dtype in DTYPES},
        "models": [
            {
                "model": size.model,
                "patch": size.patch_size,
                "heads": size.heads,
                "width": size.head_dim,
                "holdsPatch": size.holds_patch,
            }
            for size in VISION_TRANSFORMERS
        ],
    }
