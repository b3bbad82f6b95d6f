"""`apply_attention` and `attention_maps`: what a layer makes of images, and where it looks."""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Num

from convattn.encodings.base import RelativePosition
from convattn.encodings.layer import AttentionLayer
from convattn.encodings.tied import untied
from convattn.fast.backend import BackEnd
from convattn.fast.dense import softmax_weights
from convattn.fast.maps import out_features, sum_dtype
from convattn.fast.options import AttentionOptions, Window, read_dropout, read_windows
from convattn.fast.selection import MAX_WEIGHT_BYTES, choose_backend, weights_bytes
from convattn.fast.windowed.window import choose_windows, window_problem
from convattn.operators.arrays import as_array, known_size, promoted
from convattn.operators.attention import HIGHEST
from convattn.operators.convolution import layout_hint
from convattn.operators.integers import per_axis
from convattn.operators.padding import Padding, fill_ring
from convattn.operators.patches import Ring, add_zero_ring, patchify, unpatchify
from convattn.operators.relative_content import check_shapes
from convattn.operators.shifts import Queries, TokenGrid, axis_queries, count, symbolic_axes


class ImageGrid(NamedTuple):
    """Where a layer attends on images of one size.

    Attributes:
        grid: Where queries and keys stand.
        queries: For each axis the queries whose outputs are computed.
        output_size: The pixels of the result on each axis.
    """

    grid: TokenGrid
    queries: tuple[Queries, ...]
    output_size: tuple[int, ...]


def apply_attention(
    layer: AttentionLayer,
    images: Any,
    *,
    border: str = "zeros",
    backend: str = "auto",
    precision: lax.PrecisionLike = None,
    dropout_rate: float = 0.0,
    dropout_key: Array | None = None,
    windows: Sequence[Window] | None = None,
    chunk: int | None = None,
) -> Num[Array, "batch *space out_channels"]:
    """Apply a layer to images: cut patches, lay the ring, attend, put the patches back, stride.

    Args:
        images: `[batch, height, width, channels]` or `[batch, length, channels]`; P divides the
            sides.
        border: `"zeros"` lays the layer's own ring of zero tokens, which makes the result of a
            converted layer the convolution; `"none"` leaves the grid bare, which a layer that fills
            its ring refuses.
        backend: `"dense"`, `"separable"`, `"shift"`, `"windowed"`, `"chunked"`, `"dot_product"`
            (see `convattn.fast`), or `"auto"`, which takes the one that the cost model expects to
            be fastest among those that serve the layer. All give the same values and gradients up
            to rounding, and the bias alone for a layer without heads; `"windowed"` leaves out
            weights, which `convattn.fast.skipped_weight` bounds. `"separable"` has a derivative of
            its own, in reverse mode only: for `jax.jvp`, `jacfwd` and `linearize` name another,
            such as `"dense"` or `"chunked"`.
        precision: Of the matrix products; None pins the highest. At another, such as `"default"`,
            bfloat16 and float16 operands stay as they are, and sums are taken in float32.
        dropout_rate, dropout_key: Drop attention weights with this probability in [0, 1), with a
            JAX random key. The back ends that never form the weights refuse a rate above zero.
        windows: The shifts that `"windowed"` keeps, for each head and axis (smallest, largest);
            `"auto"` uses that back end only if they are given.
        chunk: How many queries `"chunked"` takes at a time. Back ends ignore windows and chunks
            that are not theirs.

    Returns:
        `[batch, height', width', out]` of dtype `result_type(images, values)`. Softmax and sums run
        in at least float32. One infinite pixel may make every output NaN, where `conv` carries it
        no further than its kernel: an exact layer takes back what it has spread over all tokens,
        and a weight of 0 times infinity is NaN. Of a causal layer it makes NaN the outputs of the
        queries that see it, and reaches no earlier one.

    Raises:
        ValueError: For images whose rank, channels or sides do not fit the layer, for an unknown
            back end, for one that cannot serve the layer, for content tables that are no tables of
            shifts, and for options that do not fit.

    >>> import convattn as ca
    >>> layer = ca.conv_to_attention(jnp.ones((3, 3, 1, 1)), patch_size=2)
    >>> ca.apply_attention(layer, jnp.ones((1, 4, 4, 1)))[0, :, :, 0].round(4).tolist()[0]
    [4.0, 6.0, 6.0, 4.0]
    """
    layer, images = untied(layer), as_array(images, "images")
    geometry = _read_shape(layer, images.shape, border)
    grid = geometry.grid
    options = AttentionOptions(
        HIGHEST if precision is None else hashable(precision),
        read_dropout(dropout_rate, dropout_key),
        read_windows(windows),
        chunk,
        images.dtype,
        geometry.queries,
    )
    known = not symbolic_axes(grid.queries)
    problem = known and options.windows and window_problem(options.windows, layer.heads, grid)
    if problem:
        raise ValueError(f"windows={windows!r}: {problem}")
    features = images.shape[-1] * math.prod(layer.patch_size)
    batch = known_size(images.shape[0])
    selected = choose_backend(backend, layer, grid, (batch, *grid.queries, features), options)
    chooses = selected.name == "windowed" and options.windows is None and layer.heads
    if chooses and isinstance(layer.encoding, RelativePosition):  # by values, which jit would hide
        options = replace(options, windows=choose_windows(layer.encoding, grid))
    return attend(layer, images, options, geometry, selected)


