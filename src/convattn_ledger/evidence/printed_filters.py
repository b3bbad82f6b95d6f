"""B19's Definition 1 in 1-based loops over integers, as printed: the exact side of its claims."""

import math
from collections.abc import Callable

import numpy as np
from jaxtyping import Int


def printed_convolution(
    image: Int[np.ndarray, "height width channels"],
    weights: Int[np.ndarray, "rows columns channels"],
    bracket: Callable[[float], int] = math.ceil,
) -> Int[np.ndarray, "height width"]:
    """c_ij = Σ_kl x_(i-[n/2]+k, j-[m/2]+l) · h_kl, k and l from 1, zero outside.

    Args:
        bracket: What [·] stands for.

    >>> row = np.arange(1, 4).reshape(1, 3, 1)
    >>> printed_convolution(row, np.ones((1, 1, 1), int)).tolist()
    [[1, 2, 3]]
    >>> printed_convolution(row, np.ones((1, 1, 1), int), math.floor).tolist()
    [[0, 0, 0]]
    """
    height, width, _ = image.shape
    rows, columns, _ = weights.shape
    up, left = bracket(rows / 2), bracket(columns / 2)
    result = np.zeros((height, width), np.int64)
    for i in range(1, height + 1):
        for j in range(1, width + 1):
            for k in range(1, rows + 1):
                for column in range(1, columns + 1):
                    a, b = i - up + k, j - left + column
                    if 1 <= a <= height and 1 <= b <= width:
                        result[i - 1, j - 1] += image[a - 1, b - 1] @ weights[k - 1, column - 1]
    return result


def printed_star(
    image: Int[np.ndarray, "height width channels"],
    filters: Int[np.ndarray, "filters rows columns channels"],
    bracket: Callable[[float], int] = math.ceil,
) -> Int[np.ndarray, "height width filters"]:
    """x ⋆ H of Definition 2, one filter index.

    >>> printed_star(np.ones((1, 2, 1), int), np.ones((3, 1, 2, 1), int)).tolist()
    [[[2, 2, 2], [1, 1, 1]]]
    """
    return np.stack([printed_convolution(image, each, bracket) for each in filters], axis=-1)
