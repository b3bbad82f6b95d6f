"""Certificates about one given kernel: how many heads it takes, and how near fewer heads come."""

from fractions import Fraction
from itertools import product
from math import prod
from random import Random
from typing import Any

import flint
import numpy as np
from jaxtyping import Int

from convattn.bounds.lifted_kernel import lifted_kernel
from convattn.bounds.nonnegative_vector import nonnegative_vector
from convattn.constructions.geometry import ConvolutionGeometry
from convattn.constructions.given_kernel import mixture_heads
from convattn.constructions.row_basis import distinct_rows, row_basis
from convattn_ledger.certificates.canonical import rational
from convattn_ledger.certificates.eigenvectors import symmetric_eigenvectors
from convattn_ledger.certificates.lower_bound import kernel_fields
from convattn_ledger.rational_matrices import echelon

BOX = [[1, 1, 1]] * 3
LAPLACE = [[0, 1, 0], [1, -4, 1], [0, 1, 0]]
SOBEL = ([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]], [[-1, -2, -1], [0, 0, 0], [1, 2, 1]])
DIGITS = 2**30  # singular vectors are rounded to multiples of its inverse, thresholds of its square


def named_kernel(name: str) -> Int[np.ndarray, "K1 K2 in out"]:
    """One of the kernels of these certificates, in integers.

    - `box`, `laplace`: one channel; the second has both signs, and sums to 0.
    - `sobel`: one channel in, the derivatives along the two axes out.
    - `texture`: two channels in and out, no structure.
    - `cross`: two channels out that read the centre, and the difference of two neighbours: its row
      space holds one nonnegative direction, and they do not span it.

    >>> int(named_kernel("laplace").sum())
    0
    """
    if name == "sobel":
        return np.array(SOBEL).transpose(1, 2, 0)[:, :, None, :]
    if name == "texture":
        return (np.arange(36) ** 3 % 19 - 9).reshape(3, 3, 2, 2)
    if name == "cross":
        kernel = np.zeros((3, 3, 1, 2), int)
        kernel[1, 1, 0, 0], kernel[1, 0, 0, 1], kernel[1, 2, 0, 1] = 1, 1, -1
        return kernel
    return np.array({"box": BOX, "laplace": LAPLACE}[name])[:, :, None, None]


def kernel_heads_body(
    kernel: str | Int[np.ndarray, "K1 K2 in out"], patch_size: int = 1
) -> dict[str, Any]:
    """S.kernel: ρ + 1 heads do at finite scores, ρ do not, and what the limit takes.

    Args:
        kernel: Integers, not all zero, or the name of a `named_kernel`.
    """
    kernel = named_kernel(kernel) if isinstance(kernel, str) else kernel
    geometry = ConvolutionGeometry.of(kernel.shape[:2], patch_size)
    rows = distinct_rows(kernel.astype(object), geometry)[0]
    basis, pivots = row_basis(rows)
    weights, coefficients = mixture_heads(basis)
    totals = 1 + weights.sum(axis=1)
    entries = [
        [head, pivots[place], rational(coefficients[head, place] / totals[head])]
        for head, place in np.ndindex(*coefficients.shape)
        if coefficients[head, place]
    ]
    basis_rows = echelon(rows[:, list(pivots)].T.tolist())[1]  # the first rows that are a basis
    labels = _row_labels(geometry, kernel.shape[2:])
    chosen = [[Fraction(entry) for entry in rows[index]] for index in basis_rows]
    minor = [[int(rows[index, pivot]) for pivot in pivots] for index in basis_rows]
    columns = [list(geometry.offsets[pivot]) for pivot in pivots]
    unread = _unread_shift(rows, geometry)
    combination, positive = nonnegative_vector(chosen)
    shifts = [*columns, unread, *(() if positive is None else geometry.offsets)]
    return {
        **kernel_fields(kernel, geometry.patch_size),
        "heads": len(weights),
        "attention": [[rational(entry) for entry in (*row, 1)] for row in weights],
        "values": {"family": "sparse", "entries": entries},
        "rows": [labels[index] for index in basis_rows],
        "columns": columns,
        "determinant": int(flint.fmpz_mat(minor).det()),
        "unread": list(unread),
        "tokens_per_side": [1 + max(abs(shift[axis]) for shift in shifts) for axis in range(2)],
        "limit": {"combination": [rational(c) for c in combination]}
        if combination is not None
        else {"positive": [rational(z) for z in positive or ()]},
    }


