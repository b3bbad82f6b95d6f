"""How far a limit layer whose weights are exactly zero off the offsets is from the convolution.

In floating point a limit layer has weights that are exactly zero wherever the exponential
underflows. That is looked at, not assumed: `limit_rounding_bound` refuses a layer whose weights are
not so.

- *One-hot* (bias, quadratic, enumerated, polygon, rotary). Every weight is 0 or 1, so products with
  weights are exact, and only sums of the products with the maps, the bias and the cast round. With
  the lengths n of `contraction_lengths`, u_a of the sums and u_r of the result,

      |computed - exact| ≤ (Π (1 + γ_n)·(1 + u_p)(1 + u_a)(1 + u_r) - 1)·G,   G = |X| * |W| + |b|,

  u_p being for kernels that the maps' dtype cannot hold, such as large integers.
- *Scalar.* At the T offsets the weights are t_δ^h/Σ_δ t_δ^h, with the errors that
  `ScalarEncoding.score_error` derives for scores h·log t_δ; the other N - T terms are zeros, which
  no sum rounds. The majorant is that of `convattn.bounds.majorant` for the limit's coefficients.

Underflow in the products is added as in `convattn.bounds.rounding`, under the same assumptions.
"""

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from convattn.bounds.majorant import majorant_layer
from convattn.bounds.rounding import fill_error, maps_dtype, relative_error, underflow_bound
from convattn.encodings.layer import AttentionLayer
from convattn.encodings.scalar import ScalarEncoding
from convattn.fast.application import apply_attention
from convattn.fast.dense import softmax_weights
from convattn.operators.arrays import accumulation_dtype
from convattn.operators.attention import contraction_lengths
from convattn.operators.convolution import conv
from convattn.operators.padding import centred_padding
from convattn.operators.roundoff import gamma, unit_roundoff
from convattn.operators.shifts import TokenGrid


def limit_rounding_bound(
    layer: AttentionLayer, images: Any, kernel: Any, bias: Any, *, groups: int = 1
) -> Float[np.ndarray, "batch *space out_channels"]:
    """A bound on |apply_attention(layer, images) - conv(images, kernel, bias)|, entry by entry.

    Args:
        layer: A limit form from `conv_to_attention`, in the dtype under test.
        images: As they are given to `apply_attention`; they count as exact.
        kernel, bias, groups: What the layer was made from.

    Returns:
        float64.

    >>> import convattn as ca
    >>> kernel = [[[1.0]], [[2.0]], [[3.0]]]
    >>> layer = ca.conv_to_attention(kernel, encoding="quadratic")
    >>> bound = limit_rounding_bound(layer, jnp.ones((1, 5, 1)), kernel, None)
    >>> bool((bound < 1e-5).all())
    True
    """
    if not isinstance(layer.encoding, ScalarEncoding):
        return one_hot_bound(layer, images, output_magnitude(images, kernel, bias, layer, groups))
    images, grid, result, working, weights = _prepared(layer, images)
    _require_zeros(weights, len(layer.encoding.offsets))
    scores = layer.encoding.score_error(grid.number_of_keys)
    exponent = scores.absolute + unit_roundoff(scores.dtype) * (scores.range + 2 * scores.absolute)
    relative = relative_error(layer, grid, scores, exponent, working, result, False)
    with jax.enable_x64(True):
        absolute_layer = majorant_layer(layer, kernel, bias, groups=groups)
        majorant = np.asarray(
            apply_attention(absolute_layer, jnp.asarray(np.abs(_to_float64(images))))
        )
    relative += (1 + relative) * fill_error(layer, images.shape[1:-1], working)
    absolute = underflow_bound(layer, images, grid, working, result, True)
    return relative * majorant * (1 + 2.0**-20) + absolute


def one_hot_bound(
    layer: AttentionLayer, images: Any, majorant: Float[np.ndarray, "batch *space out_channels"]
) -> Float[np.ndarray, "batch *space out_channels"]:
    """The same for a layer of one-hot heads and a majorant Σ_h A_h |X||W_h| + |b|."""
    images, grid, result, working, weights = _prepared(layer, images)
    _require_zeros(weights, 1)
    total = math.log1p(unit_roundoff(working)) + math.log1p(unit_roundoff(result))
    total += math.log1p(unit_roundoff(maps_dtype(layer)))
    for n in contraction_lengths(layer.value, layer.output, layer.heads, grid.number_of_keys):
        total += math.log1p(gamma(n, unit_roundoff(working)))
    relative = math.expm1(total)
    relative += (1 + relative) * fill_error(layer, images.shape[1:-1], working)
    absolute = underflow_bound(layer, images, grid, working, result, True)
    return relative * majorant * (1 + 2.0**-20) + absolute


def _prepared(layer: AttentionLayer, images: Any) -> tuple[Any, TokenGrid, Any, Any, np.ndarray]:
    """The images, the grid, the dtypes of the result and of the sums, and the rows asked for."""
    images = jnp.asarray(images)
    grid = layer.token_grid(images.shape[1:-1])
    result = jnp.result_type(images, layer.dtype or images.dtype)
    weights = np.asarray(softmax_weights(layer, grid, None))
    rows = _requested_rows(layer, images.shape[1:-1], weights)
    return images, grid, result, accumulation_dtype(result), rows


def output_magnitude(
    images: Any, kernel: Any, bias: Any, layer: AttentionLayer, groups: int
) -> Float[np.ndarray, "batch *space out_channels"]:
    """|X| * |W| + |b| in float64."""
    with jax.enable_x64(True):
        images, kernel = np.abs(_to_float64(images)), np.abs(_to_float64(kernel))
        bias = None if bias is None else np.abs(_to_float64(bias))
        padding = layer.padding or centred_padding(kernel.shape[:-2], layer.dilation)
        options: dict[str, Any] = {"stride": layer.stride, "dilation": layer.dilation}
        return np.asarray(conv(images, kernel, bias, groups=groups, padding=padding, **options))


def _requested_rows(
    layer: AttentionLayer,
    image_size: Sequence[int],
    weights: Float[np.ndarray, "heads queries keys"],
) -> Float[np.ndarray, "heads wanted keys"]:
    """The rows whose results are asked for: with a filled ring, those behind it."""
    if layer.padding is None:
        return weights
    axes = layer.filled_axes(image_size)
    tokens = np.ix_(*(np.array(axis.queries, int) for axis in axes))
    index = np.ravel_multi_index(np.broadcast_arrays(*tokens), [axis.tokens for axis in axes])
    return weights[:, index.reshape(-1)]


def _to_float64(array: Any) -> np.ndarray:
    return np.asarray(array).astype(np.float64)


def _require_zeros(weights: Float[np.ndarray, "heads queries keys"], nonzero: int) -> None:
    most = int((weights != 0).sum(axis=-1).max())
    exact = nonzero > 1 or bool(((weights == 0) | (weights == 1)).all())
    if most > nonzero or not exact:
        raise ValueError(
            f"a row of the attention weights has {most} nonzero entries, the largest below one is "
            f"{float(weights[weights < 1].max(initial=0)):.1e}, but in a limit form all but "
            f"{nonzero} should have underflowed; leave out alpha and logit, whose defaults do that"
        )
