"""A layer on groups of channels, as a convolution has them."""

from dataclasses import replace

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Num

from convattn.encodings.layer import AttentionLayer
from convattn.fast.application import apply_attention


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
    if groups == 1:
        return apply_attention(layer, images, backend=backend, precision=precision)
    assert layer.output is not None
    heads, width, out = layer.output.shape
    maps = jnp.moveaxis(layer.output.reshape(heads, width, groups, out // groups), 2, 0)
    parts = jnp.moveaxis(
        images.reshape(*images.shape[:-1], groups, images.shape[-1] // groups), -2, 0
    )

    def attend(output: Array, part: Array) -> Array:
        own = replace(layer, output=output)
        return apply_attention(own, part, backend=backend, precision=precision)

    outputs = jnp.moveaxis(jax.vmap(attend)(maps, parts), 0, -2)
    return outputs.reshape(*outputs.shape[:-2], out)
