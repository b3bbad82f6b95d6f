"""Random parameters to start training from: normal filters of variance 1/(inputs), zero biases."""

import math
from collections.abc import Sequence
from typing import Any, SupportsIndex

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import DTypeLike

from convattn.operators.integers import as_integer, per_axis
from convattn.sac.multiscale import MultiscaleParameters
from convattn.sac.parameters import SelfAttentiveParameters
from convattn.sac.relative_bias import EvenBias


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

    >>> layer = initial_self_attentive(
    ...     jax.random.key(0), (2, 3), 4, 5, heads=6, key_features=7, distances=(8, 9),
    ...     ordinary=True,
    ... )
    >>> layer.query.shape, layer.ordinary.shape, layer.merge.shape
    ((6, 2, 3, 4, 7), (2, 3, 4, 5), (10, 5))
    """
    axes = len(distances)
    if axes not in (1, 2):
        raise ValueError(
            f"distances={distances!r}, but expected one number for each of one or two axes"
        )
    taps = per_axis(kernel_size, axes, "kernel_size")
    distances = per_axis(distances, axes, "distances")
    in_channels = as_integer(in_channels, "in_channels", 1)
    out_channels = as_integer(out_channels, "out_channels", 1)
    heads = as_integer(heads, "heads", 1)
    key_features = as_integer(key_features, "key_features", 1)
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
    **options: Any,
) -> MultiscaleParameters:
    """An MSAC with one SAC for each filter size.

    Args:
        options: As `initial_self_attentive` takes them, the same for all scales.

    Raises:
        ValueError: For no sizes, and as `initial_self_attentive` says.

    >>> parameters = initial_multiscale(
    ...     jax.random.key(0), ((1,), (2,)), 4, 5, heads=2, key_features=3, distances=(6,)
    ... )
    >>> [scale.value.shape for scale in parameters.scales], parameters.merge.shape
    ([(2, 1, 4, 5), (2, 2, 4, 5)], (10, 5))
    """
    if not kernel_sizes:
        raise ValueError("kernel_sizes is empty, but expected the filter size of each scale")
    last, *keys = jax.random.split(key, 1 + len(kernel_sizes))
    scales = tuple(
        initial_self_attentive(key, size, in_channels, out_channels, **options)
        for key, size in zip(keys, kernel_sizes, strict=True)
    )
    joined = len(scales) * scales[0].out_channels
    dtype = options.get("dtype", jnp.float32)
    merge = jax.random.normal(last, (joined, scales[0].out_channels), dtype)
    return MultiscaleParameters(scales, merge / jnp.asarray(math.sqrt(joined), dtype))
