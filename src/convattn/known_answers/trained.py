"""Two networks that were trained on the slice of CIFAR-10, their weights rounded to 1/64.

`experiments/known_networks.py` trains them and writes the file of weights beside this one: whole
numbers, to be divided by 64.
"""

from functools import cache
from importlib.resources import files
from typing import Any

import jax
import numpy as np

from convattn.data import load_cifar10_slice
from convattn.known_answers.layers import conv, logits

FILE_NAME = "trained.npz"
UNIT = 64  # weights are whole numbers of 1/64
SHIFTS = (2.0**-15, 2.0**-22, 2.0**-29)  # of the biases of each layer, so that no ReLU is at 0
SIZE = 16
Weights = dict[str, np.ndarray]


def halved(images: np.ndarray) -> np.ndarray:
    """Bytes `[batch, 32, 32, 3]` as means of 2 × 2 pixels in [0, 1), multiples of 1/256."""
    sums = images.reshape(len(images), SIZE, 2, SIZE, 2, 3).astype(np.int64).sum((2, 4))
    return ((sums // 4) / 256).astype(np.float32)


def images() -> np.ndarray:
    """The first test images of four classes, `[4, 16, 16, 3]`."""
    test = load_cifar10_slice("test")
    first = [int(np.flatnonzero(test.labels == label)[0]) for label in (0, 1, 5, 8)]
    return halved(test.images[first])


@cache
def stored_weights() -> Weights:
    """The arrays `<network>.<layer>.<kernel or bias>`."""
    with files("convattn.known_answers").joinpath(FILE_NAME).open("rb") as file:
        arrays = np.load(file, allow_pickle=False)
        return {name: (arrays[name] / UNIT).astype(np.float32) for name in arrays.files}


def plain_network(weights: Weights, images: Any) -> Any:
    """A convolution of stride 2, one more, the mean, and a linear classifier."""
    features = jax.nn.relu(_layer(weights, 0, images, stride=2))
    features = jax.nn.relu(_layer(weights, 1, features))
    return logits(features, weights["classifier.kernel"], weights["classifier.bias"])


def residual_network(weights: Weights, images: Any) -> Any:
    """A convolution of stride 2, a residual block, the mean, and a linear classifier."""
    features = jax.nn.relu(_layer(weights, 0, images, stride=2))
    inner = jax.nn.relu(_layer(weights, 1, features))
    features = jax.nn.relu(features + _layer(weights, 2, inner))
    return logits(features, weights["classifier.kernel"], weights["classifier.bias"])


def plain(images: Any) -> Any:
    """`plain_network` as it was trained."""
    return plain_network(_of("plain"), images)


def residual(images: Any) -> Any:
    """`residual_network` as it was trained."""
    return residual_network(_of("residual"), images)


def _of(network: str) -> Weights:
    start = f"{network}."
    return {
        name.removeprefix(start): array
        for name, array in stored_weights().items()
        if name.startswith(start)
    }


def _layer(weights: Weights, number: int, features: Any, stride: int = 1) -> Any:
    kernel, bias = weights[f"layer{number}.kernel"], weights[f"layer{number}.bias"]
    return conv(features, kernel, stride=stride) + (bias + np.float32(SHIFTS[number]))
