"""SAC, self-attentive convolutions (B19 §3): 2-D self-attention of n×m patches, on 1 or 2 axes.

Queries, keys and values are x ⋆ H_Q, x ⋆ H_K, x ⋆ H_V with n×m filters; the heads are concatenated
and reduced by a 1×1 convolution to y. Beside it stands, optionally, an ordinary convolution
y' = x ⋆ H_R, and a second 1×1 convolution reduces [y, y'] again. (Both 1×1 convolutions are printed
as H_Y; here they are `output` and `merge`.)

**Under a stride s** the queries, and so the result, live on every s-th pixel. The keys and values
live on every `key_stride`-th pixel, where `key_stride` divides s:

- `key_stride = s`, the default: all three star products are strided convolutions, as the paper's
  remark reads, and patches on the coarse grid attend to each other.
- `key_stride = 1`: the result is the stride-1 result at `[::s]`.

The bias counts distances in cells of the key grid.

**Causal**, on sequences: the query at position i attends to the keys at positions ≤ i, and every
filter reads positions up to its own only. A causal mask alone is not enough: a filter of Definition
1 of width m ≥ 2 reads ⌊m/2⌋ positions ahead.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Num

from convattn.operators.arrays import accumulation_dtype, as_array, promoted
from convattn.operators.attention import HIGHEST
from convattn.sac.attend import attend, content_scores_of_heads, floating_result
from convattn.sac.filters import convolve, filter_bank
from convattn.sac.parameters import SelfAttentiveParameters, arrays_of, check_parameters
from convattn.sac.relative_bias import even_bias_scores


def self_attentive_convolution(
    parameters: SelfAttentiveParameters,
    images: Any,
    *,
    key_mask: Any = None,
) -> Float[Array, "batch *strided out_channels"]:
    """SAC of images, or of sequences.

    Args:
        images: `[batch, height, width, in]`, or `[batch, length, in]` for 1-D filters.
        key_mask: Bool, `[height, width]` or `[length]`, True where a key may be attended to; on the
            grid of the pixels, the same for the whole batch.

    Returns:
        ⌈n/s⌉ cells on each axis; dtype `result_type(images, value, ordinary, bias)`, float32 for
        integers; sums run in at least float32.

    Source: B19 §3.

    >>> identity = jnp.ones((1, 1, 1, 1, 1))
    >>> image = jnp.array([[[[0.0], [6.0]]]])
    >>> self_attentive_convolution(SelfAttentiveParameters(identity), image).ravel().tolist()
    [3.0, 3.0]
    """
    parameters, images = arrays_of(parameters), as_array(images, "images")
    check_parameters(parameters, images)
    arrays = (parameters.value, parameters.ordinary, parameters.bias)
    result = floating_result(images, *(array for array in arrays if array is not None))
    working = accumulation_dtype(result)
    wide = images.astype(working)
    scores, mask = attention_scores(parameters, wide, key_mask)
    values = flat_bank(parameters, wide, parameters.value, parameters.key_stride)
    mixed = attend(scores, values, parameters.output, mask)
    space = strided_space(images.shape[1:-1], parameters.stride)
    total = mixed.reshape(images.shape[0], *space, mixed.shape[-1])
    if parameters.ordinary is not None and parameters.merge is not None:
        beside = convolve(
            wide,
            parameters.ordinary.astype(working),
            stride=parameters.stride,
            dilation=parameters.dilation,
            causal=parameters.causal,
        )
        joined = jnp.concatenate([total, beside], axis=-1)
        total = jnp.matmul(joined, parameters.merge.astype(working), precision=HIGHEST)
    if parameters.bias is not None:
        total = total + jnp.broadcast_to(parameters.bias.astype(working), total.shape)
    return total.astype(result)


def attention_scores(
    parameters: SelfAttentiveParameters,
    images: Any,
    key_mask: Any = None,
) -> tuple[Array, Array | None]:
    """The scores `[heads, queries, keys]` (with a batch axis first if they hold content), the mask.

    The mask is `[queries, keys]`, True where a key may be attended to, or None for all.

    Raises:
        ValueError: As `self_attentive_convolution` says.
    """
    parameters, images = arrays_of(parameters), as_array(images, "images")
    check_parameters(parameters, images)
    queries = strided_space(images.shape[1:-1], parameters.stride)
    keys = strided_space(images.shape[1:-1], parameters.key_stride)
    step = tuple(s // k for s, k in zip(parameters.stride, parameters.key_stride, strict=True))
    mask = None
    if key_mask is not None:
        coarse = tuple(slice(None, None, s) for s in parameters.key_stride)
        allowed = _checked_key_mask(
            key_mask, images.shape[1:-1], parameters.key_stride, parameters.causal
        )
        mask = jnp.broadcast_to(allowed[coarse].reshape(-1), (math.prod(queries), math.prod(keys)))
    if parameters.causal:
        past = jnp.arange(keys[0])[None, :] <= step[0] * jnp.arange(queries[0])[:, None]
        mask = past if mask is None else past & mask
    scores = jnp.zeros((parameters.heads, math.prod(queries), math.prod(keys)), jnp.float32)
    if parameters.position is not None:
        attended = None if mask is None else mask.sum(axis=-1)
        even = even_bias_scores(parameters.position, queries, keys, step=step, attended=attended)
        even = even.astype(promoted(even.dtype, jnp.float32))
        scores = jnp.broadcast_to(even, scores.shape)  # one table may serve all heads
    if parameters.query is not None and parameters.key is not None:
        left = flat_bank(parameters, images, parameters.query, parameters.stride)
        right = flat_bank(parameters, images, parameters.key, parameters.key_stride)
        content = content_scores_of_heads(left, right)
        dtype = promoted(content.dtype, scores.dtype)
        scores = content.astype(dtype) + scores[None].astype(dtype)
    return scores, mask


def _checked_key_mask(
    key_mask: Any, space: tuple[int, ...], key_stride: tuple[int, ...], causal: bool
) -> Bool[Array, "*space"]:
    """The mask, True where a key may be attended to, as an array that leaves every query a key.

    Under `causal` the query at the first position has one key, the first; if that is masked, its
    softmax is 0/0. A mask under `jit` cannot be looked at: there a query without keys gets zeros.

    >>> _checked_key_mask([True, False], (2,), (1,), True).tolist()
    [True, False]
    """
    traced = isinstance(key_mask, jax.core.Tracer)
    mask = key_mask if traced else np.asarray(key_mask)
    if mask.dtype != np.bool_ or mask.shape != space:
        raise ValueError(
            f"key_mask has the shape {mask.shape} and dtype {mask.dtype}, but expected bool of "
            f"the images' own {space}, True where a key may be attended to; compare, as in "
            "mask > 0, rather than cast, and give it no batch axis"
        )
    if not traced:
        keys = mask[tuple(slice(None, None, step) for step in key_stride)]
        if keys.size and not (keys.flat[0] if causal else keys.any()):
            where = "the first key, the only one of the first query" if causal else "every key"
            raise ValueError(
                f"key_mask masks {where} (of those at key_stride={key_stride}), so its softmax is "
                "0/0, not weights; let at least one key through for each query"
            )
    return jnp.asarray(mask)


def flat_bank(
    parameters: SelfAttentiveParameters, images: Array, filters: Array, stride: tuple[int, ...]
) -> Num[Array, "batch cells heads features"]:
    """x ⋆ H with the cells of the grid in one axis, row-major."""
    bank = filter_bank(
        images,
        filters.astype(images.dtype),
        stride=stride,
        dilation=parameters.dilation,
        causal=parameters.causal,
    )
    return bank.reshape(images.shape[0], math.prod(bank.shape[1:-2]), *bank.shape[-2:])


def strided_space(space: tuple[int, ...], stride: tuple[int, ...]) -> tuple[int, ...]:
    """⌈n/s⌉ on each axis."""
    return tuple(-(-n // s) for n, s in zip(space, stride, strict=True))
