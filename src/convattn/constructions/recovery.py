"""`attention_to_conv`: the convolution nearest to an attention layer, and how near it is.

A layer without content is a linear map on images, L[x, y] ∈ R^(in × out) from input pixel y to
output pixel x. So is a convolution with taps t: C_W[x, y] = W_t if y = s·x + d·t, else 0. For
each tap the pairs (x, y) that it joins are disjoint from those of the other taps, so

    |L - C_W|² = Σ_t Σ_((x, y) of t) |L[x, y] - W_t|² + (the rest, which no W touches),

and the least-squares kernel is, tap by tap, the mean of L over the pairs. A layer with content is
not linear; it is linearised at X = 0, where Σ_k a_qk(X) X_k V has the derivative
Σ_k a_qk(0) dX_k V.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from convattn.encodings.layer import AttentionLayer
from convattn.fast.dense import layer_weights
from convattn.operators.attention import HIGHEST
from convattn.operators.integers import require_entries
from convattn.operators.shifts import TokenGrid, axis_taps, per_axis


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class RecoveryResidual:
    """How far the layer is from the recovered convolution on images of that size.

    Attributes:
        relative_frobenius: |L - C|_F / |L|_F of the two linear maps; 0 if both vanish.
        sup_norm: Max over output pixels and channels of Σ |L - C|.
        bias_gap: Max over the pixels of a patch and channels of |bias - its mean|; a convolution
            has one bias for all pixels, a layer need not. The outputs differ by at most `sup_norm ·
            max|X| + bias_gap`.
        linearised: Whether the layer has content scores, so that L is its derivative at X = 0.
    """

    relative_frobenius: Float[Array, ""]
    sup_norm: Float[Array, ""]
    bias_gap: Float[Array, ""]
    linearised: bool = field(default=False, metadata={"static": True})


class RecoveredConvolution(NamedTuple):
    """Unpacks as `kernel, bias, residual`."""

    kernel: Array
    bias: Array | None
    residual: RecoveryResidual


def attention_to_conv(
    layer: AttentionLayer,
    kernel_size: int | Sequence[int],
    *,
    image_size: int | Sequence[int],
) -> RecoveredConvolution:
    """The least-squares K × K convolution of a layer, over all queries of one image size.

    Args:
        layer: Any layer; its stride and dilation are those of the convolution. One that fills its
            ring is read with zeros there, which does not change its taps.
        kernel_size: K, or one for each axis; odd or even.
        image_size: The pixels, or one number for each axis; P divides them.

    Returns:
        The kernel `[K, K, in, out]`, the bias `[out]` (the mean over the pixels of a patch) or
        None, and the residual. For a layer from `conv_to_attention` the kernel is the one that went
        in, up to rounding, and the residual is of the size of rounding.

    Raises:
        ValueError: Where sizes do not fit the layer, for an image so large that the linear map
            could not be written out, and for a tap that joins no pair of pixels of
            such an image, so that nothing is known of it.

    >>> import convattn as ca
    >>> layer = ca.conv_to_attention([[[1.0]], [[2.0]], [[3.0]]], encoding="quadratic")
    >>> kernel, bias, residual = ca.attention_to_conv(layer, 3, image_size=(5,))
    >>> kernel.ravel().tolist(), bias, float(residual.relative_frobenius)
    ([1.0, 2.0, 3.0], None, 0.0)
    """
    axes = len(layer.patch_size)
    taps = per_axis(kernel_size, axes, "kernel_size")
    given = image_size if isinstance(image_size, int | np.integer) else tuple(image_size)
    sides = per_axis(given, axes, "image_size")
    if any(n % p for n, p in zip(sides, layer.patch_size, strict=True)):
        raise ValueError(
            f"image_size={sides}, but patches of size {layer.patch_size} should divide it"
        )
    linear = linear_map(layer, sides)
    out_sides, out_channels = linear.shape[axes : 2 * axes], linear.shape[-1]
    in_channels = linear.shape[-2]

    kernel = jnp.zeros((*taps, in_channels, out_channels), linear.dtype)
    fitted = jnp.zeros_like(linear)
    for tap in product(*(range(k) for k in taps)):
        pairs = []
        for axis, index in enumerate(tap):
            shift = layer.dilation[axis] * axis_taps(taps[axis])[index]
            outputs = np.arange(out_sides[axis])
            inputs = outputs * layer.stride[axis] + shift
            inside = (inputs >= 0) & (inputs < sides[axis])
            pairs.append((inputs[inside], outputs[inside]))
        if any(pair[0].size == 0 for pair in pairs):
            raise ValueError(
                f"image_size={sides} has no pair of pixels that tap {tap} of a kernel of size "
                f"{taps} joins; take a larger image or a smaller kernel"
            )
        grids = [*np.ix_(*(pair[0] for pair in pairs)), *np.ix_(*(pair[1] for pair in pairs))]
        where = tuple(np.broadcast_arrays(*grids))
        entries = linear[where].reshape(-1, in_channels, out_channels)
        mean = entries[0] + (entries - entries[:1]).mean(axis=0)  # exact where all are equal
        kernel = kernel.at[tap].set(mean)
        fitted = fitted.at[where].set(mean)

    bias, bias_gap = None, jnp.zeros((), linear.dtype)
    if layer.bias is not None:
        by_pixel = layer.bias.reshape(-1, out_channels).astype(linear.dtype)
        bias = by_pixel.mean(axis=0)
        bias_gap = jnp.abs(by_pixel - bias).max().astype(linear.dtype)
    gap = linear - fitted
    norm = jnp.sqrt(jnp.sum(linear**2))
    distance = jnp.sqrt(jnp.sum(gap**2))
    inputs_axes = (*range(axes), 2 * axes)
    residual = RecoveryResidual(
        jnp.where(norm > 0, distance / jnp.where(norm > 0, norm, 1), distance),
        jnp.abs(gap).sum(axis=inputs_axes).max(),
        bias_gap,
        layer.content is not None,
    )
    return RecoveredConvolution(kernel, bias, residual)


def linear_map(
    layer: AttentionLayer, image_size: Sequence[int]
) -> Float[Array, "*inputs_outputs in out"]:
    """L[y.., x.., i, o]: what input pixel y, channel i, adds to output pixel x, channel o.

    Args:
        image_size: The pixels on each axis; P divides them.

    Raises:
        ValueError: If it could not be written out, or the layer has no map.
    """
    axes, grid = len(layer.patch_size), zero_ring_grid(layer, image_size)
    require_room(replace(layer, padding=None), tuple(image_size))
    widths = [part.shape for part in (layer.value, layer.output) if part is not None]
    if widths:
        require_entries(
            math.prod(grid.queries) ** 2 * widths[0][1] * widths[-1][2],
            f"the linear map of images of {tuple(image_size)} pixels",
            "take a smaller image",
        )
    grid_sides = grid.queries
    weights = layer_weights(layer, grid, None)
    if weights.ndim == 4:
        weights = weights[0]
    inner = np.ravel_multi_index(tuple(grid.query_positions.T), grid.keys)
    weights = weights[:, :, inner]  # ring tokens are zero: they take weight, and give nothing
    maps = layer_maps(layer, weights.dtype)
    if maps is None:
        raise ValueError(
            "the layer has neither a value nor an output map, so its channels are not known; give "
            "it one, e.g. an identity"
        )
    linear = jnp.einsum("hqk,hio->kqio", weights, maps, precision=HIGHEST)
    p_in, p_out = layer.patch_size, layer.output_patch_size
    in_channels = maps.shape[1] // math.prod(p_in)
    out_channels = maps.shape[2] // math.prod(p_out)
    linear = linear.reshape(*grid_sides, *grid_sides, *p_in, in_channels, *p_out, out_channels)
    start_q, start_pin, start_pout = axes, 2 * axes, 3 * axes + 1
    order: list[int] = []
    for axis in range(axes):
        order += [axis, start_pin + axis]
    for axis in range(axes):
        order += [start_q + axis, start_pout + axis]
    order += [3 * axes, 4 * axes + 1]
    outputs = [n * p for n, p in zip(grid_sides, p_out, strict=True)]
    linear = linear.transpose(order).reshape(*image_size, *outputs, in_channels, out_channels)
    steps = [slice(None)] * axes + [slice(None, None, s) for s in layer.subsampling]
    return linear[tuple(steps)]


def require_room(layer: AttentionLayer, image_size: tuple[int, ...]) -> None:
    """Refuse an image so large that the scores of all pairs could not be written out.

    Raises:
        ValueError: As described above.
    """
    grid = layer.token_grid(image_size)
    queries = math.prod(grid.queries)
    require_entries(
        layer.heads * queries * grid.number_of_keys,
        f"image_size={image_size} makes {queries} queries and {grid.number_of_keys} keys, whose "
        f"scores in {layer.heads} heads",
        "take larger patches or a smaller image",
    )


def zero_ring_grid(layer: AttentionLayer, image_size: Sequence[int]) -> TokenGrid:
    """The tokens of an image with zero tokens around them, also where the layer fills its ring."""
    return replace(layer, padding=None).token_grid(image_size)


def layer_maps(layer: AttentionLayer, dtype: jnp.dtype) -> Array | None:
    """W_h = W_val,h W_out,h of every head, or None if both are the identity."""
    if layer.value is None or layer.output is None:
        single = layer.value if layer.output is None else layer.output
        return None if single is None else single.astype(dtype)
    return jnp.einsum(
        "hie,heo->hio", layer.value.astype(dtype), layer.output.astype(dtype), precision=HIGHEST
    )