# One program for each shape: operation by operation, the first call would compile some fifty.
@partial(jax.jit, static_argnames=("geometry", "selected"), inline=True)
def attend(
    layer: AttentionLayer,
    images: Array,
    options: AttentionOptions,
    geometry: ImageGrid,
    selected: BackEnd,
) -> Array:
    """`apply_attention`, after all is read and chosen."""
    tokens, queries = _read_tokens(layer, images), geometry.queries
    tokens, is_lost = _without_lost(tokens, geometry.grid)
    if known_size(tokens.shape[0]) and layer.heads:
        result = selected.attend(layer, geometry.grid, tokens, options)
        ranges = tuple(slice(side.start, side.stop, side.step) for side in queries)
        if not selected.selective:
            result = result[(slice(None), *ranges)]
        if is_lost is not None:
            result = jnp.where(is_lost[:, *ranges, None], jnp.nan, result)
    else:
        out = out_features(layer, tokens.shape[-1])
        result = jnp.zeros((tokens.shape[0], *map(count, queries), out), sum_dtype(layer, tokens))
    if layer.bias is not None:
        dtype = promoted(result.dtype, layer.bias.dtype)
        bias = jnp.expand_dims(layer.bias.astype(dtype), tuple(range(result.ndim - 1)))
        result = result.astype(dtype) + bias
    result_dtype = jnp.result_type(images, *([] if layer.dtype is None else [layer.dtype]))
    if not jnp.issubdtype(result_dtype, jnp.inexact):
        result_dtype = promoted(result_dtype, jnp.float32)
    outputs = unpatchify(result.astype(result_dtype), layer.output_patch_size)
    return outputs[(slice(None), *kept_outputs(layer, geometry))]


def _without_lost(tokens: Array, grid: TokenGrid) -> tuple[Array, Array | None]:
    """Under a causal mask: zeros for tokens that are not finite, and which queries see any.

    A masked key has the weight 0, but 0·NaN is NaN: without this it would reach earlier queries.
    """
    if grid.ahead is None or not jnp.issubdtype(tokens.dtype, jnp.inexact):
        return tokens, None
    is_finite = jnp.isfinite(tokens).all(axis=-1)
    lost = jnp.cumsum(~is_finite, axis=1) > 0
    last = jnp.minimum(jnp.arange(grid.queries[0]) + grid.ahead, grid.queries[0] - 1)
    return jnp.where(is_finite[..., None], tokens, 0), lost[:, last]


def kept_outputs(layer: AttentionLayer, geometry: ImageGrid) -> tuple[slice, ...]:
    """Those pixels of the tokens that are asked for which make up the result, axis by axis."""
    slices = []
    sides = zip(layer.patch_size, layer.subsampling, geometry.output_size, strict=True)
    for patch, step, size in sides:
        step = 1 if patch == 1 else step
        slices.append(slice(0, None if layer.padding is None else size * step, step))
    return tuple(slices)


