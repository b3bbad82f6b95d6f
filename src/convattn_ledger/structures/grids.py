"""Convolution kernels and average pooling as grid convolutions (A19, Section 2.1).

A19 eq. 6 takes the shifts of a regular right cuboid,

    Δ_ki = ε_i + (ω⁻¹k)_i δ_i,       ω⁻¹k = (j_1, j_2, …) counted from 1, the last index fastest,

so on an axis of K nodes the shifts are ε + δ, ε + 2δ, …, ε + Kδ, and the node s reads s - Δ_k. What
the paper calls the strides δ_i are dilations: there is one output for each input.

The taps t of a kernel in this library are keys minus queries, t = -Δ. A kernel with dilation d > 0
whose taps start at f, t = f + (j - 1)d, is therefore the cuboid with

    δ = -d,        ε = d - f,        f = -⌊d(K-1)/2⌋ for a centred kernel,

and Θ is the kernel with its taps flattened, row-major. Under a positive δ the same Θ has its taps
in reverse: eq. 6 as printed is convolution in the sense of signal processing.

Average pooling is a convolution of size one with M ≠ N. Output n averages the window of w nodes
s·n + d·j, 0 ≤ j < w on each axis:

    A_mn = 1/|w| · #{j : s·n + d·j = m},      y = Aᵀ x      (K = 1, Θ = I).

The same map has the size |w|, the shifts of the window for a basis and Θ_k = I/|w|, a controlled
separable parameter with H = 1 (A19 eq. 5); `window_basis` is that basis. Max pooling is not linear
and is not a convolution of this kind.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise, product
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Num

from convattn.operators.arrays import as_array
from convattn.operators.integers import per_axis
from convattn.operators.kernel_layout import warns_of_layout
from convattn.operators.shifts import Shift, from_query_minus_key
from convattn_ledger.structures.shift_basis import (
    LOWEST_SHIFT,
    ShiftBasis,
    each_axis,
    shift_basis,
    strided_basis,
)
from convattn_ledger.structures.sparse_basis import SparseBasis


def cuboid_shifts(
    sizes: int | Sequence[int],
    dilation: int | Sequence[int] = 1,
    offset: int | Sequence[int] = 0,
) -> tuple[Shift, ...]:
    """The shifts of A19 eq. 6 as printed, indices from 1: ε + δ, …, ε + Kδ on each axis.

    Args:
        sizes: K_i ≥ 1 on each axis; an integer for one axis.
        dilation: δ_i, any integer but 0 (the paper's "stride"); negative for a kernel in the order
            of its taps.
        offset: ε_i, any integer.

    Returns:
        Δ_1, …, Δ_K in A19's sign (query - key), row-major.

    Source: A19 eq. 6.

    >>> cuboid_shifts(3), cuboid_shifts(3, -2, 4)
    (((1,), (2,), (3,)), ((2,), (0,), (-2,)))
    """
    lengths = each_axis(sizes)
    extents = per_axis(lengths, len(lengths), "sizes")
    steps = per_axis(dilation, len(lengths), "dilation", LOWEST_SHIFT)
    offsets = per_axis(offset, len(lengths), "offset", LOWEST_SHIFT)
    if not extents or 0 in steps:
        raise ValueError(
            f"sizes={sizes!r} and dilation={dilation!r}, but expected at least one axis and no "
            "dilation 0, by which all taps of an axis would be one; use sizes 1 there"
        )
    axes = (
        [start + index * step for index in range(1, size + 1)]
        for size, step, start in zip(extents, steps, offsets, strict=True)
    )
    return tuple(product(*axes))


class CuboidKernel(NamedTuple):
    """A kernel and where its taps lie: out_q = Σ_j x_(q + first + dilation·j) kernel_j, j from 0.

    Attributes:
        kernel: WIO, HWIO, …; `dilation` ≥ 1 and `first` for each axis.
    """

    kernel: Num[Array, "*sizes in_channels out_channels"]
    dilation: tuple[int, ...]
    first: tuple[int, ...]


@warns_of_layout
def kernel_to_structure(
    kernel: Any,
    grid: int | Sequence[int],
    *,
    dilation: int | Sequence[int] = 1,
    first: int | Sequence[int] | None = None,
    stride: int | Sequence[int] = 1,
    padding: str = "SAME",
) -> tuple[ShiftBasis | SparseBasis, Num[Array, "size in_channels out_channels"]]:
    """The basis and the parameter Θ of a convolution kernel on a grid.

    Args:
        kernel: `[K_1, …, in, out]`, with as many axes in front as the grid has.
        grid: Nodes on each axis; an integer for one axis.
        dilation: d ≥ 1, the distance between taps.
        first: The lowest tap on each axis, key minus query; by default -⌊d(K-1)/2⌋, as `conv` has.
        stride, padding: As for `strided_basis`; with `"SAME"` zeros stand outside the grid.

    Returns:
        A `ShiftBasis` where the grid is preserved, else that of `strided_basis`, and Θ; they give
        `conv(images, kernel)` in `structured_convolution(images.reshape(batch, -1, in), basis,
        theta)`.

    Source: A19 eq. 6 and the paragraph after it.

    >>> basis, theta = kernel_to_structure([[[1.0]], [[2.0]], [[3.0]]], 5)
    >>> basis.offsets, theta[:, 0, 0].tolist()
    (((-1,), (0,), (1,)), [1.0, 2.0, 3.0])
    """
    weights, sides = as_array(kernel, "kernel"), each_axis(grid)
    if weights.ndim != len(sides) + 2 or 0 in weights.shape:
        raise ValueError(
            f"kernel.shape={weights.shape}, but a grid of {len(sides)} axes takes {len(sides)} "
            "sizes, in_channels and out_channels, all at least 1"
        )
    sizes = weights.shape[:-2]
    steps = per_axis(dilation, len(sides), "dilation")
    if first is None:
        first = [-(d * (size - 1) // 2) for size, d in zip(sizes, steps, strict=True)]
    starts = per_axis(first, len(sides), "first", LOWEST_SHIFT)
    offsets = [d - start for d, start in zip(steps, starts, strict=True)]
    shifts = cuboid_shifts(sizes, [-d for d in steps], offsets)
    theta = weights.reshape(-1, *weights.shape[-2:])
    if padding == "SAME" and set(per_axis(stride, len(sides), "stride")) == {1}:
        return shift_basis(sides, shifts), theta
    return strided_basis(sides, shifts, stride, padding=padding), theta


def structure_to_kernel(basis: ShiftBasis, theta: Any) -> CuboidKernel:
    """The kernel that a grid convolution is, if its shifts fill a regular right cuboid.

    Args:
        basis: Of distinct shifts in any order.
        theta: Θ, `[K, in, out]`.

    Returns:
        The kernel with its taps in ascending order of key minus query (a dilation of 1 on axes with
        one tap), where they start and how far they are apart.

    Source: A19 eq. 6.

    >>> basis = shift_basis(5, cuboid_shifts(3, 2, -3))  # Δ = -1, 1, 3
    >>> structure_to_kernel(basis, [[[1.0]], [[2.0]], [[3.0]]]).kernel[:, 0, 0].tolist()
    [3.0, 2.0, 1.0]
    """
    parameter = as_array(theta, "theta")
    if parameter.ndim != 3 or parameter.shape[0] != basis.size:
        raise ValueError(
            f"theta.shape={parameter.shape}, but expected ({basis.size}, in_channels, "
            f"out_channels) for a basis of size {basis.size}"
        )
    taps = [from_query_minus_key(shift) for shift in basis.shifts]
    axes = [sorted(set(axis)) for axis in zip(*taps, strict=True)]
    gaps = [{after - before for before, after in pairwise(axis)} or {1} for axis in axes]
    if any(len(gap) > 1 for gap in gaps) or sorted(taps) != list(product(*axes)):
        raise ValueError(
            f"shifts={basis.shifts}, but expected all of a regular right cuboid, each once, the "
            "taps of a kernel; add the missing shifts with parameters of zero"
        )
    order = sorted(range(basis.size), key=taps.__getitem__)
    kernel = parameter[np.array(order)].reshape(*map(len, axes), *parameter.shape[1:])
    return CuboidKernel(kernel, tuple(gap.pop() for gap in gaps), tuple(axis[0] for axis in axes))


def window_basis(
    grid: int | Sequence[int],
    window: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    dilation: int | Sequence[int] = 1,
) -> SparseBasis:
    """Windows that lie wholly in the grid: output n reads s·n + d·j, 0 ≤ j < w, row-major in j.

    Args:
        grid: Nodes on each axis; an integer for one axis.
        window: w ≥ 1, for all axes or for each.
        stride: s ≥ 1, by default the window, so that windows tile.
        dilation: d ≥ 1.

    Returns:
        A basis of |w| matrices with ⌊(n - d(w-1) - 1)/s⌋ + 1 outputs on an axis.

    >>> window_basis(6, 2).gather(jnp.arange(6).reshape(1, 6, 1))[0, :, :, 0].tolist()
    [[0, 2, 4], [1, 3, 5]]
    """
    sides = each_axis(grid)
    widths = per_axis(window, len(sides), "window")
    steps = per_axis(dilation, len(sides), "dilation")
    shifts = cuboid_shifts(widths, [-step for step in steps], steps)
    return strided_basis(sides, shifts, widths if stride is None else stride, padding="VALID")


def pooling_basis(
    grid: int | Sequence[int],
    window: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    dilation: int | Sequence[int] = 1,
) -> SparseBasis:
    """The one matrix of average pooling, with Θ = I, in JAX's default float.

    Arguments and errors are those of `window_basis`.

    Source: A19 Section 2.1.

    >>> pooling_basis((2, 4), 2).gather(jnp.arange(8.0).reshape(1, 8, 1))[0, 0, :, 0].tolist()
    [2.5, 4.5]
    """
    windows = window_basis(grid, window, stride, dilation)
    weight = jnp.full(windows.nonzeros, 1 / windows.size, float)
    one = jnp.zeros_like(windows.bases)
    return replace(windows, values=weight, bases=one, shape=(1, *windows.shape[1:]))
