"""Operators that torchax computes otherwise than PyTorch, as PyTorch computes them."""

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
import torch
from jax import Array


def correct(environment: Any) -> None:
    """Put these operators in the place of torchax's."""
    aten = torch.ops.aten
    pools = dict.fromkeys((aten.avg_pool1d, aten.avg_pool2d, aten.avg_pool3d), _average_pool)
    for operator, function in {aten.convolution: _convolution, **pools}.items():
        environment.override_op_definition(operator, function)
        environment._ops[operator].is_jax_function = True


def _convolution(
    images: Array,
    weight: Array,
    bias: Array | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Array:
    """torchax's, which reads the groups of a transposed convolution in another order."""
    from torchax.ops.jaten import _aten_convolution

    if transposed and groups > 1:
        grouped = weight.reshape(groups, len(weight) // groups, *weight.shape[1:])
        weight = grouped.swapaxes(0, 1).reshape(weight.shape)
    return _aten_convolution(
        images, weight, bias, stride, padding, dilation, transposed, output_padding, groups
    )


def _average_pool(
    images: Array,
    kernel_size: Sequence[int],
    stride: Sequence[int] | None = None,
    padding: Sequence[int] | int = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Array:
    """torchax's, but a window that ends beyond the padding is divided by what it holds."""
    from torchax.ops.jaten import _aten_avg_pool

    args = (images, kernel_size, stride, padding, ceil_mode, count_include_pad)
    if not ceil_mode or not count_include_pad or divisor_override is not None:
        return _aten_avg_pool(*args, divisor_override)
    sums, axes = _aten_avg_pool(*args, 1), len(kernel_size)
    steps = tuple(stride) if stride else tuple(kernel_size)
    widths = (padding,) if isinstance(padding, int) else tuple(padding)
    widths = widths * axes if len(widths) == 1 else widths
    counts = []
    for axis in range(axes):
        first = np.arange(sums.shape[axis - axes]) * steps[axis] - widths[axis]
        end = images.shape[axis - axes] + widths[axis]
        counts.append(np.minimum(first + kernel_size[axis], end) - first)
    return sums / jnp.asarray(math.prod(np.ix_(*counts)), sums.dtype)
