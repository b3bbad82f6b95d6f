"""The majorant of the rounding bound: the layer's sum with every term made positive.

A map of an exact layer is itself a sum, Σ_δ C_hδ M_δ, with C = 1/(1-ε) and -ε/(1-ε) (S.finite),
C = c_j/(1-ε) (S.registers) or C = V_hδ (S.dp1). Its terms may cancel, and rounding is relative to
the terms, not to the map. So

    G = Σ_h g_h A_h |X| Σ_δ |C_hδ||M_δ| + |b|.

C is what the construction makes of unit maps. The heads of a layer that was split to a smaller head
dimension add up to the same G.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from convattn.bounds.score_error import no_exact_form
from convattn.constructions.convolution import packed_layer
from convattn.constructions.finite import finite_construction
from convattn.constructions.geometry import ConvolutionGeometry
from convattn.constructions.li_output_map import expand_groups, token_maps
from convattn.constructions.register import SIGMAS, register_construction
from convattn.constructions.scalar import scalar_construction
from convattn.encodings.bias import BiasEncoding
from convattn.encodings.layer import AttentionLayer
from convattn.encodings.mixture import MixtureEncoding
from convattn.encodings.scalar import ScalarEncoding
from convattn.fast.application import apply_attention
from convattn.operators.convolution import check_kernel
from convattn.operators.roundoff import unit_roundoff


def majorant_of(
    layer: AttentionLayer, kernel: Any, bias: Any, images: Any, *, groups: int = 1
) -> Float[np.ndarray, "batch *space out_channels"]:
    """G = Σ_h g_h A_h |X| Σ_δ |C_hδ||M_δ| + |b|, in float64.

    Args:
        layer: An exact form from `conv_to_attention`; only its encoding and sizes are used, so the
            dtype and the head dimension do not matter, and of the encoding only the leak.
        kernel, bias, groups: What it was made from.
    """
    if isinstance(layer.encoding, ScalarEncoding) and layer.encoding.logit is not None:
        raise no_exact_form(layer.encoding)
    with jax.enable_x64(True):
        kernel, bias = check_kernel(kernel, bias, groups)
        return np.asarray(_majorant_values(layer, kernel, bias, jnp.asarray(images), groups))


@partial(jax.jit, static_argnames="groups")
def _majorant_values(
    layer: AttentionLayer, kernel: Array, bias: Array | None, images: Array, groups: int
) -> Array:
    """G as one program, under `jax.enable_x64(True)`."""
    absolute_layer = majorant_layer(layer, kernel, bias, groups=groups)
    return apply_attention(absolute_layer, jnp.abs(images.astype(jnp.float64)))


def majorant_layer(
    layer: AttentionLayer, kernel: Any, bias: Any, *, groups: int = 1
) -> AttentionLayer:
    """The layer with the maps Σ_δ |C_hδ||M_δ| and the bias |b|, whose result on |X| is G.

    A scalar limit form is taken too. Call it, and use what it returns, under
    `jax.enable_x64(True)`.
    """
    kernel, bias = check_kernel(kernel, bias, groups)
    geometry = ConvolutionGeometry.of(
        kernel.shape[:-2], layer.patch_size, layer.stride, layer.dilation
    )
    encoding = layer.encoding
    units = jnp.eye(geometry.heads, dtype=jnp.float64)[:, None, :]
    heads: BiasEncoding | ScalarEncoding | MixtureEncoding
    register = None
    if isinstance(encoding, BiasEncoding) and encoding.uniform_weight is not None:
        heads, parts = finite_construction(units, geometry, encoding.uniform_weight)
    elif isinstance(encoding, ScalarEncoding):
        heads, parts = scalar_construction(units, geometry, exact=encoding.logit is None)
    elif isinstance(encoding, MixtureEncoding) and layer.is_exact_form:
        # ε from the largest weight (1 + σ_1)(1/ε - 1), which took four roundings: that moves each
        # weight of a row and each map by less than 9 of them.
        total = 1 + SIGMAS[1]
        largest = encoding.weights.astype(jnp.float64).max()
        heads, parts, register = register_construction(units, geometry, total / (total + largest))
        parts = parts * (1 + 32 * unit_roundoff(encoding.weights.dtype))
    else:
        raise no_exact_form(encoding)
    if encoding.offsets != geometry.offsets:
        raise ValueError(
            f"kernel.shape={kernel.shape} reads the offsets {geometry.offsets}, but the layer "
            f"has {encoding.offsets}; pass the kernel that it was made from"
        )
    magnitude = expand_groups(jnp.abs(kernel.astype(jnp.float64)), groups)
    output = jnp.tensordot(jnp.abs(parts[:, 0]), token_maps(magnitude, geometry), 1)
    bias = None if bias is None else jnp.abs(bias.astype(jnp.float64))
    packed = packed_layer(geometry, heads, None, output, bias, layer.padding, register)
    return replace(packed, ring=layer.ring, causal=layer.causal)
