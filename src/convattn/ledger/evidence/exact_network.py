"""A small residual network in fractions, as it was trained and as attention.

Batch normalisation is rational where every variance plus ε is the square of a fraction, and softmax
where e^M is: e^M = 1 + N(1/ε - 1). Written apart from the library, in NumPy arrays of fractions.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
from jaxtyping import Int, Shaped

from convattn.ledger.evidence.exact_attention import exact_softmax


@dataclass(frozen=True)
class Normalized:
    """A convolution and its batch normalisation.

    Attributes:
        `kernel` HWIO of integers; `mean`, `deviation` (the root of variance + ε), `scale` and
        `shift`, `[out]`, fractions; `stride`.
    """

    kernel: Int[np.ndarray, "rows columns in_channels out_channels"]
    mean: Shaped[np.ndarray, "out_channels"]
    deviation: Shaped[np.ndarray, "out_channels"]
    scale: Shaped[np.ndarray, "out_channels"]
    shift: Shaped[np.ndarray, "out_channels"]
    stride: int


Layer = Callable[[Normalized, np.ndarray], np.ndarray]


def draw_normalized(
    rng: np.random.Generator, size: int, inputs: int, outputs: int, stride: int
) -> Normalized:
    """Small integers, and statistics that are fractions.

    >>> draw_normalized(np.random.default_rng(0), 3, 1, 2, 1).kernel.shape
    (3, 3, 1, 2)
    """

    def fractions(low: int, high: int) -> np.ndarray:
        parts = [
            Fraction(int(n), int(rng.integers(1, 7))) for n in rng.integers(low, high, outputs)
        ]
        return np.array(parts, object)

    kernel = rng.integers(-3, 4, (size, size, inputs, outputs))
    return Normalized(
        kernel, fractions(-5, 6), fractions(1, 6), fractions(1, 4), fractions(-4, 5), stride
    )


def normalized(layer: Normalized, image: np.ndarray) -> np.ndarray:
    """(W * x - m)·γ/√(v + ε) + β at every stride-th pixel of one image.

    >>> parts = (np.array([part], object) for part in (Fraction(1), Fraction(2), 3, 4))
    >>> layer = Normalized(np.full((1, 1, 1, 1), 5), *parts, 1)
    >>> normalized(layer, np.array([[[1]]], object)).item()
    Fraction(10, 1)
    """
    found = _padded_sum(layer.kernel.astype(object), image)
    found = (found - layer.mean) * (layer.scale / layer.deviation) + layer.shift
    return found[:: layer.stride, :: layer.stride]


def attended(leak: Fraction) -> Layer:
    """The same layer as K² + 1 heads that leak so much: S.finite on the folded kernel.

    Head δ has the score M at q + δ and 0 at every other key, ring included, and the map
    W_δ/(1 - ε); the last head has no score, and the map -ε/(1 - ε)·Σ_δ W_δ.
    """

    def apply(layer: Normalized, image: np.ndarray) -> np.ndarray:
        factor = layer.scale / layer.deviation
        kernel = layer.kernel.astype(object) * factor
        reach = kernel.shape[0] // 2
        ringed = np.pad(image, [(reach, reach), (reach, reach), (0, 0)])
        rows, columns = image.shape[:2]
        tokens = ringed.reshape(-1, image.shape[2])
        keys = np.arange(len(tokens)).reshape(ringed.shape[:2])
        base = 1 + len(tokens) * (1 / leak - 1)
        total = np.zeros((rows * columns, kernel.shape[3]), object)
        for row, column in product(range(kernel.shape[0]), range(kernel.shape[1])):
            target = keys[row : row + rows, column : column + columns].reshape(-1)
            scores = (np.arange(len(tokens)) == target[:, None]).astype(int)
            weights = exact_softmax(scores, base)
            total = total + weights @ (tokens @ (kernel[row, column] / (1 - leak)))
        uniform = exact_softmax(np.zeros((1, len(tokens)), int), base)
        taken = kernel.sum(axis=(0, 1)) * (-leak / (1 - leak))
        total = total + uniform @ (tokens @ taken)
        bias = layer.shift - layer.mean * factor
        found = (total + bias).reshape(rows, columns, -1)
        return found[:: layer.stride, :: layer.stride]

    return apply


def _padded_sum(kernel: np.ndarray, image: np.ndarray) -> np.ndarray:
    """Σ_δ x_(q+δ) W_δ with zeros outside."""
    reach = kernel.shape[0] // 2
    ringed = np.pad(image, [(reach, reach), (reach, reach), (0, 0)])
    rows, columns = image.shape[:2]
    total = np.zeros((rows, columns, kernel.shape[3]), object)
    for row, column in product(range(kernel.shape[0]), range(kernel.shape[1])):
        total = total + ringed[row : row + rows, column : column + columns] @ kernel[row, column]
    return total


def exact_logits(
    layers: dict[str, Normalized],
    classifier: Int[np.ndarray, "features classes"],
    image: Int[np.ndarray, "height width channels"],
    layer: Layer,
) -> Shaped[np.ndarray, "classes"]:
    """A stem, a residual block with a shortcut of its own, the mean, a classifier, in fractions.

    Args:
        layers: `stem`, `first`, `second`, `shortcut`.
        layer: How a layer is computed, `normalized` or `attended(leak)`.
    """
    found = np.maximum(layer(layers["stem"], image.astype(object)), 0)
    branch = layer(layers["second"], np.maximum(layer(layers["first"], found), 0))
    found = np.maximum(branch + layer(layers["shortcut"], found), 0)
    pixels = found.reshape(-1, found.shape[2])
    return (pixels.sum(axis=0) * Fraction(1, len(pixels))) @ classifier.astype(object)
