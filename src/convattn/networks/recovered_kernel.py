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
from convattn.encodings.layer import AttentionLayer
from convattn.fast.dense import layer_weights
from convattn.operators.arrays import promoted
from convattn.operators.attention import HIGHEST
from convattn.operators.roundoff import unit_roundoff

_MAX_ENTRIES = 2**26  # of the attention of all heads


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
    uniform = frobenius_norm(jnp.einsum("h,hio->io", weights, maps, precision=HIGHEST))
    terms = jnp.abs(weights) @ jax.vmap(frobenius_norm)(maps)
    norm = frobenius_norm(kernel.astype(maps.dtype)) * math.prod(layer.output_patch_size) ** 0.5
    norm = jnp.where(norm > 0, norm, 1)
    terms, uniform = terms / norm, uniform / norm
    computed, stored = (
        4 * layer.heads * unit_roundoff(dtype) * terms
        for dtype in (maps.dtype, layer.dtype or jnp.float32)
    )
    rounded = stored if layer.is_exact_form else jnp.zeros_like(stored)
    return jnp.where(uniform > computed, uniform, 0), rounded


def frobenius_norm(array: Any) -> Array:
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
