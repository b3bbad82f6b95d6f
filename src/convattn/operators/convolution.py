"""Convolution from its definition (C20 eq. 5), the reference that everything is held against."""

from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import Any, SupportsIndex

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Num

from convattn.operators.arrays import (
    accumulation_dtype,
    as_array,
    named_arguments,
    promoted,
    require_finite,
)
from convattn.operators.integers import as_integer, per_axis
from convattn.operators.padding import Padding, fill_around, read_padding


@named_arguments
def conv(
    images: Any,
    kernel: Any,
    bias: Any = None,
    *,
    stride: int | Sequence[int] = 1,
    dilation: int | Sequence[int] = 1,
    groups: SupportsIndex = 1,
    padding: Any = "SAME",
) -> Num[Array, "batch *space out_channels"]:
    """Convolve images with a kernel, one tap after the other.

        out_q = Σ_j images_(q + d·j - b) kernel_j + bias,    j = 0, …, K - 1,

    with b pixels of padding before the image. This is the cross-correlation that deep learning
    calls convolution. Sums run in at least float32 at the highest precision the device has;
    integers stay integers of the result's dtype and wrap around in it, so cast small ones to int32
    first.

    Args:
        images: `[batch, height, width, in]`, or `[batch, length, in]`.
        kernel: `[K_1, K_2, in/groups, out]`, or `[K, in/groups, out]`; its rank selects 1-D or 2-D.
        bias: `[out]` or none.
        stride: s ≥ 1; the result is the stride-1 result at `[::s]`, but for XLA's rules.
        dilation: d ≥ 1, the distance between taps.
        groups: Channels are split into this many independent groups.
        padding: What stands outside the image. `"SAME"`: zeros, as XLA, Flax and Keras lay them,
            so that there are ⌈n/s⌉ outputs; at stride 1 ⌊d(K-1)/2⌋ before and ⌈d(K-1)/2⌉ after.
            `"SAME_LOWER"`: an odd one before. `"SAME_TORCH"`: as many as at stride 1, at every
            stride. `"EDGE"`, `"REFLECT"`, `"CIRCULAR"`: as many pixels, the nearest one, those
            mirrored at the last, or those of the other side. `"MEAN"`: the mean over all pixels of
            that image and channel (integers become floats). `"CAUSAL"`: d·(K-1) zeros before a
            sequence. `"VALID"`: nothing, the size shrinks by d·(K-1). An integer: so many zeros on
            every side; or for each axis an integer or a pair (before, after).

    Returns:
        `[batch, height', width', out]` of dtype `result_type(images, kernel, bias)`.

    Raises:
        ValueError: For ranks or channels that do not fit, an unknown padding, a kernel larger than
            the (padded) image, and non-finite weights.

    Source: C20 eqs. 5 and 17; L21 eq. 1.

    >>> conv([[[1], [2], [4]]], [[[1]], [[0]], [[10]]])[0, :, 0].tolist()
    [20, 41, 2]
    """
    groups = as_integer(groups, "groups", 1)
    images, kernel, bias = _check_operands(images, kernel, bias, groups)
    axes = kernel.ndim - 2
    strides = per_axis(stride, axes, "stride")
    dilations = per_axis(dilation, axes, "dilation")
    outside = read_padding(padding, kernel.shape[:axes], dilations, strides)
    sizes = outside.output_size(images.shape[1:-1], strides)
    return _convolve(images, kernel, bias, outside, strides, dilations, sizes, groups)


