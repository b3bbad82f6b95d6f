"""The flattened kernel F, whose rank is what the number of heads must reach.

F has a row for every output pixel p and input pixel q of a patch, input channel i and output
channel j, and a column for every token offset δ, with the entry W_(Pδ+q-p)[i, j]. Column δ is the
map M_δ of the convolution, flattened. If a layer with N_H content-free heads is the convolution,
M_δ = Σ_h a_h(q, q+δ) W_h for every query q with q + δ in the image, so every column lies in the
span of the N_H vectors W_h: N_H ≥ rank F, on every image so large (m + 1 tokens a side, m the
furthest offset) that each offset joins two of its tokens.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import flint
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Int, Num

from convattn.constructions.geometry import ConvolutionGeometry
from convattn.constructions.li_output_map import token_maps
from convattn.operators.arrays import as_array, promoted, require_finite
from convattn.operators.convolution import check_kernel


def flattened_kernel(
    kernel: Any, patch_size: int | Sequence[int] = 1, *, dilation: int | Sequence[int] = 1
) -> Num[Array, "rows offsets"]:
    """F, jitted: rows (p, q, i, j) flattened in that order, columns the token offsets row-major.

    Args:
        kernel: HWIO or WIO.
        patch_size: P.
        dilation: d.

    Returns:
        `[P⁴·in·out, T]` for images, `[P²·in·out, T]` for sequences.

    Raises:
        ValueError: For what is not a kernel.

    Source: L21 eqs. 8 and 20 (there as W̃^C), all P⁴·in·out rows.

    >>> flattened_kernel([[[1]], [[2]], [[3]]], 2).tolist()
    [[0, 2, 0], [1, 3, 0], [0, 1, 3], [0, 2, 0]]
    """
    kernel, _ = check_kernel(kernel, None, 1)
    geometry = ConvolutionGeometry.of(kernel.shape[:-2], patch_size, 1, dilation)
    return _flattened_kernel(kernel, geometry)


@partial(jax.jit, static_argnames="geometry")
def _flattened_kernel(kernel: Array, geometry: ConvolutionGeometry) -> Array:
    maps = token_maps(kernel, geometry)
    in_channels, out_channels = kernel.shape[-2:]
    maps = maps.reshape(
        geometry.heads, -1, in_channels, maps.shape[-1] // out_channels, out_channels
    )
    return maps.transpose(3, 1, 2, 4, 0).reshape(-1, geometry.heads)


def numerical_rank(flattened: Any) -> Int[Array, ""]:
    """How many singular values of F exceed max(rows, offsets)·eps·σ_1, jitted.

    That is the usual threshold: it is as large as rounding in the decomposition can be, so a
    rank below the exact one is possible for a kernel near a degenerate one; for the truth use
    `exact_rank`.

    Raises:
        ValueError: For what is not a matrix of finite real numbers.

    >>> int(numerical_rank(jnp.array([[1.0, 1.0], [1.0, 1.0]])))
    1
    """
    matrix = as_array(flattened, "flattened")
    if matrix.ndim != 2 or 0 in matrix.shape or jnp.iscomplexobj(matrix):
        raise ValueError(
            f"flattened has shape {matrix.shape} and dtype {matrix.dtype}, but expected a matrix "
            "of real numbers, such as flattened_kernel returns"
        )
    require_finite(matrix, "flattened")
    return _numerical_rank(matrix)


@jax.jit
def _numerical_rank(matrix: Array) -> Array:
    working = promoted(matrix.dtype, jnp.float32)
    singular = jnp.linalg.svd(matrix.astype(working), compute_uv=False)
    threshold = max(matrix.shape) * jnp.finfo(working).eps * singular[0]
    return jnp.sum(singular > threshold)


def exact_rank(flattened: Any) -> int:
    """The exact rank of an integer matrix over the rationals.

    Raises:
        ValueError: For entries that are not integers.

    >>> exact_rank([[1, 2], [2, 4], [0, 0]])
    1
    """

    def is_integer(entry: object) -> bool:
        return isinstance(entry, int | float) and entry == entry // 1

    matrix = np.asarray(flattened)
    rows = {tuple(row) for row in matrix.tolist()} if matrix.ndim == 2 else None
    if rows is None or any(not is_integer(entry) for row in rows for entry in row):
        raise ValueError(
            f"flattened has shape {matrix.shape} and dtype {matrix.dtype}, but expected a matrix "
            "of integers; multiply a rational matrix by its denominators"
        )
    return int(flint.fmpz_mat([[int(entry) for entry in row] for row in rows]).rank())
