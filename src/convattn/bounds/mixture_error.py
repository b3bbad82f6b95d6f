"""How far a layer of mixture heads, run in floating point, can be from what it is exactly.

The derivation is that of `bounds/rounding.py`; only the scores are others. A score is log1p(x) with
x = N·w: the stored w (three roundings from the rational one: to float64, to the dtype, and a cast),
N and the product make at most γ_6 of x, which moves log1p(x) by at most γ_6·x/(1+x) ≤
γ_6·log1p(x), and log1p counts as eight. So e = γ_15·S with S the largest score; the others are 0.

The majorant is G = Σ_h A_h |X| Σ_i |coefficient_hi| |C_i| + |b|, since a head's map is such a sum.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from convattn.bounds.rounding import fill_error, relative_error, underflow_bound
from convattn.bounds.score_error import EXP_ERROR, ScoreError, gamma, unit_roundoff
from convattn.constructions.geometry import ConvolutionGeometry
from convattn.constructions.given_kernel import mixture_heads, mixture_layer
from convattn.constructions.li_output_map import token_maps
from convattn.constructions.row_basis import (
    distinct_rows,
    exact_entries,
    row_basis,
    well_conditioned_order,
)
from convattn.encodings.base import score_dtype
from convattn.encodings.layer import AttentionLayer
from convattn.fast.application import apply_attention
from convattn.operators.arrays import accumulation_dtype


def mixture_score_error(layer: AttentionLayer, number_of_keys: int) -> ScoreError:
    """e and S for the scores log1p(N·w).

    Raises:
        ValueError: Where the smallest weights of a row underflow.
    """
    weights = layer.encoding.weights  # type: ignore[attr-defined]
    dtype = score_dtype(weights)
    height = math.log1p(number_of_keys * float(jnp.max(weights, initial=0.0))) * (1 + 2.0**-20)
    error = gamma(EXP_ERROR + 7, unit_roundoff(dtype)) * height
    if math.exp(-height) / number_of_keys < 4 * float(jnp.finfo(dtype).tiny):
        raise ValueError(
            f"scores up to {height:.3g} make weights that underflow in {dtype}: there is no bound; "
            "use a wider dtype"
        )
    return ScoreError(dtype, error, height, 0.0)


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

    Raises:
        ValueError: Where weights underflow, or the dtype is too narrow for any bound.
    """
    images = jnp.asarray(images)
    grid = layer.token_grid(images.shape[1:-1])
    scores = mixture_score_error(layer, grid.number_of_keys)
    exponent = scores.absolute + unit_roundoff(scores.dtype) * (scores.range + 2 * scores.absolute)
    result = jnp.result_type(images, layer.dtype or images.dtype)
    working = accumulation_dtype(result)
    relative = relative_error(layer, grid, scores, exponent, working, result, False)
    relative += (1 + relative) * fill_error(layer, images.shape[1:-1], working)
    absolute = underflow_bound(layer, images, grid, working, result, False)
    return relative * majorant * (1 + 2.0**-20) + absolute
