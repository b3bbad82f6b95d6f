"""Heads whose weights fall off somewhere, and windows that leave every query a key."""

import jax.numpy as jnp
import numpy as np

from convattn.encodings import GaussianEncoding
from convattn.operators.shifts import TokenGrid

HEADS = 3


def gaussians(seed: int, axes: int, reach: float = 6, dtype: str = "float64") -> GaussianEncoding:
    """Centres up to `reach` tokens away, correlated axes, widths from a third to three tokens."""
    generator = np.random.default_rng(seed)
    roots = np.eye(axes) + 0.4 * generator.normal(size=(HEADS, axes, axes))
    roots *= 3 ** generator.uniform(-1, 1, (HEADS, 1, 1))
    centers = generator.uniform(-reach, reach, (HEADS, axes))
    return GaussianEncoding(jnp.asarray(centers, dtype), jnp.asarray(roots, dtype))


def random_windows(generator: np.random.Generator, grid: TokenGrid, heads: int = HEADS):
    """Windows that leave every query a key; they may reach beyond the shifts that occur."""
    windows = []
    for _ in range(heads):
        window = []
        for shifts, (before, after) in zip(grid.shift_ranges, grid.ring, strict=True):
            low = int(generator.integers(shifts.start - 2, after, endpoint=True))
            least = max(low, -before)
            window.append((low, int(generator.integers(least, shifts.stop + 1, endpoint=True))))
        windows.append(tuple(window))
    return tuple(windows)
