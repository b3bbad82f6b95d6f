"""Figure 6: a small network and the vision transformer that it is compiled into, value by value."""

import base64
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from convattn.compile import to_vision_transformer
from convattn.compile.parameters import Constants

EDGES = (  # of the mean of red, green and blue: to the right, downwards, and around a pixel
    ((-1, 0, 1), (-2, 0, 2), (-1, 0, 1)),
    ((-1, -2, -1), (0, 0, 0), (1, 2, 1)),
    ((-1, -1, -1), (-1, 8, -1), (-1, -1, -1)),
)
SETTINGS = {
    "Λ, s and S so large that rounding is all": None,
    "Λ = 100, s = 30, S = 16, for training": Constants(100.0, 30.0, 16.0, 1e-6),
}
NAMES = ("image", "edges", "blur added", "stride 2")
PATCH = 2


def network(images: Any) -> Any:
    """Edges; a blur beside a shortcut; a stride; the mean of all pixels."""
    edges = np.repeat(np.array(EDGES, np.float32).transpose(1, 2, 0)[:, :, None], 3, axis=2) / 6
    features = jax.nn.relu(_convolution(images, edges, 1))
    blur = np.outer((1, 2, 1), (1, 2, 1)).astype(np.float32)[:, :, None, None] / 16
    features = jax.nn.relu(features + _convolution(features, blur.repeat(3, axis=3), 3) - 0.25)
    sharpen = edges[:, :, :1, 2:].repeat(3, axis=3)
    return jax.nn.relu(_convolution(features, sharpen, 3, 2)).mean((1, 2))


def _convolution(images: Any, kernel: np.ndarray, groups: int, stride: int = 1) -> Any:
    return jax.lax.conv_general_dilated(
        images,
        jnp.asarray(kernel),
        (stride, stride),
        ((1, 1), (1, 1)),
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        feature_group_count=groups,
    )


def compiled_figure(pixels: np.ndarray) -> list[dict[str, Any]]:
    """For each setting its size, and every map of the network beside that in the stream.

    Args:
        pixels: `[rows, columns, 3]`, bytes.
    """
    images = jnp.asarray(pixels[None].astype(np.float32) / 255)
    layers = []
    for name, constants in SETTINGS.items():
        compiled = to_vision_transformer(network, images, patch_size=PATCH, constants=constants)
        report = compiled.report
        assert report is not None
        features = zip(NAMES, compiled.features(images)[: len(NAMES)], strict=True)
        layers.append(
            {
                "name": name,
                "size": str(report.size),
                "difference": report.difference,
                "bound": float(report.bound.total.max()),
                "largest": report.largest,
                "maps": [
                    _maps(name, each.blocks, each.of_network[0], each.of_transformer[0])
                    for name, each in features
                ],
            }
        )
    return layers


def _maps(name: str, blocks: int, ours: np.ndarray, theirs: np.ndarray) -> dict[str, Any]:
    """Both and their difference as bytes of the largest, which they come with."""
    difference = np.abs(theirs - ours)
    most, gap = float(ours.max()), float(difference.max())
    return {
        "name": name,
        "blocks": blocks,
        "height": len(ours),
        "width": ours.shape[1],
        "channels": ours.shape[2],
        "network": _bytes(ours, most),
        "transformer": _bytes(theirs, most),
        "gap": _bytes(difference, gap),
        "largest": most,
        "difference": gap,
    }


def _bytes(numbers: np.ndarray, most: float) -> str:
    scaled = np.clip(numbers * (255 / most if most else 0.0), 0, 255)
    return base64.b64encode(np.rint(scaled).astype(np.uint8).tobytes()).decode()
