"""Which zero-padded convolutions a softmax layer computes without a ring.

Let the tokens stand on the bare grid: the rows of every head sum to one over the image's own
tokens, and values carry no positions. Let M_δ be the convolution's map between tokens and

    T_q = Σ M_δ over the δ with q + δ in the grid.

**Claim.** Some softmax layer (any heads, with content, or in a limit) is the zero-padded
convolution of that grid iff T_q is the same at all queries.

**Proof.** *Only if.* On an image of equal tokens c every head returns c, whatever its scores, so
the layer gives the same output at all queries, and so does a limit of such layers. The
convolution gives c T_q (+ b). This holds for every c. *If.* Take the heads of S.finite: with the
leak ε the head of δ has the row (1-ε)S_δ + εJ where the key q + δ exists and J, uniform, where it
does not; give it M_δ/(1-ε). With the map U for a uniform head the layer is

    Σ_(δ in) S_δ X M_δ + J X (ε/(1-ε)·T_q + (Σ M_δ - T_q)/(1-ε) + U)
        = conv(X)_q + J X (Σ M_δ/(1-ε) - T_q + U).

With T_q = T the choice U = T - Σ M_δ/(1-ε) = -ε/(1-ε)·Σ M_δ - (Σ M_δ - T) leaves conv(X)_q: the
uniform head of S.finite, less what is missing. T belongs to the grid, so this layer serves that
image size alone. (`bare_zero_padding_layer`) ∎

On one axis with n tokens and the offsets -m, …, m the sets of available offsets are min(n, 2m+1)
different intervals, whose indicators are linearly independent (neighbouring ones differ by one
offset that comes or goes), and each holds δ = 0. On two axes the indicators are products. So for
pixels and odd K the kernels with constant T_q have Π K - Π min(n, K) + 1 dimensions for each pair
of channels: one, δ = 0, once there are at least 2m + 1 tokens on each side.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import flint
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Int, Num

from convattn.constructions.convolution import packed_layer
from convattn.constructions.finite import finite_construction
from convattn.constructions.geometry import ConvolutionGeometry
from convattn.constructions.li_output_map import token_maps
from convattn.constructions.options import require_uniform_weight
from convattn.encodings.base import score_dtype
from convattn.encodings.layer import AttentionLayer
from convattn.operators.arrays import as_floats
from convattn.operators.convolution import check_kernel
from convattn.operators.integers import per_axis
from convattn.operators.shifts import Shift


def available_offsets(
    geometry: ConvolutionGeometry, tokens: Sequence[int]
) -> Bool[np.ndarray, "queries offsets"]:
    """Whether q + δ lies in the grid, queries and offsets row-major.

    >>> available_offsets(ConvolutionGeometry.of((3,)), (2,)).tolist()
    [[False, True, True], [True, True, False]]
    """
    available = np.ones((1, 1), bool)
    for offsets, size in zip(geometry.axis_offsets, tokens, strict=True):
        reached = np.arange(size)[:, None] + np.array(offsets)[None, :]
        available = np.kron(available, (reached >= 0) & (reached < size))
    return available


def _tap_patterns(geometry: ConvolutionGeometry) -> Int[np.ndarray, "offsets patterns"]:
    """The tap that each offset puts between two pixels of a patch, row-major, or -1.

    One column for each pattern that occurs: pairs of pixels at the same distance share it.

    >>> _tap_patterns(ConvolutionGeometry.of((3,), 2)).tolist()  # q - p = -1, 0, 1
    [[-1, -1, 0], [0, 1, 2], [2, -1, -1]]
    """
    patterns = np.zeros((1, 1), int)
    for index, size in zip(geometry.tap_index, geometry.kernel_size, strict=True):
        here = np.unique(index.reshape(len(index), -1), axis=1)
        before, after = patterns[:, None, :, None], here[None, :, None, :]
        joined = np.where((before < 0) | (after < 0), -1, before * size + after)
        patterns = joined.reshape(len(patterns) * len(here), -1)
    return patterns


def available_sums(
    kernel: Any,
    tokens: int | Sequence[int],
    *,
    patch_size: int | Sequence[int] = 1,
    dilation: int | Sequence[int] = 1,
) -> Num[Array, "*grid patch_in patch_out"]:
    """T_q at every query of a bare grid.

    Args:
        kernel: HWIO or WIO.
        tokens: The grid's size, in tokens, on each axis.
        patch_size: P.
        dilation: d.

    Returns:
        `[*tokens, P²·in, P²·out]` in the kernel's dtype.

    Source: S.padding of this project's ledger.

    >>> available_sums([[[1]], [[10]], [[100]]], 3).ravel().tolist()
    [110, 111, 11]
    """
    kernel, geometry, grid = _read_sizes(kernel, tokens, patch_size, dilation)
    maps = token_maps(kernel, geometry)
    inside = jnp.asarray(available_offsets(geometry, grid), maps.dtype)
    return jnp.tensordot(inside, maps, 1, precision="highest").reshape(*grid, *maps.shape[1:])


def unequal_queries(
    kernel: Any,
    tokens: int | Sequence[int],
    *,
    patch_size: int | Sequence[int] = 1,
    dilation: int | Sequence[int] = 1,
) -> tuple[Shift, Shift] | None:
    """Two queries of the bare grid whose T_q differ, or None: then a layer exists.

    The sums are taken in exact integers (a float is an integer over a power of two), so that no
    kernel is taken for another by rounding.

    Args:
        As for `available_sums`; the kernel must be known, not traced.

    Source: S.padding of this project's ledger.

    >>> unequal_queries([[[1]], [[10]], [[100]]], 2), unequal_queries([[[3]], [[10]], [[3]]], 2)
    (((0,), (1,)), None)
    """
    kernel, geometry, grid = _read_sizes(kernel, tokens, patch_size, dilation)
    taps = _as_integers(np.asarray(kernel).reshape(-1, kernel.shape[-2] * kernel.shape[-1]))
    taps = np.concatenate([taps, np.zeros_like(taps[:1])])  # index -1 reads the zero
    columns = taps[_tap_patterns(geometry)].reshape(geometry.heads, -1)
    inside = available_offsets(geometry, grid)
    sets, first = np.unique(inside, axis=0, return_index=True)
    corner = inside[0].astype(object) @ columns
    for index, available in zip(first.tolist(), sets, strict=True):
        if (available.astype(object) @ columns != corner).any():
            return (0,) * len(grid), tuple(int(i) for i in np.unravel_index(index, grid))
    return None


def bare_zero_padding_basis(
    kernel_size: int | Sequence[int],
    tokens: int | Sequence[int],
    *,
    patch_size: int | Sequence[int] = 1,
    dilation: int | Sequence[int] = 1,
) -> Int[np.ndarray, " dimension *taps"]:
    """A basis of the kernels, for one pair of channels, whose T_q is the same at all queries.

    Returns:
        Integers; as many kernels as the space has dimensions.

    Source: S.padding of this project's ledger.

    >>> len(bare_zero_padding_basis((5, 5), (4, 4))), len(bare_zero_padding_basis((5, 5), (5, 5)))
    (10, 1)
    """
    sizes = (kernel_size,) if isinstance(kernel_size, int) else tuple(kernel_size)
    sizes = per_axis(sizes, len(sizes), "kernel_size")
    geometry = ConvolutionGeometry.of(sizes, patch_size, 1, dilation)
    sets = np.unique(available_offsets(geometry, per_axis(tokens, len(sizes), "tokens")), axis=0)
    taps = int(np.prod(sizes))
    units = np.eye(taps + 1, taps, dtype=int)[_tap_patterns(geometry)]
    differences = np.tensordot(sets.astype(int) - sets[:1], units, 1)
    conditions = np.unique(differences.reshape(-1, taps), axis=0)
    columns, dimension = flint.fmpz_mat(conditions.tolist()).nullspace()
    basis = np.array([[int(entry) for entry in row] for row in columns.tolist()])
    return basis.T[:dimension].reshape(dimension, *sizes)


def _read_sizes(
    kernel: Any,
    tokens: int | Sequence[int],
    patch_size: int | Sequence[int],
    dilation: int | Sequence[int],
) -> tuple[Array, ConvolutionGeometry, tuple[int, ...]]:
    """A kernel, its sizes, and those of the grid."""
    kernel, _ = check_kernel(kernel, None, 1)
    if jnp.iscomplexobj(kernel):
        raise ValueError("kernel is complex, but attention takes real ones; split it")
    geometry = ConvolutionGeometry.of(kernel.shape[:-2], patch_size, 1, dilation)
    return kernel, geometry, per_axis(tokens, kernel.ndim - 2, "tokens")


def _as_integers(matrix: np.ndarray) -> np.ndarray:
    """The matrix times one power of two, in Python's integers."""
    if matrix.dtype.kind in "iu":
        return matrix.astype(object)
    fractions, exponents = np.frexp(matrix.astype(np.float64))
    lowest = int(exponents.min())
    whole = np.empty(matrix.shape, object)
    for index in product(*map(range, matrix.shape)):
        whole[index] = int(fractions[index] * 2.0**53) << (int(exponents[index]) - lowest)
    return whole


