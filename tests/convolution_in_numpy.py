"""Convolutions in NumPy, one tap after the other, so that nothing is compiled."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from convattn.operators.padding import read_padding

MODES: dict[str, Any] = {
    "ZEROS": "constant",
    "EDGE": "edge",
    "CIRCULAR": "wrap",
    "REFLECT": "reflect",
}


def filled(images: Any, widths: Sequence[tuple[int, int]], fill: str = "ZEROS") -> np.ndarray:
    """Images with so many pixels around them; a mean is that of the image and channel."""
    images, pads = np.asarray(images), ((0, 0), *widths, (0, 0))
    if fill != "MEAN":
        return np.pad(images, pads, MODES[fill])
    means = images.mean(tuple(range(1, images.ndim - 1)), keepdims=True)
    return np.where(np.pad(np.ones(images.shape, bool), pads), np.pad(images, pads), means)


def by_taps(
    padded: np.ndarray,
    kernel: Any,
    stride: Sequence[int],
    dilation: Sequence[int],
    groups: int = 1,
) -> np.ndarray:
    """The convolution of what stands inside and outside, without padding."""
    kernel, total = np.asarray(kernel), np.zeros(())
    axes = [*zip(padded.shape[1:], kernel.shape, stride, dilation, strict=False)]
    for tap in np.ndindex(kernel.shape[:-2]):
        read = [
            slice(d * t, n - d * (k - 1 - t), s) for t, (n, k, s, d) in zip(tap, axes, strict=True)
        ]
        parts = np.split(padded[(slice(None), *read)], groups, -1)
        maps = np.split(kernel[tap], groups, -1)
        total = total + np.concatenate([x @ w for x, w in zip(parts, maps, strict=True)], -1)
    return total


def convolution(
    images: Any,
    kernel: Any,
    bias: Any = 0,
    *,
    padding: Any = "SAME",
    stride: Any = 1,
    dilation: Any = 1,
    groups: int = 1,
) -> np.ndarray:
    """`conv`, whose rules of padding alone are the library's."""
    axes = np.ndim(kernel) - 2
    stride, dilation = (
        (each,) * axes if np.ndim(each) == 0 else tuple(each) for each in (stride, dilation)
    )
    rule = read_padding(padding, np.shape(kernel)[:axes], dilation, stride)
    padded = filled(images, rule.at(np.shape(images)[1:-1], stride), rule.fill)
    return by_taps(padded, kernel, stride, dilation, groups) + np.asarray(bias)
