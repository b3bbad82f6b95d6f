"""Random parameters to start training from: normal filters of variance 1/(inputs), zero biases."""

import math
from collections.abc import Iterable, Sequence
from typing import SupportsIndex

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import DTypeLike

from convattn.operators.integers import as_integer
from convattn.operators.shifts import per_axis
from convattn.sac.multiscale import MultiscaleParameters
from convattn.sac.relative_bias import EvenBias
from convattn.sac.self_attention_2d import SelfAttention2DParameters
from convattn.sac.self_attentive_parameters import SelfAttentiveParameters


def positive_sizes(**sizes: SupportsIndex) -> list[int]:
    """The sizes, integers ≥ 1, as Python's.

    Raises:
        ValueError: That names the size.
    """
    return [as_integer(size, name, 1) for name, size in sizes.items()]


def axis_sizes(sizes: int | Sequence[int], axes: int) -> tuple[int, ...]:
    """The sizes of the axes; one integer stands for all.

    Raises:
        ValueError: For what is not an integer ≥ 1.

    >>> axis_sizes(3, 2), axis_sizes((2, 5), 2)
    ((3, 3), (2, 5))
    """
    entries = tuple(sizes) if isinstance(sizes, Iterable) else (sizes,) * axes
    return tuple(as_integer(size, "each of kernel_size and distances", 1) for size in entries)


def initial_self_attention_2d(
    key: Array,
    in_channels: SupportsIndex,
    out_channels: SupportsIndex,
    *,
    heads: SupportsIndex,
    key_features: SupportsIndex,
    distances: Sequence[int],
    dtype: DTypeLike = jnp.float32,
) -> SelfAttention2DParameters:
    """2-D self-attention of d_o = `out_channels` a head, as the paper has it.

    Args:
        distances: The entries of the bias table on each axis, N and M for images of N × M.

    >>> made = initial_self_attention_2d(
    ...     jax.random.key(0), 3, 4, heads=2, key_features=5, distances=(6, 7)
    ... )
    >>> made.value.shape, made.output.shape, made.position.values.shape
    ((2, 3, 4), (2, 4, 4), (2, 6, 7))
    """
    one = initial_self_attentive(
        key,
        (1, 1),
        in_channels,
        out_channels,
        heads=heads,
        key_features=key_features,
        distances=distances,
        dtype=dtype,
    )
    if one.query is None or one.key is None:
        raise ValueError("2-D self-attention has query and key filters")
    query, key_maps, value = (part[:, 0, 0] for part in (one.query, one.key, one.value))
    return SelfAttention2DParameters(query, key_maps, value, one.position, one.output)


def initial_self_attentive(
    key: Array,
    kernel_size: int | Sequence[int],
    in_channels: SupportsIndex,
    out_channels: SupportsIndex,
    *,
    heads: SupportsIndex,
    key_features: SupportsIndex,
    distances: Sequence[int],
    ordinary: bool = False,
    stride: int | Sequence[int] = 1,
    dilation: int | Sequence[int] = 1,
    key_stride: int | Sequence[int] | None = None,
    causal: bool = False,
    dtype: DTypeLike = jnp.float32,
) -> SelfAttentiveParameters:
    """A SAC of d_o = `out_channels` a head, as the paper has it, on one or two axes.

    Args:
        kernel_size: n and m, or m alone for sequences; one integer: the same on each axis.
        distances: The entries of the bias table on each axis.
        ordinary: With an ordinary convolution beside it, merged by a 1×1 convolution.

    Raises:
        ValueError: For sizes below one.

    >>> made = initial_self_attentive(
    ...     jax.random.key(0), (2, 3), 4, 5, heads=6, key_features=7, distances=(8, 9),
    ...     ordinary=True,
    ... )
    >>> made.query.shape, made.ordinary.shape, made.merge.shape
    ((6, 2, 3, 4, 7), (2, 3, 4, 5), (10, 5))
    """
    distances = axis_sizes(distances, 1)
    taps = axis_sizes(kernel_size, len(distances))
    axes = len(taps)
    in_channels, out_channels, heads, key_features = positive_sizes(
        in_channels=in_channels, out_channels=out_channels, heads=heads, key_features=key_features
    )
    if axes not in (1, 2) or len(distances) != axes:
        raise ValueError(
            f"kernel_size={taps} and distances={tuple(distances)}, but both should have one "
            "number for each of one or two axes"
        )
    fan_in = math.prod(taps) * in_channels
    keys = jax.random.split(key, 6)

    def normal(which: int, inputs: int, *shape: int) -> Array:
        return jax.random.normal(keys[which], shape, dtype) / jnp.asarray(math.sqrt(inputs), dtype)

    strides = per_axis(stride, axes, "stride")
    return SelfAttentiveParameters(
        value=normal(0, fan_in, heads, *taps, in_channels, out_channels),
        query=normal(1, fan_in, heads, *taps, in_channels, key_features),
        key=normal(2, fan_in, heads, *taps, in_channels, key_features),
        position=EvenBias(jnp.zeros((heads, *distances), dtype)),
        output=normal(3, heads * out_channels, heads, out_channels, out_channels),
        ordinary=normal(4, fan_in, *taps, in_channels, out_channels) if ordinary else None,
        merge=normal(5, 2 * out_channels, 2 * out_channels, out_channels) if ordinary else None,
        stride=strides,
        dilation=per_axis(dilation, axes, "dilation"),
        key_stride=strides if key_stride is None else per_axis(key_stride, axes, "key_stride"),
        causal=causal,
    )


def initial_multiscale(
    key: Array,
    kernel_sizes: Sequence[int | Sequence[int]],
    in_channels: SupportsIndex,
    out_channels: SupportsIndex,
    *,
    heads: SupportsIndex,
    key_features: SupportsIndex,
    distances: Sequence[int],
    ordinary: bool = False,
    stride: int | Sequence[int] = 1,
    dilation: int | Sequence[int] = 1,
    key_stride: int | Sequence[int] | None = None,
    causal: bool = False,
    dtype: DTypeLike = jnp.float32,
) -> MultiscaleParameters:
    """An MSAC with one SAC for each filter size.

    Raises:
        ValueError: For no sizes, and as `initial_self_attentive` says.

    >>> made = initial_multiscale(
    ...     jax.random.key(0), ((1,), (2,)), 4, 5, heads=2, key_features=3, distances=(6,)
    ... )
    >>> [scale.value.shape for scale in made.scales], made.merge.shape
    ([(2, 1, 4, 5), (2, 2, 4, 5)], (10, 5))
    """
    if not kernel_sizes:
        raise ValueError("kernel_sizes is empty, but should hold the filter size of each scale")
    last, *keys = jax.random.split(key, 1 + len(kernel_sizes))
    scales = tuple(
        initial_self_attentive(
            each,
            size,
            in_channels,
            out_channels,
            heads=heads,
            key_features=key_features,
            distances=distances,
            ordinary=ordinary,
            stride=stride,
            dilation=dilation,
            key_stride=key_stride,
            causal=causal,
            dtype=dtype,
        )
        for each, size in zip(keys, kernel_sizes, strict=True)
    )
    (out_channels,) = positive_sizes(out_channels=out_channels)
    joined = len(scales) * out_channels
    merge = jax.random.normal(last, (joined, out_channels), dtype)
    return MultiscaleParameters(scales, merge / jnp.asarray(math.sqrt(joined), dtype))
