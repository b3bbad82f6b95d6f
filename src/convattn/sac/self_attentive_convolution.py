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
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Num

from convattn.arrays import accumulation_dtype
from convattn.attention import HIGHEST
from convattn.sac.attend import attend, content_scores_of_heads, floating_result
from convattn.sac.filters import convolve, filter_bank
from convattn.sac.relative_bias import EvenBias, even_bias_scores


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class SelfAttentiveParameters:
    """The filters of a SAC operator.

    **Array fields:**

    - `value`: H_V, `[heads, *taps, in, head_features]`.
    - `query`, `key`: H_Q, H_K, `[heads, *taps, in, key_features]`; both None: no content.
    - `position`: the even bias b, or None.
    - `output`: H_Y of §2.1, `[heads, head_features, features]`; None adds the heads up.
    - `ordinary`: H_R, `[*taps, in, ordinary_features]`, or None.
    - `merge`: H_Y of §3, `[features + ordinary_features, out]`; with `ordinary`, and only then.
    - `bias`: `[out]`, added at the end, or None; the paper has none.

    **Static fields**, a number for each axis: `stride`, `dilation`, `key_stride`; and `causal`.
    """

    value: Num[Array, "heads *taps in_channels head_features"]
    query: Num[Array, "heads *taps in_channels key_features"] | None = None
    key: Num[Array, "heads *taps in_channels key_features"] | None = None
    position: EvenBias | None = None
    output: Num[Array, "heads head_features features"] | None = None
    ordinary: Num[Array, "*taps in_channels ordinary_features"] | None = None
    merge: Num[Array, "joined_features out_channels"] | None = None
    bias: Num[Array, "out_channels"] | None = None
    stride: tuple[int, ...] = field(default=(1, 1), metadata={"static": True})
    dilation: tuple[int, ...] = field(default=(1, 1), metadata={"static": True})
    key_stride: tuple[int, ...] = field(default=(1, 1), metadata={"static": True})
    causal: bool = field(default=False, metadata={"static": True})

    @property
    def heads(self) -> int:
        """The number of heads."""
        return int(self.value.shape[0])

    @property
    def kernel_size(self) -> tuple[int, ...]:
        """n × m, the largest filter on each axis."""
        sizes = [
            part.shape[1:-2] for part in (self.value, self.query, self.key) if part is not None
        ]
        if self.ordinary is not None:
            sizes.append(self.ordinary.shape[:-2])
        return tuple(map(max, zip(*sizes, strict=True)))


def self_attentive_convolution(
    parameters: SelfAttentiveParameters,
    images: Num[Array, "batch *space in_channels"],
    *,
    key_mask: Bool[Array, "*space"] | None = None,
) -> Float[Array, "batch *strided out_channels"]:
    """SAC of images, or of sequences.

    **Arguments:**

    - `images`: `[batch, height, width, in]`, or `[batch, length, in]` for 1-D filters.
    - `key_mask`: True where a key may be attended to; on the grid of the pixels.

    **Returns:** ⌈n/s⌉ cells on each axis; dtype `result_type(images, value, ordinary, bias)`,
    float32 for integers; sums run in at least float32.

    **Raises:** `ValueError` for parameters that do not fit together, or to the images.

    **Source:** B19 §3.

    >>> identity = jnp.ones((1, 1, 1, 1, 1))
    >>> image = jnp.array([[[[0.0], [6.0]]]])
    >>> self_attentive_convolution(SelfAttentiveParameters(identity), image).ravel().tolist()
    [3.0, 3.0]
    """
    check_parameters(parameters, images)
    parts = (parameters.value, parameters.ordinary, parameters.bias)
    result = floating_result(images, *(part for part in parts if part is not None))
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
        total = total + parameters.bias.astype(working)
    return total.astype(result)


def attention_scores(
    parameters: SelfAttentiveParameters,
    images: Num[Array, "batch *space in_channels"],
    key_mask: Bool[Array, "*space"] | None = None,
) -> tuple[Array, Array | None]:
    """The scores `[heads, queries, keys]` (with a batch axis first if they hold content), the mask.

    The mask is `[queries, keys]`, True where a key may be attended to, or None for all.
    """
    queries = strided_space(images.shape[1:-1], parameters.stride)
    keys = strided_space(images.shape[1:-1], parameters.key_stride)
    step = tuple(s // k for s, k in zip(parameters.stride, parameters.key_stride, strict=True))
    mask = None
    if key_mask is not None:
        coarse = tuple(slice(None, None, s) for s in parameters.key_stride)
        mask = jnp.broadcast_to(key_mask[coarse].reshape(-1), (math.prod(queries), math.prod(keys)))
    if parameters.causal:
        past = jnp.arange(keys[0])[None, :] <= step[0] * jnp.arange(queries[0])[:, None]
        mask = past if mask is None else past & mask
    scores = jnp.zeros((parameters.heads, math.prod(queries), math.prod(keys)), jnp.float32)
    if parameters.position is not None:
        attended = None if mask is None else mask.sum(axis=-1)
        scores = scores + even_bias_scores(
            parameters.position, queries, keys, step=step, attended=attended
        )
    if parameters.query is not None and parameters.key is not None:
        left = flat_bank(parameters, images, parameters.query, parameters.stride)
        right = flat_bank(parameters, images, parameters.key, parameters.key_stride)
        scores = content_scores_of_heads(left, right) + scores
    return scores, mask


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
    return bank.reshape(images.shape[0], -1, *bank.shape[-2:])


def strided_space(space: tuple[int, ...], stride: tuple[int, ...]) -> tuple[int, ...]:
    """⌈n/s⌉ on each axis."""
    return tuple(-(-n // s) for n, s in zip(space, stride, strict=True))


def check_parameters(parameters: SelfAttentiveParameters, images: Array) -> None:
    """Refuse parameters that do not fit together or to the images; shapes only.

    **Raises:** `ValueError`.
    """
    axes = parameters.value.ndim - 3
    lengths = {len(parameters.stride), len(parameters.dilation), len(parameters.key_stride)}
    if images.ndim != axes + 2 or lengths != {axes}:
        raise ValueError(
            f"images.shape={images.shape} with stride={parameters.stride}, dilation="
            f"{parameters.dilation} and key_stride={parameters.key_stride}, but value filters of "
            f"shape {parameters.value.shape} take {axes} spatial axes everywhere; add the batch "
            "axis with images[None], and give each of the three one number for each axis"
        )
    if any(s % k for s, k in zip(parameters.stride, parameters.key_stride, strict=True)):
        raise ValueError(
            f"key_stride={parameters.key_stride} should divide stride={parameters.stride} on each "
            "axis, so that every query stands on a key; take 1 or the stride itself"
        )
    if (parameters.query is None) != (parameters.key is None):
        raise ValueError("query and key filters come together: give both, or neither")
    if (parameters.ordinary is None) != (parameters.merge is None):
        raise ValueError(
            "ordinary filters and the merge that reduces [y, y'] come together: give both, or "
            "neither"
        )
    if parameters.position is not None and parameters.position.heads not in (1, parameters.heads):
        raise ValueError(
            f"position.values.shape={parameters.position.values.shape} holds "
            f"{parameters.position.heads} heads, but the value filters of shape "
            f"{parameters.value.shape} have {parameters.heads}; give one table for each, or one"
        )
