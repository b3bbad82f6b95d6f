"""The CNNs of the pairs: dyadic numbers, so that rational arithmetic and float64 agree on them."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

ORDER, PRECISION = ("NCHW", "OIHW", "NCHW"), lax.Precision.HIGHEST


@dataclass(frozen=True, eq=False)
class Layer:
    """A convolution and ReLU.

    Attributes:
        kernel: `[out_channels, in_channels, rows, columns]`.
        bias: `[out_channels]`.
        stride, dilation: Of both axes.
        padding: `"SAME"` or `"VALID"`.
        adds_input: Whether its input is added before ReLU.
    """

    kernel: np.ndarray
    bias: np.ndarray
    stride: int = 1
    dilation: int = 1
    padding: str = "SAME"
    adds_input: bool = False

    def offsets(self, sides: tuple[int, int]) -> list[tuple[int, int]]:
        """By axis, pixels of zeros before and after, as XLA lays them."""
        widths = []
        for side, taps in zip(sides, self.kernel.shape[2:], strict=True):
            reach = self.dilation * (taps - 1)
            steps = -(-side // self.stride)
            total = max((steps - 1) * self.stride + reach + 1 - side, 0)
            widths.append((0, 0) if self.padding == "VALID" else (total // 2, total - total // 2))
        return widths


@dataclass(frozen=True, eq=False)
class Network:
    """A CNN.

    Attributes:
        image: Channels, rows and columns.
        layers: One after the other.
        classifier: `[features, classes]`, of the mean of each channel, or of all points.
        bias: `[classes]`.
        reads_points: Whether the classifier reads all points.
    """

    image: tuple[int, int, int]
    layers: tuple[Layer, ...]
    classifier: np.ndarray
    bias: np.ndarray
    reads_points: bool = False

    def __call__(self, images: Any) -> Any:
        """The logits `[batch, classes]` of images `[batch, channels, rows, columns]`, in JAX."""
        x = self.maps(images)
        weights = self.weights(x.shape[2] * x.shape[3]).astype(x.dtype)
        logits = jnp.matmul(x.reshape(len(x), -1), weights, precision=PRECISION)
        return logits + self.bias.astype(x.dtype)

    def maps(self, images: Any) -> Any:
        """What the classifier reads, `[batch, channels, rows, columns]`."""
        x = jnp.asarray(images)
        for layer in self.layers:
            y = lax.conv_general_dilated(
                x,
                jnp.asarray(layer.kernel, x.dtype),
                (layer.stride, layer.stride),
                layer.padding,
                rhs_dilation=(layer.dilation, layer.dilation),
                dimension_numbers=ORDER,
                precision=PRECISION,
            )
            y = y + layer.bias.astype(x.dtype)[:, None, None]
            x = jax.nn.relu(y + x if layer.adds_input else y)
        return x

    def weights(self, points: int) -> np.ndarray:
        """The classifier of all points of maps of so many, `[channels · points, classes]`."""
        return self.classifier if self.reads_points else self.classifier.repeat(points, 0) / points


class Drawn:
    """Draws layers of dyadic numbers."""

    def __init__(self, seed: int, scale: int = 4) -> None:
        self.rng, self.scale = np.random.default_rng(seed), scale

    def layer(self, outputs: int, inputs: int, size: int = 3, **options: Any) -> Layer:
        """A kernel of multiples of 1/8, and a bias of multiples of 1/16."""
        kernel = self.rng.integers(-self.scale, self.scale + 1, (outputs, inputs, size, size)) / 8
        return Layer(kernel, self.rng.integers(-4, 5, outputs) / 16, **options)

    def classifier(self, features: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
        """Multiples of 1/4, and a bias of multiples of 1/16."""
        weights = self.rng.integers(-6, 7, (features, classes)) / 4
        return weights, self.rng.integers(-4, 5, classes) / 16


SOBEL = np.array([[1, 0, -1], [2, 0, -2], [1, 0, -1]]) / 4
EDGES = np.stack([SOBEL, -SOBEL, SOBEL.T, -SOBEL.T])[:, None]
CORNERS = np.array([[[1, 1, -1], [1, -1, -1], [-1, -1, 0]], [[-1, 1, 1], [-1, -1, 1], [0, -1, -1]]])
BLOB = np.array([[-1, -1, -1], [-1, 8, -1], [-1, -1, -1]])[None, None] / 8
VOTES = np.array([[2, -2], [2, -2], [-2, 2], [-2, 2]], float)


def edges(side: int, bias: float = 0.0) -> Network:
    """Vertical against horizontal edges."""
    layer = Layer(EDGES, np.full(4, bias))
    return Network((1, side, side), (layer,), VOTES, np.array([0.25, 0.0]))


def corners() -> Network:
    """Two kinds of corners, then a 1 × 1 convolution."""
    first = Layer(CORNERS[:, None] / 4, np.array([-0.25, -0.25]))
    second = Layer(np.array([[1.0, -0.5], [-0.5, 1.0]])[:, :, None, None], np.zeros(2))
    return Network((1, 8, 8), (first, second), 4 * np.eye(2), np.array([0.0, 0.125]))


def blob() -> Network:
    """A spot in the middle, by all points."""
    weights = np.zeros((16, 2))
    weights[[5, 6, 9, 10], 0] = 1.0
    weights[[0, 3, 12, 15], 1] = 1.0
    return Network((1, 4, 4), (Layer(BLOB, np.array([0.125])),), weights, np.zeros(2), True)


def drawn(
    seed: int,
    image: tuple[int, int, int],
    channels: tuple[int, ...],
    classes: int,
    options: tuple[dict[str, Any], ...],
    reads_points: bool = False,
) -> Network:
    """Layers of these channels, drawn by a seed; the options of each."""
    draw, inputs, layers = Drawn(seed), image[0], []
    x = jax.ShapeDtypeStruct((1, *image), jnp.float32)
    for outputs, own in zip(channels, options, strict=True):
        layers.append(draw.layer(outputs, inputs, **own))
        inputs = outputs
    body = Network(image, tuple(layers), np.zeros((1, 1)), np.zeros(1), True)
    points = jax.eval_shape(body.maps, x).shape[1:]
    features = int(np.prod(points)) if reads_points else inputs
    return Network(image, tuple(layers), *draw.classifier(features, classes), reads_points)