def bare_zero_padding_layer(
    kernel: Any,
    bias: Any = None,
    *,
    tokens: int | Sequence[int],
    patch_size: int | Sequence[int] = 1,
    dilation: int | Sequence[int] = 1,
    uniform_weight: float | Array = 0.5,
) -> AttentionLayer:
    """The layer without a ring that is the zero-padded convolution of one image size.

    Args:
        kernel, bias: As for `conv`, one group; known, not traced.
        tokens: The only grid, in tokens, on which the layer is the convolution.
        uniform_weight: ε in (0, 1), as for `conv_to_attention`.

    Returns:
        A layer with one head for each offset and a uniform one, exact at finite parameters, whose
        ring is empty.

    Source: S.padding of this project's ledger.

    >>> import convattn as ca
    >>> kernel = jnp.array([[[3.0]], [[10.0]], [[3.0]]])
    >>> layer = bare_zero_padding_layer(kernel, tokens=2)
    >>> image = jnp.array([[[1.0], [2.0]]])
    >>> ca.apply_attention(layer, image).ravel().round(4).tolist()  # 10 + 3·2, 3·1 + 20
    [16.0, 23.0]
    """
    kernel, bias = check_kernel(kernel, bias, 1)
    different = unequal_queries(kernel, tokens, patch_size=patch_size, dilation=dilation)
    if different is not None:
        raise ValueError(
            f"kernel.shape={kernel.shape} on a bare grid of {tokens} tokens: the sums of the taps "
            f"inside differ between the queries {different[0]} and {different[1]}, but every "
            "softmax layer maps equal tokens to equal outputs (S.padding); lay the zero ring that "
            "conv_to_attention lays"
        )
    kernel = as_floats(kernel, "kernel")
    require_uniform_weight(uniform_weight, score_dtype(kernel))
    kernel, geometry, grid = _read_sizes(kernel, tokens, patch_size, dilation)
    maps = token_maps(kernel, geometry)
    heads, blocks = finite_construction(maps, geometry, uniform_weight)
    wide, epsilon = maps.astype(score_dtype(maps)), jnp.asarray(uniform_weight, score_dtype(maps))
    missing = jnp.asarray(~available_offsets(geometry, grid)[0], wide.dtype)
    shares = missing + epsilon / (1 - epsilon)
    uniform = -jnp.tensordot(shares, wide, 1, precision="highest")
    output = blocks.at[-1].set(uniform.astype(blocks.dtype))
    layer = packed_layer(geometry, heads, None, output, bias)
    return replace(layer, ring=((0, 0),) * len(grid))
