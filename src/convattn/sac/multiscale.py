"""MSAC, multiscale SAC (B19 §4): several filter sizes in parallel, joined by a 1×1 convolution.

    φ = [γ^1, …, γ^L] ⋆ H_φ,      γ^l = SAC with n_l × m_l filters, 1 ≤ l ≤ L

(printed with 1 < l < L, and with H_V^l for the 1×1 convolution H_Y^l).

**One scale is enough to express all.** An MSAC whose scales have one stride and dilation is a SAC
with the largest filters: a filter with zeros around it is the same filter, as the taps of
Definition 1 are nested for odd and even sizes; 1×1 convolutions compose to one, with H_φ cut into
blocks H_φ = [U^1, …, U^L]; and ordinary convolutions add up. `as_single_scale` does it.
"""

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Num

from convattn.operators.arrays import accumulation_dtype
from convattn.operators.attention import HIGHEST
from convattn.sac.attend import floating_result
from convattn.sac.parameters import SelfAttentiveParameters, arrays_of
from convattn.sac.relative_bias import EvenBias
from convattn.sac.self_attentive_convolution import self_attentive_convolution


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class MultiscaleParameters:
    """The SAC of each scale, and H_φ, `[sum of the scales' out channels, out]`."""

    scales: tuple[SelfAttentiveParameters, ...]
    merge: Num[Array, "joined_channels out_channels"]


def multiscale_self_attentive_convolution(
    parameters: MultiscaleParameters,
    images: Any,
    *,
    key_mask: Any = None,
) -> Float[Array, "batch *strided out_channels"]:
    """MSAC of images, or of sequences.

    Arguments are as for `self_attentive_convolution`; all scales have one stride.

    Source: B19 §4.

    >>> one = SelfAttentiveParameters(jnp.ones((1, 1, 1, 1, 1)))
    >>> both = MultiscaleParameters((one, one), jnp.array([[1.0], [10.0]]))
    >>> multiscale_self_attentive_convolution(both, jnp.ones((1, 1, 2, 1))).ravel().tolist()
    [11.0, 11.0]
    """
    common_stride(parameters)
    parameters = arrays_of(parameters)
    outputs = [
        self_attentive_convolution(scale, images, key_mask=key_mask) for scale in parameters.scales
    ]
    joined = jnp.concatenate(outputs, axis=-1)
    if parameters.merge.ndim != 2 or joined.shape[-1] != parameters.merge.shape[0]:
        raise ValueError(
            f"merge.shape={parameters.merge.shape}, but its first axis should be the "
            f"{joined.shape[-1]} channels of all scales together"
        )
    result = floating_result(joined, parameters.merge)
    working = accumulation_dtype(result)
    merge = parameters.merge.astype(working)
    return jnp.matmul(joined.astype(working), merge, precision=HIGHEST).astype(result)


def common_stride(parameters: MultiscaleParameters) -> tuple[int, ...]:
    """The stride of all scales."""
    strides = {scale.stride for scale in parameters.scales}
    if len(strides) != 1:
        raise ValueError(
            f"the {len(parameters.scales)} scales have the strides {sorted(strides)}, but there "
            "should be scales, and all of one stride, so that their outputs can be concatenated"
        )
    return parameters.scales[0].stride


