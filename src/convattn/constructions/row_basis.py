"""The rows of a given kernel's F in exact arithmetic, and a basis of the space that they span.

A row (p, q, i, j) of F holds W_(Pδ+q-p)[i, j] over the token offsets δ. It depends on p and q
through s = q - p alone, and Π (P - |s_a|) pairs have the same s. So (2P-1) rows on each axis, for
each pair of channels, stand for all P⁴·in·out of them.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import lcm, prod
from typing import Any

import flint
import numpy as np
from jaxtyping import Int, Shaped
from scipy.linalg import qr

from convattn.constructions.geometry import ConvolutionGeometry
from convattn.operators.shifts import axis_taps


def exact_entries(kernel: Any) -> Shaped[np.ndarray, "*taps in out"]:
    """The kernel as fractions: integers, fractions and floats are all rational numbers.

    Raises:
        ValueError: For what is not a kernel, and for entries that are no finite numbers.

    >>> exact_entries([[[1]], [[0.25]]]).ravel().tolist()
    [Fraction(1, 1), Fraction(1, 4)]
    """
    array = concrete_kernel(kernel)
    entries = np.empty(array.size, object)
    entries[:] = [Fraction(entry) for entry in array.ravel().tolist()]
    return entries.reshape(array.shape)


def concrete_kernel(kernel: Any) -> Shaped[np.ndarray, "*taps in out"]:
    """The kernel in NumPy, if `exact_entries` takes it: without a fraction for each float of it.

    Raises:
        ValueError: As `exact_entries` does.

    >>> concrete_kernel([[[1]], [[0.25]]]).ravel().tolist()
    [1.0, 0.25]
    """
    try:
        array = np.asarray(kernel)
        if array.dtype.kind == "V":  # the half types that NumPy does not know itself
            array = array.astype(np.float64)
        bad = ~np.isfinite(array) if array.dtype.kind in "fc" else np.zeros(array.shape, bool)
        plain = array.dtype.kind in "biu" or array.dtype in (np.float16, np.float32, np.float64)
        if not plain and not bad.any():
            for entry in array.ravel().tolist():
                Fraction(entry)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(
            f"kernel is {type(kernel).__name__} and cannot be read as rational numbers: {error}; "
            "pass concrete finite integers, fractions or floats (not within jit)"
        ) from error
    if bad.any():
        first = tuple(int(index) for index in np.argwhere(bad)[0])
        raise ValueError(
            f"kernel has {'NaN' if np.isnan(array[first]) else 'an infinity'} at index {first}, "
            f"{int(bad.sum())} non-finite entries in all, but every entry must be finite; look for "
            "a diverged training run or an overflow on cast"
        )
    if array.ndim not in (3, 4) or 0 in array.shape:
        raise ValueError(
            f"kernel.shape={array.shape}, but expected 3 axes (K, in, out) or 4 (K, K, in, "
            "out), none of them empty"
        )
    return array


def distinct_rows(
    kernel: Shaped[np.ndarray, "*taps in out"], geometry: ConvolutionGeometry
) -> tuple[Shaped[np.ndarray, "rows offsets"], Int[np.ndarray, " rows"]]:
    """The rows of F by s = q - p, channel in, channel out, and how often each one occurs.

    Args:
        kernel: Of any dtype, fractions included; `geometry.kernel_size` is its size.

    >>> kernel = np.array([[[1]], [[2]], [[3]]])
    >>> rows, counts = distinct_rows(kernel, ConvolutionGeometry.of((3,), 2))
    >>> rows.tolist(), counts.tolist()
    ([[0, 1, 3], [0, 2, 0], [1, 3, 0]], [1, 2, 1])
    """
    axes = len(geometry.kernel_size)
    padded = np.zeros([k + 1 for k in geometry.kernel_size] + list(kernel.shape[-2:]), kernel.dtype)
    padded[tuple(slice(0, k) for k in geometry.kernel_size)] = kernel  # index -1 reads the zero
    picks, counts = [], np.ones((), np.int64)
    sizes = zip(geometry.kernel_size, geometry.patch_size, geometry.dilation, strict=True)
    for axis, ((k, p, d), offsets) in enumerate(zip(sizes, geometry.axis_offsets, strict=True)):
        between = np.arange(1 - p, p)
        distance = p * np.array(offsets)[None, :] + between[:, None]
        tap = distance // d - axis_taps(k).start
        index = np.where((distance % d == 0) & (tap >= 0) & (tap < k), tap, -1)
        shape = [1] * (2 * axes)
        shape[axis], shape[axes + axis] = index.shape
        picks.append(index.reshape(shape))
        counts = np.multiply.outer(counts, p - np.abs(between))
    rows = np.moveaxis(padded[tuple(picks)], range(axes, 2 * axes), range(axes + 2, 2 * axes + 2))
    repeated = np.repeat(counts.reshape(-1), prod(kernel.shape[-2:]))
    return rows.reshape(-1, geometry.heads), repeated


def is_clearly_of_full_rank(
    rows: Shaped[np.ndarray, "rows offsets"],
) -> bool:
    """Whether float64 already shows that the columns are independent.

    The computed singular values are off by a modest multiple of 2⁻⁵³ times the largest, and so are
    entries that float64 rounds; a smallest one above 2⁻²⁰ of it is not zero.

    >>> is_clearly_of_full_rank(np.eye(2)), is_clearly_of_full_rank(np.ones((2, 2)))
    (True, False)
    """
    if len(rows) < rows.shape[1]:
        return False
    values = np.linalg.svd(rows.astype(np.float64), compute_uv=False)
    return bool(values[-1] > 2.0**-20 * values[0])


def row_basis(
    rows: Shaped[np.ndarray, "rows offsets"],
    order: Sequence[int] | None = None,
) -> tuple[Shaped[np.ndarray, "rank offsets"], tuple[int, ...]]:
    """A basis B of the row space that is reduced at the pivots, in fractions, and the pivots.

    F = F[:, pivots] B: the maps M_δ at the pivots are coordinates, and nothing need be solved. The
    pivots are the first independent columns.

    Args:
        order: Of the columns in which "first" is meant, such as `well_conditioned_order(rows)`; as
            they are when not given.

    >>> basis, pivots = row_basis(np.array([[2, 4, 0], [1, 2, 3]]))
    >>> [[str(entry) for entry in row] for row in basis], pivots
    ([['1', '2', '0'], ['0', '0', '1']], (0, 2))
    """
    width = rows.shape[1]
    order = range(width) if order is None else order
    integer_rows = set()
    for row in rows[:, list(order)].tolist():
        common = lcm(*(Fraction(entry).denominator for entry in row))
        line = tuple(int(entry * common) for entry in row)
        if any(line):
            integer_rows.add(line)
    if not integer_rows:
        return np.empty((0, width), object), ()
    reduced, denominator, rank = flint.fmpz_mat(sorted(integer_rows)).rref()
    row_of_pivot = {}
    for r in range(rank):
        row = np.empty(width, object)
        row[list(order)] = [Fraction(int(reduced[r, c]), int(denominator)) for c in range(width)]
        row_of_pivot[next(order[c] for c in range(width) if reduced[r, c] != 0)] = row
    pivots = tuple(sorted(row_of_pivot))
    basis = np.empty((rank, width), object)
    basis[:] = [row_of_pivot[pivot] for pivot in pivots]
    return basis, pivots


def well_conditioned_order(rows: Shaped[np.ndarray, "rows offsets"]) -> tuple[int, ...]:
    """The columns by a pivoted QR decomposition in float64: each time the one farthest from before.

    With the first independent columns in this order the entries of B stay small, 2^(ρ-1) at worst
    and seldom above 2, for no near-multiple of earlier columns is taken before it has to be. The
    order only decides which basis it is: the elimination is exact in any.

    >>> well_conditioned_order(np.array([[1.0, 1.0, 3.0], [1.0, 1.001, -5.0]]))
    (2, 1, 0)
    """
    largest = max(abs(entry) for entry in rows.ravel().tolist())
    if not largest:
        return tuple(range(rows.shape[1]))
    scaled = (rows / largest).astype(np.float64)
    order = qr(scaled, mode="r", pivoting=True)[1]
    return tuple(int(column) for column in order)
