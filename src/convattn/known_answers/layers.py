"""What the networks of the suite are made of: layers of JAX, and kernels that are drawn by hand."""

from collections.abc import Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

Grid = Sequence[Sequence[float]]

VERTICAL: Grid = ((-1, 0, 1), (-2, 0, 2), (-1, 0, 1))
HORIZONTAL: Grid = ((-1, -2, -1), (0, 0, 0), (1, 2, 1))
RISING: Grid = ((0, 1, 2), (-1, 0, 1), (-2, -1, 0))
FALLING: Grid = ((2, 1, 0), (1, 0, -1), (0, -1, -2))
LAPLACIAN: Grid = ((-1, -1, -1), (-1, 8, -1), (-1, -1, -1))
SMOOTH: Grid = ((1, 2, 1), (2, 4, 2), (1, 2, 1))
RING: Grid = (
    (1, 1, 1, 1, 1),
    (1, 0, 0, 0, 1),
    (1, 0, 0, 0, 1),
    (1, 0, 0, 0, 1),
    (1, 1, 1, 1, 1),
)
CENTRE_SURROUND: Grid = (
    (0, 0, -1, 0, 0),
    (0, -1, -2, -1, 0),
    (-1, -2, 16, -2, -1),
    (0, -1, -2, -1, 0),
    (0, 0, -1, 0, 0),
)


def negative(grid: Grid) -> Grid:
    """The grid times -1."""
    return [[-number for number in row] for row in grid]


def tap(row: int, column: int, size: int = 3) -> Grid:
    """A grid of zeros with a 1 at this offset from its centre."""
    centre = size // 2
    return [
        [float((r, c) == (row + centre, column + centre)) for c in range(size)] for r in range(size)
    ]


def filters(*grids: Grid, inputs: int = 1, scale: float = 1.0) -> np.ndarray:
    """A kernel `[K, K, inputs, grids]` of one grid an output, the same for every input."""
    stacked = np.array(grids, np.float32).transpose(1, 2, 0)[:, :, None]
    return stacked.repeat(inputs, axis=2) * np.float32(scale)


def mixed(grid: Grid, matrix: Grid, scale: float = 1.0) -> np.ndarray:
    """A kernel `[K, K, inputs, outputs]`: a grid times a matrix from inputs to outputs."""
    kernel = np.array(grid, np.float32)[:, :, None, None] * np.array(matrix, np.float32)
    return kernel * np.float32(scale)


def conv(
    images: Any,
    kernel: np.ndarray,
    *,
    stride: int = 1,
    dilation: int = 1,
    border: Literal["zeros", "circular"] = "zeros",
    groups: int = 1,
) -> Any:
    """A convolution whose window is centred on each stride-th pixel."""
    reach = dilation * (kernel.shape[0] // 2)
    widths = ((0, 0), (reach, reach), (reach, reach), (0, 0))
    padded = jnp.pad(images, widths, mode="wrap") if border == "circular" else images
    sides = ((0, 0), (0, 0)) if border == "circular" else ((reach, reach), (reach, reach))
    return jax.lax.conv_general_dilated(
        padded,
        jnp.asarray(kernel, images.dtype),
        (stride, stride),
        sides,
        rhs_dilation=(dilation, dilation),
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        feature_group_count=groups,
    )


def above(features: Any, threshold: float) -> Any:
    """max(features - threshold, 0)."""
    return jax.nn.relu(features - threshold)


def max_pool(features: Any) -> Any:
    """The maximum of each 2 × 2 window."""
    return jax.lax.reduce_window(
        features, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"
    )


def logits(
    features: Any, matrix: Grid | np.ndarray, bias: Sequence[float] | np.ndarray | None = None
) -> Any:
    """The mean of every channel times a matrix `[channels, classes]`, plus a bias."""
    scores = features.mean((1, 2)) @ jnp.asarray(matrix, features.dtype)
    return scores if bias is None else scores + jnp.asarray(bias, features.dtype)
