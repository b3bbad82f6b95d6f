"""The layer without a ring that is the zero-padded convolution of one image size, if there is one.

It has the heads of S.finite, at finite parameters. Where the sums T_q of the taps inside are the
same at all queries, T, the map of the uniform head becomes

    U = -ε/(1-ε)·Σ M_δ - (Σ M_δ - T),

that of S.finite less what is missing; the proof stands in `convattn.bounds.zero_padding`.
"""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax import Array

from convattn.bounds.zero_padding import available_offsets, read_sizes, unequal_queries
from convattn.constructions.finite import leaky_construction
from convattn.constructions.li_output_map import token_bias, token_maps
from convattn.constructions.regimes import require_leak
from convattn.encodings.base import score_dtype
from convattn.encodings.layer import AttentionLayer
from convattn.operators.convolution import check_kernel


def bare_zero_padding_layer(
    kernel: Any,
    bias: Any = None,
    *,
    tokens: int | Sequence[int],
    patch_size: int | Sequence[int] = 1,
    dilation: int | Sequence[int] = 1,
    leak: float | Array = 0.5,
) -> AttentionLayer:
    """The layer without a ring that is the zero-padded convolution of one image size.

    Args:
        kernel, bias: As for `conv`, one group; known, not traced.
        tokens: The only grid, in tokens, on which the layer is the convolution.
        leak: ε in (0, 1), as for `conv_to_attention`.

    Returns:
        A layer with one head for each offset and a uniform one, exact at finite parameters, whose
        ring is empty.

    Raises:
        ValueError: Where T_q differs between queries, so that there is no such layer.

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
    if not jnp.issubdtype(kernel.dtype, jnp.inexact):
        kernel = kernel.astype(jnp.result_type(kernel, jnp.float32))
    require_leak(leak, score_dtype(kernel))
    kernel, geometry, grid = read_sizes(kernel, tokens, patch_size, dilation)
    maps = token_maps(kernel, geometry)
    heads, blocks = leaky_construction(maps, geometry, leak)
    wide, epsilon = maps.astype(score_dtype(maps)), jnp.asarray(leak, score_dtype(maps))
    missing = jnp.asarray(~available_offsets(geometry, grid)[0], wide.dtype)
    shares = missing + epsilon / (1 - epsilon)
    uniform = -jnp.tensordot(shares, wide, 1, precision="highest")
    return AttentionLayer(
        encoding=heads,
        value=None,
        output=blocks.at[-1].set(uniform.astype(blocks.dtype)),
        bias=None if bias is None else token_bias(bias, geometry),
        patch_size=geometry.patch_size,
        stride=geometry.stride,
        dilation=geometry.dilation,
        ring=((0, 0),) * len(grid),
    )
