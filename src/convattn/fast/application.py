"""`apply_attention`: from images to images through an attention layer."""

import math
from collections.abc import Sequence
from typing import Any, Literal, overload

import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Num

from convattn.encodings.base import RelativePosition
from convattn.encodings.layer import AttentionLayer
from convattn.fast.dense import softmax_weights
from convattn.fast.maps import out_features, sum_dtype
from convattn.fast.options import AttentionOptions, Window, read_dropout, read_windows
from convattn.fast.selection import choose_backend
from convattn.fast.windowed.window import skipped_weight, window_problem
from convattn.operators.arrays import as_array
from convattn.operators.attention import HIGHEST
from convattn.operators.patches import add_zero_ring, check_ring, patchify, unpatchify
from convattn.operators.relative_content import check_shapes
from convattn.operators.shifts import TokenGrid


@overload
def apply_attention(
    layer: AttentionLayer,
    images: Any,
    *,
    ring: bool | int | Sequence[tuple[int, int]] | None = None,
    backend: str = "auto",
    precision: lax.PrecisionLike = None,
    dropout_rate: float = 0.0,
    dropout_key: Array | None = None,
    windows: Sequence[Window] | None = None,
    chunk: int | None = None,
    return_weights: Literal[False] = False,
    return_skipped: Literal[False] = False,
) -> Array: ...


@overload
def apply_attention(
    layer: AttentionLayer,
    images: Any,
    *,
    ring: bool | int | Sequence[tuple[int, int]] | None = None,
    backend: str = "auto",
    precision: lax.PrecisionLike = None,
    dropout_rate: float = 0.0,
    dropout_key: Array | None = None,
    windows: Sequence[Window] | None = None,
    chunk: int | None = None,
    return_weights: bool = False,
    return_skipped: bool = False,
) -> Array | tuple[Array, Array]: ...


def apply_attention(
    layer: AttentionLayer,
    images: Any,
    *,
    ring: bool | int | Sequence[tuple[int, int]] | None = None,
    backend: str = "auto",
    precision: lax.PrecisionLike = None,
    dropout_rate: float = 0.0,
    dropout_key: Array | None = None,
    windows: Sequence[Window] | None = None,
    chunk: int | None = None,
    return_weights: bool = False,
    return_skipped: bool = False,
) -> Num[Array, "batch *space out_channels"] | tuple[Array, Array]:
    """Apply a layer to images: cut patches, lay the ring, attend, put the patches back, stride.

    Args:
        images: `[batch, height, width, channels]` or `[batch, length, channels]`; P divides the
            sides.
        ring: None lays the layer's own ring of zero tokens, which makes the result of a converted
            layer `conv(..., padding="SAME")`. False leaves the grid bare. An integer, or a pair for
            each axis, lays another ring.
        backend: `"dense"`, `"separable"`, `"shift"`, `"windowed"`, `"chunked"`, `"dot_product"`
            (see `convattn.fast`), or `"auto"`, which takes the one that the cost model expects to
            be fastest among those that serve the layer. All give the same values and gradients up
            to rounding, and the bias alone for a layer without heads; `"windowed"` leaves out
            weights, and `return_skipped` bounds them. `"separable"` has a derivative of its own, in
            reverse mode only: for `jax.jvp`, `jacfwd` and `linearize` name another, such as
            `"dense"` or `"chunked"`.
        precision: Of the matrix products; None pins the highest. At another, such as `"default"`,
            bfloat16 and float16 operands stay as they are, and sums are taken in float32.
        dropout_rate, dropout_key: Drop attention weights with this probability in [0, 1), with a
            JAX random key. The back ends that never form the weights refuse a rate above zero.
        windows: The shifts that `"windowed"` keeps, for each head and axis (smallest, largest);
            `"auto"` uses that back end only if they are given.
        chunk: How many queries `"chunked"` takes at a time. Back ends ignore windows and chunks
            that are not theirs.
        return_weights: Return the attention weights as well; they are formed for it.
        return_skipped: Return a bound on the weight that was left out as well: zero but for
            `"windowed"`.

    Returns:
        `[batch, height', width', out]` of dtype `result_type(images, values)`. Softmax and sums run
        in at least float32. With `return_weights` a pair: the output, and the weights `[heads,
        queries, keys]` (with a batch axis before if the layer has content scores), before dropout;
        keys count the ring, row-major. With `return_skipped` a pair: the output, and for each head
        the most that any query's weights on the keys left out add up to.

    Raises:
        ValueError: For images whose rank, channels or sides do not fit the layer, for an unknown
            back end, for one that cannot serve the layer, for content tables that are no tables of
            shifts, and for options that do not fit.

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
    if return_weights and return_skipped:
        raise ValueError(
            "return_weights and return_skipped are both True, but the weights are all formed for "
            "the one, and none is left out then; ask for one of them"
        )
    if layer.content is not None and layer.content.tables is not None:
        check_shapes(layer.content.tables)
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
    options = AttentionOptions(
        HIGHEST if precision is None else precision,
        read_dropout(dropout_rate, dropout_key),
        read_windows(windows),
        chunk,
        tokens.dtype,
        layer.subsampling if math.prod(layer.output_patch_size) == 1 else None,
    )
    problem = options.windows and window_problem(options.windows, layer.heads, grid)
    if problem:
        raise ValueError(f"windows={windows!r}: {problem}")
    selected = choose_backend(backend, layer, grid, tokens.shape, options)
    steps = layer.subsampling
    if len(tokens) and layer.heads:
        result = selected.attend(layer, grid, tokens, options)
        if selected.strided and options.stride is not None:
            steps = (1,) * axes  # taken already
    else:
        out = out_features(layer, tokens.shape[-1])
        result = jnp.zeros((len(tokens), *grid.queries, out), sum_dtype(layer, tokens))
    if layer.bias is not None:
        result = result + layer.bias
    result_dtype = jnp.result_type(images, *([] if layer.dtype is None else [layer.dtype]))
    if not jnp.issubdtype(result_dtype, jnp.inexact):
        result_dtype = jnp.promote_types(result_dtype, jnp.float32)
    outputs = unpatchify(result.astype(result_dtype), layer.output_patch_size)
    outputs = outputs[(slice(None), *(slice(None, None, step) for step in steps))]
    if return_weights:
        keys = add_zero_ring(tokens, chosen).reshape(len(tokens), grid.number_of_keys, -1)
        return outputs, softmax_weights(layer, grid, keys)
    if return_skipped:
        windowed = selected.name == "windowed" and layer.heads
        if windowed and isinstance(layer.encoding, RelativePosition):
            return outputs, skipped_weight(layer.encoding, grid, options.windows)
        return outputs, jnp.zeros(layer.heads)
    return outputs


def layer_features(layer: AttentionLayer) -> int | None:
    """How many features the tokens of a layer have, or None if it does not say."""
    if layer.value is not None:
        return layer.value.shape[1]
    return None if layer.output is None else layer.output.shape[1]
