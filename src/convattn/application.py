"""`apply_attention`: from images to images through an attention layer."""

import math
from collections.abc import Sequence
from typing import Any, Literal, overload

import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float, Num

from convattn.arrays import as_array
from convattn.attention import HIGHEST, attention_weights, multi_head_self_attention
from convattn.layer import AttentionLayer
from convattn.patches import add_zero_ring, check_ring, patchify, unpatchify
from convattn.shifts import TokenGrid

BACKENDS = ("auto", "dense")


@overload
def apply_attention(
    layer: AttentionLayer,
    images: Any,
    *,
    ring: bool | int | Sequence[tuple[int, int]] | None = None,
    backend: str = "auto",
    precision: lax.PrecisionLike = None,
    return_weights: Literal[False] = False,
) -> Array: ...


@overload
def apply_attention(
    layer: AttentionLayer,
    images: Any,
    *,
    ring: bool | int | Sequence[tuple[int, int]] | None = None,
    backend: str = "auto",
    precision: lax.PrecisionLike = None,
    return_weights: Literal[True],
) -> tuple[Array, Array]: ...


def apply_attention(
    layer: AttentionLayer,
    images: Any,
    *,
    ring: bool | int | Sequence[tuple[int, int]] | None = None,
    backend: str = "auto",
    precision: lax.PrecisionLike = None,
    return_weights: bool = False,
) -> Num[Array, "batch *space out_channels"] | tuple[Array, Array]:
    """Apply a layer to images: cut patches, lay the ring, attend, put the patches back, stride.

    **Arguments:**

    - `images`: `[batch, height, width, channels]` or `[batch, length, channels]`; P divides the
      sides.
    - `ring`: None lays the layer's own ring of zero tokens, which makes the result of a
      converted layer `conv(..., padding="SAME")`. False leaves the grid bare. An integer, or a
      pair for each axis, lays another ring.
    - `backend`: `"dense"` holds all N² weights; `"auto"` is the same until there are others.
    - `precision`: of the matrix products; None pins the highest.
    - `return_weights`: return the attention weights as well.

    **Returns:** `[batch, height', width', out]` of dtype `result_type(images, values)`. Softmax
    and sums run in at least float32. With `return_weights` a pair: the output, and the weights
    `[heads, queries, keys]` (with a batch axis before if the layer has content scores); keys count
    the ring, row-major.

    **Raises:** `ValueError` for images whose rank, channels or sides do not fit the layer, and
    for an unknown back end.

    >>> import convattn as ca
    >>> layer = ca.conv_to_attention(jnp.ones((3, 3, 1, 1)), patch_size=2)
    >>> ca.apply_attention(layer, jnp.ones((1, 4, 4, 1)))[0, :, :, 0].round(4).tolist()[0]
    [4.0, 6.0, 6.0, 4.0]
    """
    if not isinstance(layer, AttentionLayer):
        raise ValueError(
            f"layer is {type(layer).__name__}, but should be an AttentionLayer, such as "
            "conv_to_attention returns; the images come second"
        )
    if backend not in BACKENDS:
        raise ValueError(f"backend={backend!r}, but should be one of {', '.join(BACKENDS)}")
    images = as_array(images, "images")
    axes = len(layer.patch_size)
    if images.ndim != axes + 2:
        raise ValueError(
            f"images.shape={images.shape}, but a layer with {axes} spatial axes takes batch, "
            f"{axes} spatial axes, channels"
        )
    tokens = patchify(images, layer.patch_size)
    features = layer_features(layer)
    if features is not None and tokens.shape[-1] != features:
        pixels = math.prod(layer.patch_size)
        raise ValueError(
            f"images.shape={images.shape} has {images.shape[-1]} channels, but the layer takes "
            f"{features // pixels} (its tokens have {features} features, its patches {pixels} "
            "pixels)"
        )
    if ring is None or ring is True:
        chosen = layer.ring
    else:
        chosen = check_ring(0 if ring is False else ring, axes)
    grid = TokenGrid(tuple(tokens.shape[1:-1]), chosen)
    keys = add_zero_ring(tokens, chosen)
    batch = images.shape[0]
    keys = keys.reshape(batch, grid.number_of_keys, tokens.shape[-1])

    weights = softmax_weights(layer, grid, keys)
    result_dtype = jnp.result_type(images, *([] if layer.dtype is None else [layer.dtype]))
    result = multi_head_self_attention(
        keys,
        with_gains(layer, weights, grid),
        layer.value,
        layer.output,
        layer.bias,
        precision=HIGHEST if precision is None else precision,
    )
    if not jnp.issubdtype(result_dtype, jnp.inexact):
        result_dtype = jnp.promote_types(result_dtype, jnp.float32)
    result = result.reshape(batch, *grid.queries, result.shape[-1]).astype(result_dtype)
    outputs = unpatchify(result, layer.output_patch_size)
    outputs = outputs[(slice(None), *(slice(None, None, s) for s in layer.subsampling))]
    return (outputs, weights) if return_weights else outputs


def softmax_weights(
    layer: AttentionLayer, grid: TokenGrid, keys: Num[Array, "batch keys features"] | None
) -> Float[Array, "heads queries keys"] | Float[Array, "batch heads queries keys"]:
    """The attention weights of a layer on a grid: every row sums to one.

    They have a batch axis if the layer has content scores. `keys` None stands for an image of
    zeros.
    """
    scores = layer.encoding.positional_scores(grid)
    if layer.content is not None:
        if keys is None:
            keys = jnp.zeros((1, grid.number_of_keys, layer.content.query.shape[1]), scores.dtype)
        inner = np.ravel_multi_index(tuple(grid.query_positions.T), grid.keys)
        scores = scores + layer.content.scores(keys[:, inner], keys)
    return attention_weights(scores)


def with_gains(
    layer: AttentionLayer, weights: Float[Array, "*batch heads queries keys"], grid: TokenGrid
) -> Float[Array, "*batch heads queries keys"]:
    """Each head's weights times its gain, where the encoding has gains."""
    gains = layer.encoding.head_gains(grid.number_of_keys)
    return weights if gains is None else weights * gains[:, None, None]


def layer_weights(
    layer: AttentionLayer, grid: TokenGrid, keys: Num[Array, "batch keys features"] | None
) -> Float[Array, "heads queries keys"] | Float[Array, "batch heads queries keys"]:
    """What the value maps of the heads are summed with: the weights times the gains."""
    return with_gains(layer, softmax_weights(layer, grid, keys), grid)


def layer_features(layer: AttentionLayer) -> int | None:
    """How many features the tokens of a layer have, or None if it does not say."""
    if layer.value is not None:
        return layer.value.shape[1]
    return None if layer.output is None else layer.output.shape[1]