class AttentionMaps(NamedTuple):
    """What the heads of a layer attend to.

    Attributes:
        weights: `[heads, height, width, keys_height, keys_width]`, or `[heads, length, keys]` for
            sequences; with content scores a batch axis stands before. Every row sums to one over
            its keys, or to less by what a register has; dropout and the gains of an encoding are
            not in it. The queries are those at stride 1, on a filled ring up to the last one that
            an output takes: on pixels output i of a layer of stride s is that of query s·i.
        ring: For each axis how many of the first and of the last keys stand outside the image. With
            patches that begin elsewhere than the image's own, which tokens belong to it is open:
            there, how many stand before and after those under the kernels' centres.
    """

    weights: Array
    ring: Ring


def attention_maps(
    layer: AttentionLayer | Any,
    images: Any,
    *,
    border: str = "zeros",
) -> AttentionMaps:
    """The attention weights of a layer, from each query to each key.

        A_h(q, k) = e^(s_h(q, k)) / Σ_k' e^(s_h(q, k'))

    with the scores s_h of the layer's encoding and, if it has any, of the content.

    Args:
        layer: Or an `AttentionConv`, whose maps are the same in all groups of channels.
        images: As `apply_attention` takes them; or, for a layer without content scores, whose
            weights don't depend on them, the image size in pixels: an integer for each axis.
        border: As in `apply_attention`.

    Raises:
        ValueError: For images or a size that do not fit the layer, for a size alone where the
            layer has content scores, and where the weights would take more than 2 GiB.

    >>> import convattn as ca
    >>> layer = ca.conv_to_attention(jnp.ones((3, 3, 1, 1)), form="limit")
    >>> maps = ca.attention_maps(layer, (4, 5))
    >>> maps.weights.shape, maps.ring
    ((9, 4, 5, 6, 7), ((1, 1), (1, 1)))
    >>> float(maps.weights[0, 0, 0, 0, 0])  # the first head looks up and to the left
    1.0
    """
    layer = as_layer(layer)
    check_layer(layer)
    if isinstance(images, Sequence) and all(isinstance(side, int | np.integer) for side in images):
        if layer.content is not None:
            raise ValueError(
                f"images={images!r}, but expected images: the layer has content scores, so that "
                "its weights depend on them; pass images as to apply_attention"
            )
        sides = per_axis(images, len(layer.patch_size), "images")
        tokens, (grid, queries, _) = None, image_grid(layer, sides, border)
        images = None
    else:
        images = as_array(images, "images")
        grid, queries, _ = _read_shape(layer, images.shape, border)
        if symbolic_axes(grid.queries):
            raise ValueError(
                f"images of symbolic sizes, tokens {grid.queries}, but expected integers: the "
                "weights of every query and key are formed; take concrete sizes"
            )
        tokens = _read_tokens(layer, images)
    taken = weights_bytes(layer, grid, 1 if tokens is None else known_size(tokens.shape[0]))
    if taken > MAX_WEIGHT_BYTES:
        raise ValueError(
            f"the weights' size={taken / 2**30:.1f} GiB, of {layer.heads} heads, "
            f"{math.prod(grid.queries)} queries and {grid.number_of_keys} keys, but expected at "
            f"most {MAX_WEIGHT_BYTES / 2**30:g} GiB; take smaller or fewer images, or a layer with "
            "fewer heads (encoding.take_heads)"
        )
    padded_tokens = tokens
    if tokens is not None:
        padded_tokens = add_zero_ring(tokens, grid.ring).reshape(
            tokens.shape[0], grid.number_of_keys, -1
        )
    weights = softmax_weights(layer, grid, padded_tokens)
    weights = weights.reshape(*weights.shape[:-2], *grid.queries, *grid.keys)
    if layer.padding is None:
        return AttentionMaps(weights, grid.ring)
    query_slices = tuple(slice(side.start, side[-1] + 1) for side in queries)
    sides = sides if images is None else images.shape[1:-1]
    around = []
    axes = zip(layer.filled_axes(sides), sides, layer.patch_size, grid.keys, strict=True)
    for axis, side, patch, keys in axes:
        before, rest = divmod(axis.lay[0] + axis.fill[0], patch)
        tokens = -(-side // patch)
        if rest:
            before, tokens = axis.queries.start, axis.queries[-1] + 1 - axis.queries.start
        around.append((before, max(keys - before - tokens, 0)))
    return AttentionMaps(
        weights[(..., *query_slices, *(slice(None),) * len(query_slices))], tuple(around)
    )


def as_layer(layer: Any) -> Any:
    """The layer of a module that has one, such as `convattn.nnx.AttentionConv`; others stay."""
    return layer.group_layer() if hasattr(type(layer), "group_layer") else layer


def hashable(precision: Any) -> Any:
    """A list as a tuple, since jit compares options."""
    return tuple(precision) if isinstance(precision, list) else precision


def check_layer(layer: Any) -> None:
    """Refuse what is no layer, or has content tables that are no tables of shifts."""
    if not isinstance(layer, AttentionLayer):
        raise ValueError(
            f"layer={type(layer).__name__}, but expected an AttentionLayer, such as "
            "conv_to_attention returns; the images come second"
        )
    if not isinstance(layer.padding, Padding | None):
        raise ValueError(
            f"layer.padding={layer.padding!r}, but expected a Padding or None; convert the kernel "
            "with padding=…, which also decides the ring and the offsets"
        )
    if layer.content is not None and layer.content.tables is not None:
        check_shapes(layer.content.tables)
    offsets = getattr(layer.encoding, "offsets", ())
    sizes = {name: getattr(layer, name) for name in ("patch_size", "stride", "dilation", "ring")}
    for name, value in {**sizes, "encoding.offsets": offsets}.items():
        if not _is_static(value):  # others cannot be compared, and jit keeps what it has seen
            raise ValueError(
                f"layer.{name}={value!r}, but expected integers in tuples, as conv_to_attention "
                "gives them"
            )


def _is_static(value: Any) -> bool:
    """Whether it is an integer, or a tuple of what is.

    >>> _is_static(((1, 1), (0, 2))), _is_static([1]), _is_static((1.5,))
    (True, False, False)
    """
    return isinstance(value, int) or (isinstance(value, tuple) and all(map(_is_static, value)))


def _read_shape(
    layer: AttentionLayer,
    shape: tuple[int, ...],
    border: str,
) -> ImageGrid:
    """Where a layer attends on images `[batch, *space, channels]` of that shape."""
    check_layer(layer)
    axes, features = len(layer.patch_size), layer_features(layer)
    if len(shape) != axes + 2:
        raise ValueError(
            f"images.shape={shape}, but expected batch, {axes} spatial axes and channels, "
            f"as the layer has {axes} spatial axes; add or drop axes"
        )
    if 0 in shape[1:]:
        raise ValueError(f"images.shape={shape}, but expected every axis but the batch to be ≥ 1")
    geometry = image_grid(layer, shape[1:-1], border)
    pixels = math.prod(layer.patch_size)
    if features is not None and features != shape[-1] * pixels:
        reach = zip(layer.ring, layer.dilation, strict=True)
        sizes = [sum(ring) // step + 1 for ring, step in reach]
        kernel = (*sizes, features // pixels, out_features(layer, features) // pixels)
        raise ValueError(
            f"images.shape={shape}, but expected {features // pixels} channels (its tokens have "
            f"{features} features, its patches {pixels} pixels)"
            + (layout_hint(shape, kernel) or "; take the layer's own inputs")
        )
    return geometry


def _read_tokens(layer: AttentionLayer, images: Array) -> Array:
    """`[batch, *grid.queries, features]`, with the ring where the layer fills it."""
    if layer.padding is not None:
        images = fill_ring(images, layer.padding.fill, layer.filled_axes(images.shape[1:-1]))
    return patchify(images, layer.patch_size)


def image_grid(
    layer: AttentionLayer, image_size: Sequence[int], border: str = "zeros"
) -> ImageGrid:
    """Where a layer attends on images of that size."""
    grid = layer.token_grid(image_size, border)
    if layer.padding is not None:
        axes = layer.filled_axes(image_size)
        queries = tuple(axis.queries for axis in axes)
        return ImageGrid(grid, queries, tuple(axis.outputs for axis in axes))
    sides = tuple(zip(grid.queries, layer.patch_size, layer.subsampling, strict=True))
    queries = tuple(axis_queries(0, size, step if patch == 1 else 1) for size, patch, step in sides)
    steps = zip(image_size, layer.stride, strict=True)
    return ImageGrid(grid, queries, tuple(-(-side // step) for side, step in steps))


def layer_features(layer: AttentionLayer) -> int | None:
    """How many features the tokens of a layer have, or None if it does not say."""
    if layer.value is not None:
        return layer.value.shape[1]
    return None if layer.output is None else layer.output.shape[1]
