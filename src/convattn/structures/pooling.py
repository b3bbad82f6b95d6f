"""Average pooling as a convolution of size one with M ≠ N (A19, Section 2.1).

Output n averages the window of w nodes s·n + d·j, 0 ≤ j < w on each axis:

    A_mn = 1/|w| · #{j : s·n + d·j = m},      y = Aᵀ x      (K = 1, Θ = I).

The same map has the size |w|, the shifts of the window for a basis and Θ_k = I/|w|, a controlled
separable parameter with H = 1 (A19 eq. 5); `window_basis` is that basis. Max pooling is not linear
and is not a convolution of this kind.
"""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike

from convattn.operators.shifts import per_axis
from convattn.structures.grids import cuboid_shifts
from convattn.structures.shift_basis import StridedBasis, strided_basis
from convattn.structures.sparse_basis import SparseBasis, basis_from_entries


def window_basis(
    grid: int | Sequence[int],
    window: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    dilation: int | Sequence[int] = 1,
) -> StridedBasis:
    """Windows that lie wholly in the grid: output n reads s·n + d·j, 0 ≤ j < w, row-major in j.

    Args:
        grid: Nodes on each axis; an integer for one axis.
        window: w ≥ 1, for all axes or for each.
        stride: s ≥ 1, by default the window, so that windows tile.
        dilation: d ≥ 1.

    Returns:
        A basis of |w| matrices with ⌊(n - d(w-1) - 1)/s⌋ + 1 outputs on an axis.

    Raises:
        ValueError: For sizes below 1, another number of axes, a window that does not fit.

    >>> window_basis(6, 2).gather(jnp.arange(6).reshape(1, 6, 1))[0, :, :, 0].tolist()
    [[0, 2, 4], [1, 3, 5]]
    """
    sides = (grid,) if isinstance(grid, int | np.integer) else tuple(grid)
    widths = per_axis(window, len(sides), "window")
    steps = per_axis(dilation, len(sides), "dilation")
    shifts = cuboid_shifts(widths, tuple(-step for step in steps), steps)
    return strided_basis(sides, shifts, widths if stride is None else stride, padding="VALID")


def pooling_basis(
    grid: int | Sequence[int],
    window: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    dilation: int | Sequence[int] = 1,
    *,
    dtype: DTypeLike | None = None,
) -> SparseBasis:
    """The one matrix of average pooling, with Θ = I.

    Arguments are as for `window_basis`, and one more.

    Args:
        dtype: Of 1/|w|, by default JAX's default float.

    Returns:
        A basis of size 1 with |w| entries for each output.

    Raises:
        ValueError: As `window_basis`, and for a dtype that is not floating.

    Source: A19 Section 2.1.

    >>> pooling_basis((2, 4), 2).gather(jnp.arange(8.0).reshape(1, 8, 1))[0, 0, :, 0].tolist()
    [2.5, 4.5]
    """
    windows = window_basis(grid, window, stride, dilation)
    kind = jnp.result_type(float) if dtype is None else jnp.dtype(dtype)
    if not jnp.issubdtype(kind, jnp.floating):
        raise ValueError(f"dtype={dtype}, but expected a floating type: an average is a fraction")
    _, keys, queries = windows.entries()
    values = jnp.full(len(keys), 1 / windows.size, kind)
    zeros = np.zeros_like(keys)
    return basis_from_entries(values, zeros, keys, queries, (1, windows.inputs, windows.outputs))
