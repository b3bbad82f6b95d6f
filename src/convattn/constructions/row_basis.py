"""The rows of a given kernel's F in exact arithmetic, and a basis of the space that they span.

A row (p, q, i, j) of F holds W_(Pδ+q-p)[i, j] over the token offsets δ. It depends on p and q
through s = q - p alone, and Π (P - |s_a|) pairs have the same s. So (2P-1) rows on each axis, for
each pair of channels, stand for all P⁴·in·out of them.
"""

from fractions import Fraction
from math import lcm, prod
from typing import Any

import flint
import numpy as np
from jaxtyping import Int, Shaped

from convattn.constructions.geometry import ConvolutionGeometry
from convattn.shifts import axis_taps


def exact_entries(kernel: Any) -> Shaped[np.ndarray, "*taps in out"]:
    """The kernel as fractions: integers, fractions and floats are all rational numbers.

    **Raises:** `ValueError` for what is not a kernel, and for entries that are no finite numbers.

    >>> exact_entries([[[1]], [[0.25]]]).ravel().tolist()
    [Fraction(1, 1), Fraction(1, 4)]
    """
    try:
        given = np.asarray(kernel)
        if given.dtype.kind == "V":  # the half types that NumPy does not know itself
            given = given.astype(np.float64)
        whole = [Fraction(entry) for entry in given.ravel().tolist()]
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(
            f"kernel is {type(kernel).__name__} and cannot be read as rational numbers: {error}; "
            "pass concrete finite integers, fractions or floats (not within jit)"
        ) from error
    if given.ndim not in (3, 4) or 0 in given.shape:
        raise ValueError(
            f"kernel.shape={given.shape}, but should have 3 axes (K, in, out) or 4 (K, K, in, "
            "out), none of them empty"
        )
    entries = np.empty(given.size, object)
    entries[:] = whole
    return entries.reshape(given.shape)


def distinct_rows(
    kernel: Shaped[np.ndarray, "*taps in out"], geometry: ConvolutionGeometry
) -> tuple[Shaped[np.ndarray, "rows offsets"], Int[np.ndarray, "rows"]]:
    """The rows of F by s = q - p, channel in, channel out, and how often each one occurs.

    **Arguments:**

    - `kernel`: of any dtype, fractions included; `geometry.kernel_size` is its size.

    >>> rows, counts = distinct_rows(np.array([[[1]], [[2]], [[3]]]), ConvolutionGeometry.of((3,), 2))
    >>> rows.tolist(), counts.tolist()
    ([[0, 1, 3], [0, 2, 0], [1, 3, 0]], [1, 2, 1])
    """  # noqa: E501
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
    found = np.moveaxis(padded[tuple(picks)], range(axes, 2 * axes), range(axes + 2, 2 * axes + 2))
    repeated = np.repeat(counts.reshape(-1), prod(kernel.shape[-2:]))
    return found.reshape(-1, geometry.heads), repeated


def row_basis(
    rows: Shaped[np.ndarray, "rows offsets"],
) -> tuple[Shaped[np.ndarray, "rank offsets"], tuple[int, ...]]:
    """The reduced basis B of the row space, in fractions, and the column of each leading one.

    F = F[:, pivots] B: the maps M_δ at the pivots are coordinates, and nothing need be solved.

    >>> basis, pivots = row_basis(np.array([[2, 4, 0], [1, 2, 3]]))
    >>> [[str(entry) for entry in row] for row in basis], pivots
    ([['1', '2', '0'], ['0', '0', '1']], (0, 2))
    """
    width = rows.shape[1]
    whole = set()
    for row in rows.tolist():
        common = lcm(*(Fraction(entry).denominator for entry in row))
        line = tuple(int(entry * common) for entry in row)
        if any(line):
            whole.add(line)
    if not whole:
        return np.empty((0, width), object), ()
    reduced, denominator, rank = flint.fmpz_mat(sorted(whole)).rref()
    table = [
        [Fraction(int(reduced[r, c]), int(denominator)) for c in range(width)] for r in range(rank)
    ]
    basis = np.empty((rank, width), object)
    basis[:] = table
    return basis, tuple(next(c for c in range(width) if row[c]) for row in table)
