"""The convolution nearest to a layer whose maps are large: head by head instead of entry by entry.

The layer is Σ_h A_h ⊗ W_h on one group of channels, and the least-squares kernel is the mean of its
entries over the pairs of pixels that a tap joins (`convattn.constructions.recovery`). So the kernel
at tap t is Σ_h m_ht W_h, with m_h the kernel nearest to A_h alone.

**The uniform part.** Far from its offsets each head gives all N keys the same weight u_h. So every
output holds N·Σ_h u_h W_h times the mean of all keys, which no convolution has. In the exact form
(S.finite) the uniform head cancels it; in the Frobenius norm of the linear map it weighs only
1/√N of what it does to a picture whose mean is not zero, so it has a number of its own.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from convattn.constructions.linear_map import layer_maps
from convattn.constructions.recovery import attention_to_conv
from convattn.encodings.base import OffsetTable
from convattn.encodings.layer import AttentionLayer
from convattn.fast.dense import layer_weights
from convattn.operators.arrays import promoted
from convattn.operators.attention import HIGHEST
from convattn.operators.roundoff import unit_roundoff

_MAX_ENTRIES = 2**26  # of the attention of all heads
_MOST_KEYS = 2**32  # of an image that anybody has
_HIGHEST = 700.0  # a score ahead of the others that exp takes in float64


def recovered_kernel(
    layer: AttentionLayer, kernel_size: Sequence[int], image_size: Sequence[int]
) -> tuple[Array, Array, Array]:
    """The kernel `[*K, in, out]`, |N·Σ_h u_h W_h|/|kernel|, and what rounding of it there can be.

    The second is zero where computing it rounds as much. The third is what the layer's own numbers
    leave, rounded to their dtype, where a uniform head is to cancel the others; else zero.

    Args:
        layer: On pixels, without content.
        image_size: From `recovery_size`.

    >>> from convattn.constructions.conversion import conv_to_attention
    >>> layer = conv_to_attention(jnp.arange(6.0).reshape(3, 1, 2), form="limit")
    >>> kernel, uniform, rounded = recovered_kernel(layer, (3,), (9,))
    >>> kernel.ravel().tolist(), float(uniform), float(rounded)
    ([0.0, 1.0, 2.0, 3.0, 4.0, 5.0], 0.0, 0.0)
    """
    maps = working_maps(layer)
    identity = jnp.eye(layer.heads, dtype=maps.dtype)[:, None, :]
    heads = replace(layer, value=None, output=identity)
    coefficients, _, _ = attention_to_conv(heads, tuple(kernel_size), image_size=image_size)
    kernel = jnp.einsum("...h,hio->...io", coefficients[..., 0, :], maps, precision=HIGHEST)
    return kernel, *uniform_part(layer, kernel, image_size)


def uniform_part(
    layer: AttentionLayer, kernel: Array, image_size: Sequence[int]
) -> tuple[Array, Array]:
    """|N·Σ_h u_h W_h|/|kernel| for each pixel of an output, and what rounding of it there can be.

    Args:
        layer: Without content.
        kernel: The nearest one.
        image_size: From `recovery_size`.
    """
    maps = working_maps(layer)
    bare = replace(layer, padding=None)  # the last query then has a key that is far
    grid = bare.token_grid(image_size)
    rows = layer_weights(bare, grid, None).reshape(layer.heads, -1, grid.number_of_keys)
    first = np.ravel_multi_index(tuple(grid.query_positions[0]), grid.keys)
    weights = rows[:, -1, first].astype(maps.dtype) * grid.number_of_keys
    uniform = _norm(jnp.einsum("h,hio->io", weights, maps, precision=HIGHEST))
    terms = jnp.abs(weights) @ jax.vmap(_norm)(maps)
    norm = _norm(kernel.astype(maps.dtype)) * math.prod(layer.output_patch_size) ** 0.5
    norm = jnp.where(norm > 0, norm, 1)
    terms, uniform = terms / norm, uniform / norm
    computed, stored = (
        4 * layer.heads * unit_roundoff(dtype) * terms
        for dtype in (maps.dtype, layer.dtype or jnp.float32)
    )
    rounded = stored if layer.is_exact_form else jnp.zeros_like(stored)
    return jnp.where(uniform > computed, uniform, 0), rounded


def size_within(
    layer: AttentionLayer, kernel: Array, image_size: Sequence[int], tolerance: float
) -> tuple[int, ...] | None:
    """Sides up to which the layer stays the convolution within a tolerance, in these proportions.

    On N keys head h of a table has a weight a_hδ at each of its T offsets, the same weight u_h at
    every other key, and the gain g_h. So the layer is the convolution of kernel Σ_h g_h(a_hδ -
    u_h)W_h, and N·Σ_h g_h u_h W_h of the mean of all keys. In a limit form of scores that are M
    ahead the first falls and the second grows, both by about N·e^-M; no head cancels this. Beside a
    register with the score r, heads whose target lies outside have u_h = 1/(N + e^r).

    Args:
        layer: Without content.
        kernel: The nearest one.
        image_size: From `recovery_size`.
        tolerance: Of the second, and of the change of the first from its value on `image_size`,
            relative to |kernel|, beyond what rounding of the scores makes of them.

    Returns:
        The sides in pixels, `image_size` at least; None if it holds up to 2^32 keys, if the other
        scores fall with the distance, or if a uniform head is there to cancel.

    >>> from convattn.constructions.conversion import conv_to_attention
    >>> layer = conv_to_attention(jnp.ones((3, 1, 1)), form="limit", sharpness=17.0)
    >>> size_within(layer, jnp.ones((3, 1, 1)), (9,), 1e-3)  # keys: 1e-3·√3/3·e^17 = 13,946
    (10959,)
    """
    encoding = layer.encoding
    if layer.is_exact_form or not isinstance(encoding, OffsetTable):
        return None
    keys = layer.token_grid(image_size).number_of_keys
    offsets = np.array(encoding.offsets)
    shifts = np.concatenate([offsets, np.abs(offsets).max(axis=0, keepdims=True) + 1])
    flat = np.asarray(working_maps(layer), np.float64).reshape(layer.heads, -1)
    triangle = np.linalg.qr(flat.T).R.T  # |a W| = |a triangle|, in fewer columns
    lengths = np.linalg.norm(flat, axis=1)
    norm = float(_norm(np.asarray(kernel, np.float64))) * math.prod(layer.output_patch_size) ** 0.5
    registers = None if layer.register is None else np.asarray(layer.register.at(keys), np.float64)
    rounding = 4 * layer.heads * unit_roundoff(layer.dtype or jnp.float32)

    @jax.jit
    def scores_and_gains(number: Array) -> tuple[Array, Array]:
        gains = encoding.head_gains(number)
        ones = jnp.ones(layer.heads, number.dtype)
        return encoding.shift_scores(shifts, number), ones if gains is None else gains

    def parts(number: float) -> tuple[np.ndarray, float, float]:
        """The kernel's rows, the uniform part, and what rounding makes of either."""
        scores, gains = (
            np.asarray(array, np.float64)
            for array in scores_and_gains(jnp.asarray(number, layer.dtype or jnp.float32))
        )
        far = scores[:, -1:]
        table = np.exp(np.minimum(scores[:, :-1] - far, _HIGHEST))
        sums = table.sum(axis=1) + number - len(offsets)
        beside = 0.0
        if registers is not None:
            register = np.exp(np.minimum(registers - far[:, 0], _HIGHEST))
            sums = sums + register
            beside = float((number * gains / (number + register)) @ lengths)
        rows = ((gains / sums)[:, None] * (table - 1)).T @ triangle
        weights = number * gains / sums
        terms = float((weights + gains * table.sum(axis=1) / sums) @ lengths)
        return rows, max(float(np.linalg.norm(weights @ triangle)), beside), rounding * terms

    first, _, _ = parts(keys)
    within = 1.0
    for growth in 2.0 ** np.arange(0, math.log2(_MOST_KEYS / keys), 1 / 8):
        rows, uniform, rounded = parts(keys * growth)
        if max(float(np.linalg.norm(rows - first)), uniform) > tolerance * (norm or 1.0) + rounded:
            patches = zip(image_size, layer.patch_size, strict=True)
            scale = within ** (1 / len(image_size))
            return tuple(p * int(side * scale // p) for side, p in patches)
        within = growth
    return None


def _norm(array: Any) -> Array:
    """The Frobenius norm, also where squares overflow or underflow."""
    largest = abs(array).max()
    scale = jnp.where(largest > 0, largest, 1)
    return scale * jnp.linalg.norm((array / scale).ravel())


def another_size(
    layer: AttentionLayer, kernel_size: Sequence[int], image_size: Sequence[int]
) -> tuple[int, ...]:
    """Sides unlike these, on which a layer is compared once more: twice as large, if there is room.

    >>> from convattn.constructions.conversion import conv_to_attention
    >>> another_size(conv_to_attention(jnp.ones((3, 1, 1))), (3,), (20,))
    (40,)
    """
    sides = recovery_size(layer, kernel_size, [2 * side for side in image_size])
    if any(one == other for one, other in zip(sides, image_size, strict=True)):
        return tuple(side + p for side, p in zip(sides, layer.patch_size, strict=True))
    return sides


def working_maps(layer: AttentionLayer) -> Array:
    """The maps of the heads, in at least float32."""
    maps = layer_maps(layer, promoted(layer.dtype or jnp.float32, jnp.float32))
    assert maps is not None
    return maps


def recovery_size(
    layer: AttentionLayer, kernel_size: Sequence[int], image_size: Sequence[int] | None
) -> tuple[int, ...]:
    """The sides at which a kernel is read: over four times the kernel's tokens, or an image's.

    Every tap joins two pixels there, so do the pixels that a head reads at the far side of the
    layer's own ring, and the last query has a key beyond all offsets. Larger sides are cut so that
    the attention of all heads has at most 2²⁶ entries.

    >>> from convattn.constructions.conversion import conv_to_attention
    >>> layer = conv_to_attention(jnp.ones((3, 1, 1)), dilation=2)
    >>> recovery_size(layer, (3,), None), recovery_size(layer, (3,), (4,))
    ((24,), (6,))
    >>> recovery_size(conv_to_attention(jnp.ones((31, 1, 1))), (3,), (4,))
    (17,)
    """
    patch = layer.patch_size
    own = [(p * a, p * b) for p, (a, b) in zip(patch, layer.ring, strict=True)]
    if layer.padding is not None:
        own = list(layer.padding.reach)

    def tokens(pixels: Sequence[int]) -> tuple[int, ...]:
        return tuple(-(-n // p) for n, p in zip(pixels, patch, strict=True))

    reach = [d * (k - 1) for k, d in zip(kernel_size, layer.dilation, strict=True)]
    far = zip(reach, own, layer.stride, strict=True)
    smallest = tokens([max(taps, *pair) + step + 1 for taps, pair, step in far])
    many = tuple(4 * n + 8 for n in tokens(reach))
    asked = many if image_size is None else tokens(image_size)
    sides = tuple(map(max, asked, smallest))
    while layer.heads * math.prod(sides) ** 2 > _MAX_ENTRIES and sides != smallest:
        sides = tuple(max(3 * n // 4, least) for n, least in zip(sides, smallest, strict=True))
    return tuple(n * p for n, p in zip(sides, patch, strict=True))