def as_single_scale(parameters: MultiscaleParameters) -> SelfAttentiveParameters:
    """The SAC with the largest filters, and all heads, that computes the same.

    Raises:
        ValueError: For no scales, for scales of different strides, dilations or masks, for
            different numbers of key features (the scores are divided by √d_a) or head features,
            where a scale has no content or no bias and another has, for leaks, and for causal
            scales (whose taps end at 0).

    >>> one = SelfAttentiveParameters(jnp.ones((1, 1, 1, 1, 1)))
    >>> wide = SelfAttentiveParameters(jnp.ones((1, 2, 3, 1, 1)))
    >>> as_single_scale(MultiscaleParameters((one, wide), jnp.eye(2))).value.shape
    (2, 2, 3, 1, 1)
    """
    common_stride(parameters)
    scales = parameters.scales
    plain = [replace(scale, **dict.fromkeys(ARRAYS, None), value=None) for scale in scales]  # type: ignore[arg-type]
    for name in ("query", "position"):
        if len({getattr(scale, name) is None for scale in scales}) > 1:
            raise ValueError(f"some scales have a {name} and some have none; give all one, or none")
    if len(set(plain)) > 1 or scales[0].causal:
        raise ValueError(
            "the scales differ in stride, dilation, key_stride or causality, or are causal, but "
            "should share a grid and have the centred filters of Definition 1"
        )
    if any(
        scale.position is not None and scale.position.uniform_weight is not None for scale in scales
    ):
        raise ValueError("a leak belongs to all heads, so scales with leaks cannot be joined")
    size = tuple(map(max, zip(*(scale.kernel_size for scale in scales), strict=True)))
    ends = np.cumsum([scale.out_channels for scale in scales])
    blocks = jnp.split(parameters.merge, ends[:-1])
    outputs, ordinary, bias = [], None, None
    for scale, block in zip(scales, blocks, strict=True):
        head = scale.output
        if head is None:
            width = scale.value.shape[-1]
            head = jnp.broadcast_to(jnp.eye(width, dtype=block.dtype), (scale.heads, width, width))
        upper = block
        if scale.ordinary is not None and scale.merge is not None:
            merged = jnp.matmul(scale.merge, block, precision=HIGHEST)
            upper, lower = merged[: head.shape[-1]], merged[head.shape[-1] :]
            scale_ordinary = jnp.matmul(
                embed(scale.ordinary[None], size)[0], lower, precision=HIGHEST
            )
            ordinary = scale_ordinary if ordinary is None else ordinary + scale_ordinary
        if scale.bias is not None:
            added = jnp.matmul(scale.bias, block, precision=HIGHEST)
            bias = added if bias is None else bias + added
        outputs.append(jnp.matmul(head, upper, precision=HIGHEST))
    queries = [scale.query for scale in scales if scale.query is not None]
    keys = [scale.key for scale in scales if scale.key is not None]
    width = parameters.merge.shape[-1]
    identity = jnp.eye(width, dtype=parameters.merge.dtype)
    return replace(
        scales[0],
        value=_joined_filters([scale.value for scale in scales], size),
        query=_joined_filters(queries, size) if queries else None,
        key=_joined_filters(keys, size) if keys else None,
        position=_joined_tables(scales),
        output=jnp.concatenate(outputs),
        ordinary=ordinary,
        merge=None if ordinary is None else jnp.concatenate([identity, identity]),
        bias=bias,
    )


ARRAYS = ("query", "key", "position", "output", "ordinary", "merge", "bias")


def embed(filters: Array, size: tuple[int, ...]) -> Num[Array, "heads *taps in_channels features"]:
    """The filters with zeros around them, each tap where it was: taps -⌊(n-1)/2⌋, …, ⌊n/2⌋.

    >>> embed(jnp.ones((1, 2, 1, 1)), (5,)).ravel().tolist()
    [0.0, 0.0, 1.0, 1.0, 0.0]
    """
    widths = [
        ((large - 1) // 2 - (small - 1) // 2, large // 2 - small // 2)
        for large, small in zip(size, filters.shape[1:-2], strict=True)
    ]
    return jnp.pad(filters, [(0, 0), *widths, (0, 0), (0, 0)])


def _joined_filters(filters: list[Array], size: tuple[int, ...]) -> Array:
    """All heads' filters at one size."""
    widths = {scale_filters.shape[-1] for scale_filters in filters}
    if len(widths) > 1:
        raise ValueError(
            f"the scales have {sorted(widths)} features a head, but expected one number, so "
            "that their heads can stand in one array"
        )
    return jnp.concatenate([embed(scale_filters, size) for scale_filters in filters])


def _joined_tables(scales: tuple[SelfAttentiveParameters, ...]) -> EvenBias | None:
    """One table for all heads; distances beyond a table have bias 0."""
    tables = [
        jnp.broadcast_to(s.position.values, (s.heads, *s.position.values.shape[1:]))
        for s in scales
        if s.position is not None
    ]
    if not tables:
        return None
    reach = [max(sizes) for sizes in zip(*(table.shape[1:] for table in tables), strict=True)]
    return EvenBias(
        jnp.concatenate(
            [
                jnp.pad(t, [(0, 0), *((0, r - n) for r, n in zip(reach, t.shape[1:], strict=True))])
                for t in tables
            ]
        )
    )
