"""How far a layer of mixture heads, run in floating point, can be from what it is exactly.

The derivation is that of `bounds/rounding.py`; only the scores are others (`score_error` of
`MixtureEncoding`).

The majorant is G = Σ_h A_h |X| Σ_i |coefficient_hi| |C_i| + |b|, since a head's map is such a sum.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from convattn.bounds.rounding import fill_error, relative_error, underflow_bound
from convattn.constructions.geometry import ConvolutionGeometry
from convattn.constructions.given_kernel import mixture_heads, mixture_layer
from convattn.constructions.li_output_map import token_maps
from convattn.constructions.row_basis import (
    distinct_rows,
    exact_entries,
    row_basis,
    well_conditioned_order,
)
from convattn.encodings.layer import AttentionLayer
from convattn.fast.application import apply_attention
from convattn.operators.arrays import accumulation_dtype
from convattn.operators.roundoff import unit_roundoff


def given_kernel_majorant(
    layer: AttentionLayer, kernel: Any, bias: Any, images: Any
) -> Float[np.ndarray, "batch *space out_channels"]:
    """G for `layer = given_kernel_layer(kernel, bias, …)`, in float64.

    Args:
        layer: Only its sizes are used, so the dtype does not matter.

    Source: S.kernel of this project's ledger; `bounds/rounding.py`.
    """
    entries = exact_entries(kernel)
    geometry = ConvolutionGeometry.of(
        entries.shape[:-2], layer.patch_size, layer.stride, layer.dilation
    )
    rows = distinct_rows(entries, geometry)[0]
    basis, pivots = row_basis(rows, well_conditioned_order(rows))
    weights, coefficients = mixture_heads(basis)
    with jax.enable_x64(True):
        magnitude = jnp.asarray(np.abs(entries.astype(np.float64)))
        maps = token_maps(magnitude, geometry)[np.array(pivots, np.int32)]
        size = None if bias is None else jnp.abs(jnp.asarray(bias, jnp.float64))
        wide = mixture_layer(weights, np.abs(coefficients), maps, geometry, size, layer.padding)
        positive = jnp.abs(jnp.asarray(images).astype(jnp.float64))
        return np.asarray(jax.jit(apply_attention)(wide, positive))


def mixture_error_bound(
    layer: AttentionLayer, images: Any, majorant: Float[np.ndarray, "batch *space out_channels"]
) -> Float[np.ndarray, "batch *space out_channels"]:
    """A bound on |apply_attention(layer, images) - what the layer is exactly|, entry by entry.

    Args:
        layer: Of mixture heads, in the dtype under test.
        images: As given to `apply_attention`.
        majorant: G, at least that of the layer's maps before they were rounded.

    Returns:
        float64.
    """
    layer.require_no_register("the scores of tokens alone are bounded here")
    images = jnp.asarray(images)
    grid = layer.token_grid(images.shape[1:-1])
    scores = layer.encoding.score_error(grid.number_of_keys)  # type: ignore[attr-defined]
    exponent = scores.absolute + unit_roundoff(scores.dtype) * (scores.range + 2 * scores.absolute)
    result = jnp.result_type(images, layer.dtype or images.dtype)
    working = accumulation_dtype(result)
    relative = relative_error(layer, grid, scores, exponent, working, result, False)
    relative += (1 + relative) * fill_error(layer, images.shape[1:-1], working)
    absolute = underflow_bound(layer, images, grid, working, result, False)
    return relative * majorant * (1 + 2.0**-20) + absolute
