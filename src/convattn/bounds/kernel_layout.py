"""The public functions that take a kernel, with a warning where it looks like PyTorch's layout.

A kernel `[out, in, K, K]` is read as one of out × in taps. Nothing is wrong with its shape, so it
cannot be refused. Within the library kernels are in the layout `[K_1, K_2, in, out]`: it calls the
functions themselves.
"""

import warnings
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import numpy as np

from convattn.bounds import approximation, kernel_heads
from convattn.constructions import conversion
from convattn.constructions import two_layers as two

P = ParamSpec("P")
R = TypeVar("R")
SMALL = range(2, 17)  # sides of a square kernel


def warns_of_layout(function: Callable[P, R]) -> Callable[P, R]:
    """The same function, with a warning for a kernel whose last two axes look like its taps."""

    @wraps(function)
    def checked(*args: P.args, **options: P.kwargs) -> R:
        kernel = args[0] if args else options.get("kernel")
        shape: tuple[int, ...] = np.shape(kernel) if kernel is not None else ()  # type: ignore[call-overload]
        if len(shape) == 4 and shape[2] == shape[3] in SMALL and shape[0] != shape[1]:
            rows, columns, inputs, outputs = shape
            warnings.warn(
                f"kernel.shape={shape} is read as [K_1, K_2, in, out]: {rows} × {columns} taps of "
                f"{inputs} channels in and {outputs} out. As PyTorch's [out, in, K, K] it is "
                f"{inputs} × {outputs} taps of {columns} channels in and {rows} out: then give "
                "kernel.transpose(2, 3, 1, 0)",
                stacklevel=2,
            )
        return function(*args, **options)

    return checked


conv_to_attention = warns_of_layout(conversion.conv_to_attention)
two_layers = warns_of_layout(two.two_layers)
heads_of = warns_of_layout(kernel_heads.heads_of)
approximate_convolution = warns_of_layout(approximation.approximate_convolution)
