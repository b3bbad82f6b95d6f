"""A layer on groups of channels, as a convolution has them."""

from dataclasses import replace

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Num

from convattn.encodings.layer import AttentionLayer
from convattn.encodings.tied import TiedLayer
from convattn.fast.application import apply_attention
from convattn.fast.products import is_highest
from convattn.operators.arrays import promoted
from convattn.operators.attention import HIGHEST


def grouped_attention(
    layer: AttentionLayer,
    images: Num[Array, "batch *space in_channels"],
    groups: int,
    backend: str = "auto",
    precision: lax.PrecisionLike = None,
) -> Num[Array, "batch *space_out out_channels"]:
    """Each group of channels through its own columns of the output maps.

    Args:
        layer: Its maps go from the channels of one group to those of all.
        images: Groups first in the channels.

    Returns:
        Groups first in the channels.

    >>> import convattn as ca
    >>> layer = ca.conv_to_attention(jnp.array([[[1.0, 10.0]]]))  # two channels, one from each
    >>> grouped_attention(layer, jnp.array([[[1.0, 2.0]]]), 2).round(4).tolist()
    [[[1.0, 20.0]]]
    """
    if isinstance(layer, TiedLayer):
        if backend in ("auto", "shift"):
            return _tied_attention(layer, images, groups, precision)
        layer = layer.untied()
    if groups == 1:
        return apply_attention(layer, images, backend=backend, precision=precision)
    assert layer.output is not None
    heads, width, out = layer.output.shape
    maps = jnp.moveaxis(layer.output.reshape(heads, width, groups, out // groups), 2, 0)
    inputs = jnp.moveaxis(
        images.reshape(*images.shape[:-1], groups, images.shape[-1] // groups), -2, 0
    )

    def attend(output: Array, group: Array) -> Array:
        own = replace(layer, output=output)
        return apply_attention(own, group, backend=backend, precision=precision)

    outputs = jnp.moveaxis(jax.vmap(attend)(maps, inputs), 0, -2)
    return outputs.reshape(*outputs.shape[:-2], out)


def _tied_attention(
    layer: TiedLayer,
    images: Num[Array, "batch *space in_channels"],
    groups: int,
    precision: lax.PrecisionLike,
) -> Num[Array, "batch *space_out out_channels"]:
    """Σ_δ S_δ X M_δ, which all heads are together: every offset of a query asked for is a key.

    The maps M_δ are those of the kernel, and the slices S_δ X fill a box, so that this is one
    convolution with the strides and groups of the layer, at no more cost.
    """
    maps = layer.output
    assert maps is not None
    highest = precision is None or is_highest(precision)
    dtype = promoted(images, maps, jnp.float32) if highest else images.dtype
    reach = zip(layer.ring, layer.dilation, strict=True)
    taps = tuple(sum(ring) // step + 1 for ring, step in reach)
    around = layer.ring
    if layer.padding is not None:
        around = layer.padding.at(images.shape[1:-1], layer.stride)
    names = "yx"[-len(taps) :]
    outputs = lax.conv_general_dilated(
        images.astype(dtype),
        maps.astype(dtype).reshape(*taps, *maps.shape[1:]),
        layer.stride,
        around,
        rhs_dilation=layer.dilation,
        dimension_numbers=(f"N{names}C", f"{names}IO", f"N{names}C"),
        feature_group_count=groups,
        precision=HIGHEST if precision is None else precision,
    )
    return outputs.astype(jnp.result_type(images, maps))
