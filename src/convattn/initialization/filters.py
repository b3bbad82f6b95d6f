"""Which offset each head looks at, and its maps: given kernels, random impulses, random filters.

A head with one-hot attention to the offset δ and maps V (c × d), O (d × c) adds V O to the tap δ of
a convolution of c channels. So H heads are every kernel whose taps have ranks r_δ with

    Σ_δ ⌈r_δ/d⌉ ≤ H,

by the singular value decomposition of each tap, split into parts of d. Under a smaller budget the
parts with the largest singular values are kept: of all choices of H parts (δ, V, O) they leave the
least squared Frobenius norm, as the parts of one tap fall in order (Eckart and Young).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from convattn.initialization.positions import Shift
from convattn.operators.shifts import kernel_shifts

NAMES = ("impulses", "filters")
RANK = 2.0**-40  # singular values below this part of the largest are rounding


@dataclass(frozen=True)
class Filters:
    """The heads of a layer.

    Attributes:
        shifts: δ = key - query of each head.
        values: V of each head, on the channels that are convolved.
        outputs: O of each head.
        kernel: `[K_1, K_2, in, out]`, the requested convolution.
        used: How many heads have a part in it, the first ones.
        needed: How many it takes with one-hot heads of this dimension.
    """

    shifts: tuple[Shift, ...]
    values: Float[np.ndarray, "heads channels head_dim"]
    outputs: Float[np.ndarray, "heads head_dim channels"]
    kernel: Float[np.ndarray, "rows columns channels out_channels"]
    used: int
    needed: int


@dataclass(frozen=True)
class Budget:
    """Heads, their dimension, and how many channels are convolved."""

    heads: int
    head_dim: int
    channels: int


def random_filters(
    name: str, size: tuple[int, int], budget: Budget, gain: float, rng: np.random.Generator
) -> Filters:
    """Heads at offsets drawn without repetition, as far as there are offsets.

    "impulses": each head takes a block of channels from its offset and leaves them in place, times
    the gain. "filters": V has entries N(0, 1/c) and O N(0, gain²/(H·d)), so that what is added has
    about gain times the deviation of what is read.
    """
    taps = kernel_shifts(size, (1, 1))
    rounds = -(-budget.heads // len(taps))
    order = np.concatenate([rng.permutation(len(taps)) for _ in range(rounds)])[: budget.heads]
    shape = (budget.heads, budget.channels, budget.head_dim)
    if name == "filters":
        values = rng.normal(size=shape) / np.sqrt(budget.channels)
        outputs = rng.normal(size=(shape[0], shape[2], shape[1]))
        outputs *= gain / np.sqrt(budget.heads * budget.head_dim)
    else:
        values, outputs = np.zeros(shape), np.zeros((shape[0], shape[2], shape[1]))
        block = min(budget.head_dim, -(-budget.channels // budget.heads))
        for head in range(budget.heads):
            here = np.arange(head * block, min((head + 1) * block, budget.channels))
            values[head, here, here - head * block] = 1
            outputs[head, here - head * block, here] = gain
    kernel = np.zeros((len(taps), budget.channels, budget.channels))
    np.add.at(kernel, order, values @ outputs)
    shifts = tuple((taps[at][0], taps[at][1]) for at in order)
    taps_of_kernel = kernel.reshape(*size, *kernel.shape[1:])
    used = int(np.abs(outputs).any(axis=(1, 2)).sum())  # the last may find no channels left
    return Filters(shifts, values, outputs, taps_of_kernel, used, used)


def given_filters(
    kernel: Float[np.ndarray, "rows columns in_channels out_channels"],
    budget: Budget,
    approximate: bool,
) -> Filters:
    """The heads of a kernel; its channels are the first of those that can be convolved."""
    size = (kernel.shape[0], kernel.shape[1])
    taps = kernel_shifts(size, (1, 1))
    padded = np.zeros((len(taps), budget.channels, budget.channels))
    padded[:, : kernel.shape[2], : kernel.shape[3]] = kernel.reshape(len(taps), *kernel.shape[2:])
    parts: list[tuple[float, int, np.ndarray, np.ndarray]] = []
    left, singular, right = np.linalg.svd(padded)
    floor = RANK * singular.max(initial=0.0)
    for tap, values in enumerate(singular):
        rank = int((values > floor).sum())
        for first in range(0, rank, budget.head_dim):
            columns = slice(first, min(first + budget.head_dim, rank))
            root = np.sqrt(values[columns])
            own = left[tap][:, columns] * root, root[:, None] * right[tap][columns]
            parts.append((float((values[columns] ** 2).sum()), tap, *own))
    if len(parts) > budget.heads and not approximate:
        raise ValueError(
            f"a kernel of {size[0]} × {size[1]} taps whose maps have the ranks "
            f"{[int((values > floor).sum()) for values in singular]} takes {len(parts)} heads of "
            f"dimension {budget.head_dim}, but the model has {budget.heads}; give "
            "approximate=True for the nearest with so many, or a kernel of lower rank, or take a "
            "model with more heads"
        )
    largest = sorted(parts, key=lambda part: -part[0])[: budget.heads]
    values_of = np.zeros((budget.heads, budget.channels, budget.head_dim))
    outputs = np.zeros((budget.heads, budget.head_dim, budget.channels))
    shifts: list[Shift] = [(0, 0)] * budget.heads
    for head, (_, tap, into, out) in enumerate(largest):
        values_of[head, :, : into.shape[1]], outputs[head, : out.shape[0]] = into, out
        shifts[head] = taps[tap][0], taps[tap][1]
    padded_kernel = padded.reshape(*size, *padded.shape[1:])
    return Filters(tuple(shifts), values_of, outputs, padded_kernel, len(largest), len(parts))


def read_kernels(
    kernel: Any, layers: int, channels: int
) -> list[str | Float[np.ndarray, "rows columns in_channels out_channels"]]:
    """One kernel for each layer: a name or an array for all, or a sequence of them.

    Arrays are HWIO; `[K_1, K_2, 1, channels]` is depthwise.
    """
    several = isinstance(kernel, Sequence) and not isinstance(kernel, str)
    kernels = list(kernel) if several else [kernel] * layers
    if len(kernels) != layers:
        raise ValueError(f"{len(kernels)} kernels for {layers} layers, but expected one for each")
    for name in kernels:
        if isinstance(name, str) and name not in NAMES:
            raise ValueError(
                f"kernel={name!r}, but expected 'impulses', 'filters' or arrays [K_1, K_2, in, out]"
            )
    return [entry if isinstance(entry, str) else _array(entry, channels) for entry in kernels]


def _array(kernel: Any, channels: int) -> np.ndarray:
    try:
        array = np.asarray(kernel)
        if array.dtype.kind not in "fiu":
            raise TypeError(f"its dtype is {array.dtype}")
        array = array.astype(np.float64)
    except Exception as error:
        raise ValueError(
            f"kernel is {type(kernel).__name__}, but expected 'impulses', 'filters' or arrays "
            f"[K_1, K_2, in, out] of real numbers: {error}"
        ) from error
    if array.ndim == 4 and array.shape[2] == 1 < array.shape[3] <= channels:
        array = array * np.eye(array.shape[3])
    if array.ndim != 4 or 0 in array.shape or max(array.shape[2:]) > channels:
        raise ValueError(
            f"kernel.shape={np.shape(kernel)}, but expected [K_1, K_2, in, out], or [K_1, K_2, 1, "
            f"channels] for a depthwise one, with at most {channels} channels: the width less "
            "those that hold positions, of real numbers"
        )
    if not np.isfinite(array).all():
        raise ValueError("kernel has entries that are not finite; look for a diverged training run")
    return array