# One program, so that its constants, and those of its gradient, are part of it and no transfer.
@partial(
    jax.jit, static_argnames=("outside", "strides", "dilations", "sizes", "groups"), inline=True
)
def _convolve(
    images: Array,
    kernel: Array,
    bias: Array | None,
    outside: Padding,
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
    sizes: tuple[int, ...],
    groups: int,
) -> Array:
    """`conv` after its arguments are read."""
    axes = kernel.ndim - 2
    operands = (images, kernel) if bias is None else (images, kernel, bias)
    result_dtype = jnp.result_type(*operands)
    if outside.fill == "MEAN" and not jnp.issubdtype(result_dtype, jnp.inexact):
        result_dtype = promoted(result_dtype, jnp.float32)
    working = accumulation_dtype(result_dtype)
    widths = outside.at(images.shape[1:-1], strides)
    padded = fill_around(images.astype(working), outside.fill, widths)
    batch, channels = images.shape[0], images.shape[-1]
    out_channels = kernel.shape[-1]
    total = jnp.zeros((batch, *sizes, groups, out_channels // groups), working)
    for tap in product(*(range(k) for k in kernel.shape[:axes])):
        first = [index * d for index, d in zip(tap, dilations, strict=True)]
        last = [f + (n - 1) * s + 1 for f, n, s in zip(first, sizes, strides, strict=True)]
        window = lax.slice(
            padded, (0, *first, 0), (batch, *last, channels), (1, *strides, 1)
        ).reshape(batch, *sizes, groups, channels // groups)
        weights = kernel[tap].astype(working)
        weights = weights.reshape(channels // groups, groups, out_channels // groups)
        total = total + jnp.einsum(
            "...gi,igo->...go", window, weights, precision=lax.Precision.HIGHEST
        )
    total = total.reshape(batch, *sizes, out_channels)
    if bias is not None:
        total = total + jnp.expand_dims(bias.astype(working), tuple(range(axes + 1)))
    return total.astype(result_dtype)


def layout_hint(shape: Sequence[int], kernel: Sequence[int], groups: int = 1) -> str:
    """What a wrong number of channels suggests: channels first, or a kernel `[out, in, K, K]`.

    Args:
        shape: Of the images.
        kernel: Its shape as it was read, `[*K, in/groups, out]`.

    >>> layout_hint((1, 3, 8, 8), (5, 5, 3, 2))
    '; axis 1 has as many: images.transpose(0, 2, 3, 1) moves the channels last'
    >>> layout_hint((1, 8, 8, 3), (64, 3, 7, 7))
    '; the kernel looks like [out, in, K, K]: kernel.transpose(2, 3, 1, 0)'
    """
    if len(shape) != len(kernel) or len(kernel) not in (3, 4):
        return ""
    order = (0, *range(2, len(shape)), 1)
    if shape[1] == groups * kernel[-2] != shape[-1]:
        return f"; axis 1 has as many: images.transpose{order} moves the channels last"
    if len(kernel) == 3 or kernel[2] != kernel[3]:
        return ""
    turned = "; the kernel looks like [out, in, K, K]: kernel.transpose(2, 3, 1, 0)"
    if shape[-1] == groups * kernel[1]:
        return turned
    return f"{turned}, and images.transpose{order}" if shape[1] == groups * kernel[1] else ""


def _check_operands(
    images: Any, kernel: Any, bias: Any, groups: int
) -> tuple[Array, Array, Array | None]:
    """Convert the operands of a convolution and refuse those that do not fit together."""
    images = as_array(images, "images")
    kernel, bias = check_kernel(kernel, bias, groups)
    if images.ndim != kernel.ndim:
        raise ValueError(
            f"images.shape={images.shape} has {images.ndim} axes, but a kernel of shape "
            f"{kernel.shape} takes {kernel.ndim}: batch, {kernel.ndim - 2} spatial, channels; add "
            "the batch axis with images[None]"
        )
    if images.shape[-1] != kernel.shape[-2] * groups:
        raise ValueError(
            f"images.shape={images.shape} has {images.shape[-1]} channels, but a kernel of shape "
            f"{kernel.shape} with groups={groups} takes {kernel.shape[-2] * groups}"
            + layout_hint(images.shape, kernel.shape, groups)
        )
    if 0 in images.shape[1:]:
        raise ValueError(
            f"images.shape={images.shape}, but expected every axis but the batch to be ≥ 1"
        )
    return images, kernel, bias


def check_kernel(kernel: Any, bias: Any, groups: SupportsIndex) -> tuple[Array, Array | None]:
    """Convert a kernel and its bias and refuse what is not a convolution's."""
    kernel = as_array(kernel, "kernel")
    if kernel.ndim not in (3, 4):
        raise ValueError(
            f"kernel.shape={kernel.shape} has {kernel.ndim} axes, but expected 3 (1-D: K, in, "
            "out) or 4 (2-D: K, K, in, out)"
        )
    if 0 in kernel.shape:
        raise ValueError(f"kernel.shape={kernel.shape}, but expected every axis to be ≥ 1; fill it")
    groups = as_integer(groups, "groups", 1)
    if kernel.shape[-1] % groups:
        raise ValueError(
            f"kernel.shape={kernel.shape} has {kernel.shape[-1]} output channels, but groups="
            f"{groups} should divide them"
        )
    require_finite(kernel, "kernel")
    if bias is not None:
        bias = as_array(bias, "bias")
        if bias.shape != kernel.shape[-1:]:
            raise ValueError(
                f"bias.shape={bias.shape}, but expected {kernel.shape[-1:]}, one entry for each "
                f"output channel of the kernel of shape {kernel.shape}"
            )
        require_finite(bias, "bias")
    return kernel, bias
