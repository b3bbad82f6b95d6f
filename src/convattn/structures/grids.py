"""Convolution kernels as grid convolutions, and back (A19, Section 2.1).

A19 eq. 6 takes the shifts of a regular right cuboid,

    Δ_ki = ε_i + (ω⁻¹k)_i δ_i,       ω⁻¹k = (j_1, j_2, …) counted from 1, the last index fastest,

so on an axis of K nodes the shifts are ε + δ, ε + 2δ, …, ε + Kδ, and the node s reads s - Δ_k. What
the paper calls the strides δ_i are dilations: there is one output for each input.

The taps t of a kernel in this library are keys minus queries, t = -Δ. A kernel with dilation d > 0
whose taps start at f, t = f + (j - 1)d, is therefore the cuboid with

    δ = -d,        ε = d - f,        f = -⌊d(K-1)/2⌋ for a centred kernel,

and Θ is the kernel with its taps flattened, row-major. Under a positive δ the same Θ has its taps
in reverse: eq. 6 as printed is convolution in the sense of signal processing.
"""

from collections.abc import Sequence
from itertools import pairwise, product
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Num

from convattn.operators.arrays import accumulation_dtype, as_array
from convattn.operators.shifts import Shift, from_query_minus_key, per_axis
from convattn.structures.shift_basis import (
    LOWEST_SHIFT,
    ShiftBasis,
    StridedBasis,
    shift_basis,
    strided_basis,
)


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

    Raises:
        ValueError: For an empty cuboid, another number of axes, δ = 0.

    Source: A19 eq. 6.

    >>> cuboid_shifts(3), cuboid_shifts(3, -2, 4)
    (((1,), (2,), (3,)), ((2,), (0,), (-2,)))
    """
    extents = (sizes,) if isinstance(sizes, int | np.integer) else tuple(sizes)
    extents = per_axis(extents, len(extents), "sizes")
    if not extents:
        raise ValueError("sizes=(), but expected at least one number of taps, one for each axis")
    steps = per_axis(dilation, len(extents), "dilation", LOWEST_SHIFT)
    offsets = per_axis(offset, len(extents), "offset", LOWEST_SHIFT)
    if 0 in steps:
        raise ValueError(
            f"dilation={dilation!r}, but expected another integer than 0: all taps of the axis "
            "would be one; use sizes 1 there"
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


def kernel_to_structure(
    kernel: Any,
    grid: int | Sequence[int],
    *,
    dilation: int | Sequence[int] = 1,
    first: int | Sequence[int] | None = None,
    stride: int | Sequence[int] = 1,
    padding: str = "SAME",
) -> tuple[ShiftBasis | StridedBasis, Num[Array, "size in_channels out_channels"]]:
    """The basis and the parameter Θ of a convolution kernel on a grid.

    Args:
        kernel: `[K_1, …, in, out]`, with as many axes in front as the grid has.
        grid: Nodes on each axis; an integer for one axis.
        dilation: d ≥ 1, the distance between taps.
        first: The lowest tap on each axis, key minus query; by default -⌊d(K-1)/2⌋, as `conv` has.
        stride, padding: As for `strided_basis`; with `"SAME"` zeros stand outside the grid.

    Returns:
        A `ShiftBasis` where the grid is preserved, else a `StridedBasis`, and Θ; they give
        `conv(images, kernel)` in `structured_convolution(images.reshape(batch, -1, in), basis,
        theta)`.

    Raises:
        ValueError: For a kernel of another rank, and as `strided_basis`.

    Source: A19 eq. 6 and the paragraph after it.

    >>> basis, theta = kernel_to_structure([[[1.0]], [[2.0]], [[3.0]]], 5)
    >>> basis.offsets, theta[:, 0, 0].tolist()
    (((-1,), (0,), (1,)), [1.0, 2.0, 3.0])
    """
    weights = as_array(kernel, "kernel")
    sides = (grid,) if isinstance(grid, int | np.integer) else tuple(grid)
    if weights.ndim != len(sides) + 2 or 0 in weights.shape:
        raise ValueError(
            f"kernel.shape={weights.shape}, but a grid of {len(sides)} axes takes {len(sides)} "
            "sizes, in_channels and out_channels, all at least 1"
        )
    sizes = weights.shape[:-2]
    steps = per_axis(dilation, len(sides), "dilation")
    starts = (
        tuple(-(d * (size - 1) // 2) for size, d in zip(sizes, steps, strict=True))
        if first is None
        else per_axis(first, len(sides), "first", LOWEST_SHIFT)
    )
    shifts = cuboid_shifts(
        sizes,
        tuple(-d for d in steps),
        tuple(d - start for d, start in zip(steps, starts, strict=True)),
    )
    theta = weights.reshape(-1, *weights.shape[-2:])
    basis = strided_basis(sides, shifts, stride, padding=padding)
    if basis.output_grid == basis.grid and not any(basis.start):
        return shift_basis(sides, shifts), theta
    return basis, theta


def structure_to_kernel(basis: ShiftBasis | StridedBasis, theta: Any) -> CuboidKernel:
    """The kernel that a grid convolution is, if its shifts fill a regular right cuboid.

    Args:
        basis: Of shifts in any order; the parameters of a shift that is there twice, as in what
            `compose_bases` gives, are summed.
        theta: Θ, `[K, in, out]`.

    Returns:
        The kernel with its taps in ascending order of key minus query (a dilation of 1 on axes with
        one tap), where they start and how far they are apart. Stride and grid stay in the basis.

    Raises:
        ValueError: For a Θ that does not fit, and for shifts that are no such cuboid.

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
    gaps = [{after - before for before, after in pairwise(a)} for a in axes]
    if any(len(gap) > 1 for gap in gaps) or set(taps) != set(product(*axes)):
        raise ValueError(
            f"shifts={basis.shifts}, but expected all of a regular right cuboid, the taps of a "
            "kernel; add the missing shifts with parameters of zero"
        )
    places = {tap: index for index, tap in enumerate(sorted(set(taps)))}
    index = np.array([places[tap] for tap in taps])
    if len(places) == basis.size:
        parameter = parameter[np.argsort(index)]
    else:
        wide = parameter.astype(accumulation_dtype(parameter))
        empty = jnp.zeros((len(places), *parameter.shape[1:]), wide.dtype)
        parameter = empty.at[index].add(wide).astype(parameter.dtype)
    kernel = parameter.reshape(*(len(axis) for axis in axes), *parameter.shape[1:])
    dilation = tuple(gap.pop() if gap else 1 for gap in gaps)
    return CuboidKernel(kernel, dilation, tuple(axis[0] for axis in axes))
