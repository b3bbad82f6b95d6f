"""Narrow heads: splitting a head whose map is too wide for the head dimension.

A head of dimension d_H has a map W_val W_out of rank at most d_H. A wider map M is cut into
chunks of d_H input coordinates (or output coordinates, whichever are fewer), each taken by a
head of its own with the same attention:

    M = Σ_c E_c (E_cᵀ M),      W_val = E_c, W_out = E_cᵀ M,

where E_c picks the coordinates of the chunk. Nothing is computed, so nothing is rounded.
Coordinates that a map cannot use, whatever the kernel, are left out: with K = 3, P = 16 and three
channels the centre map uses 768 coordinates, an edge map 48, a corner map 3, so 64-dimensional
heads take 12 + 4·1 + 4·1 = 20 of them.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Num

from convattn.constructions.geometry import ConvolutionGeometry
from convattn.constructions.li_output_map import token_maps
from convattn.operators.integers import MAX_ENTRIES, as_integer, require_entries


def split_heads(
    maps: Num[Array, "heads patch_in patch_out"],
    supports: Bool[np.ndarray, "heads patch_in patch_out"],
    head_dim: int,
) -> tuple[
    tuple[int, ...],
    Num[Array, "split patch_in head_dim"],
    Num[Array, "split head_dim patch_out"],
]:
    """Value and output maps of dimension `head_dim`, and which head each of them came from.

    Args:
        supports: Where a map can be nonzero for some kernel; known from the sizes alone.

    Raises:
        ValueError: For a head dimension that is not a positive integer, or at which the heads are
            too many, or too wide, to be written out.

    Source: S.headdim of this project's ledger; C20's remark on D_h and D_out.

    >>> origin, value, output = split_heads(jnp.eye(3)[None], np.eye(3, dtype=bool)[None], 2)
    >>> origin, jnp.einsum("hie,heo->io", value, output).tolist()
    ((0, 0), [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    """
    width_in, width_out = maps.shape[1:]
    head_dim = as_integer(head_dim, "head_dim", most=MAX_ENTRIES)
    widths = [int(min(support.any(1).sum(), support.any(0).sum())) for support in supports]
    count = sum(-(-width // head_dim) for width in widths)
    require_entries(
        count * head_dim * (width_in + width_out),
        f"the value and output maps of {count} heads of dimension {head_dim}",
        "take another head dimension, or smaller patches",
    )
    filled_dim = min(head_dim, max(1, *widths))  # what lies beyond is zero
    # For all heads at once: traced one by one, thousands of narrow heads take minutes.
    origins: list[int] = []
    positions: dict[bool, list[int]] = {True: [], False: []}  # of the heads cut by rows, by columns
    pieces: dict[bool, list[np.ndarray]] = {True: [], False: []}
    for head, support in enumerate(supports):
        rows, columns = np.flatnonzero(support.any(1)), np.flatnonzero(support.any(0))
        by_rows = len(rows) <= len(columns)
        spare = width_in if by_rows else width_out  # the number of no coordinate
        for chunk in chunks(rows if by_rows else columns, head_dim):
            filled = np.pad(chunk, (0, filled_dim - len(chunk)), constant_values=spare)
            positions[by_rows].append(len(origins))
            pieces[by_rows].append(filled)
            origins.append(head)
    parts = []
    for by_rows, width in ((True, width_in), (False, width_out)):
        coordinates = np.asarray(pieces[by_rows], int).reshape(-1, filled_dim)
        own = np.asarray(origins, int)[positions[by_rows]][:, None]
        oriented = maps if by_rows else maps.swapaxes(1, 2)
        rows_of_maps = jnp.pad(oriented, ((0, 0), (0, 1), (0, 0)))[own, coordinates]
        selection = jnp.asarray(coordinates[..., None] == np.arange(width)).astype(maps.dtype)
        value, output = (selection, rows_of_maps) if by_rows else (rows_of_maps, selection)
        parts.append((value.swapaxes(1, 2), output))
    order = np.argsort([*positions[True], *positions[False]])
    values, outputs = (jnp.concatenate(part)[order] for part in zip(*parts, strict=True))
    beyond = (0, head_dim - filled_dim)
    return (
        tuple(origins),
        jnp.pad(values, ((0, 0), (0, 0), beyond)),
        jnp.pad(outputs, ((0, 0), beyond, (0, 0))),
    )


def chunks(coordinates: np.ndarray, size: int) -> Sequence[np.ndarray]:
    """Consecutive pieces of at most `size` coordinates.

    >>> [piece.tolist() for piece in chunks(np.arange(5), 2)]
    [[0, 1], [2, 3], [4]]
    """
    return [coordinates[start : start + size] for start in range(0, len(coordinates), size)]


def map_supports(
    geometry: ConvolutionGeometry,
    channels: tuple[int, int],
    groups: int,
    targeted: bool,
    heads: int,
) -> np.ndarray:
    """Where each head's map can be nonzero for some kernel: `[heads, P²·in, P_out²·out]`.

    A head with a target has the support of that offset's map. The uniform head of an exact form,
    and every head of an encoding that is not `targeted`, mixes all maps.
    """
    size_in, size_out = channels
    block = np.kron(np.eye(groups), np.ones((size_in // groups, size_out // groups)))
    with jax.ensure_compile_time_eval():
        ones = jnp.asarray(np.broadcast_to(block, (*geometry.kernel_size, *block.shape)))
        supports = np.asarray(token_maps(ones, geometry)) != 0
    union = supports.any(0, keepdims=True)
    own = supports if targeted else supports[:0]
    return np.concatenate([own, np.repeat(union, heads - len(own), axis=0)])