def lifted_heads_body(
    kernel_size: int, group: str, filters: int, in_channels: int = 1
) -> dict[str, Any]:
    """S.group: the same for the lifting convolution of fixed filters without structure."""
    shape = (kernel_size, kernel_size, in_channels, filters)
    draws = Random("lifted filters")
    numbers = np.array([draws.getrandbits(5) - 16 for _ in range(prod(shape))]).reshape(shape)
    return kernel_heads_body(lifted_kernel(numbers, group))


def approximation_body(
    kernel: str | Int[np.ndarray, "K1 K2 in out"], heads: int, patch_size: int = 1
) -> dict[str, Any]:
    """S.approx: a rational layer within one head of the optimum, and the bound beside it.

    The N - 1 directions are the computed eigenvectors of FᵀF, rounded. A rounding of relative size
    r costs r² of the distance, for the truncated decomposition is the optimum.
    """
    kernel = named_kernel(kernel) if isinstance(kernel, str) else kernel
    geometry = ConvolutionGeometry.of(kernel.shape[:2], patch_size)
    rows, counts = distinct_rows(kernel.astype(object), geometry)
    gram = (rows * counts[:, None]).T @ rows
    values, vectors = symmetric_eigenvectors(gram.tolist())
    directions = np.empty((heads - 1, geometry.heads), object)
    for place, at in np.ndindex(*directions.shape):
        directions[place, at] = Fraction(round(vectors[place][at] * DIGITS), DIGITS)
    shift = np.concatenate([np.zeros((1, geometry.heads), int), -directions]).max(axis=0)
    attention = [*(directions + shift), shift]
    maps = [*directions, -directions.sum(axis=0)]
    entries = [
        [head, at, rational(value)]
        for head, row in enumerate(maps)
        for at, value in enumerate(row)
        if value
    ]
    off = sum(np.outer(row, row) for row in directions) - np.eye(geometry.heads, dtype=int)
    thresholds = []
    for value in values[heads - 1 :]:
        lowered = int((value - 1e-9 * values[0]) * DIGITS)
        thresholds.append(Fraction(max(0, lowered), DIGITS))
    return {
        **kernel_fields(kernel, geometry.patch_size),
        "heads": heads,
        "attention": [[rational(Fraction(entry)) for entry in (*row, 1)] for row in attention],
        "values": {"family": "sparse", "entries": entries},
        "thresholds": [rational(threshold) for threshold in thresholds],
        "error": rational(Fraction(np.trace(off.T @ gram @ off))),
    }


def _row_labels(geometry: ConvolutionGeometry, channels: tuple[int, ...]) -> list[list[int]]:
    """(p.., q.., i, j) for each of the distinct rows, with the smallest pixels."""
    steps = product(*(range(1 - p, p) for p in geometry.patch_size))
    return [
        [*(max(0, -s) for s in step), *(max(0, s) for s in step), i, j]
        for step in steps
        for i, j in np.ndindex(*channels)
    ]


def _unread_shift(rows: np.ndarray, geometry: ConvolutionGeometry) -> tuple[int, ...]:
    """A shift at which the convolution puts nothing: an offset, or one step too far."""
    empty = [place for place in range(geometry.heads) if not rows[:, place].any()]
    if empty:
        return geometry.offsets[empty[0]]
    return (geometry.axis_offsets[0][-1] + 1, *(0 for _ in geometry.axis_offsets[1:]))
