"""Linear maps of many numbers: of the channels of each point, or of all points of a map."""

from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from convattn.compile.affine import Affine
from convattn.compile.reader import Reader
from convattn.compile.symbol import OUTSIDE, Index, Symbol, side_by_side

MOST = 2**27  # numbers of a matrix


def contracted(
    reader: Reader, symbol: Symbol, index: Index, weights: np.ndarray
) -> tuple[Affine, Index]:
    """Σ_k symbol[index[f, k]] · weights[k, o] as an affine map, and the index [f, o] of the result.

    Args:
        reader: For refusals and values.
        symbol: Linear.
        index: Its numbers. Those of a row are of one point, or of one image.
        weights: Constant.
    """
    channels, (rows, columns) = symbol.affine.channels, symbol.count
    inside = index >= 0
    base = np.where(inside, index // channels, OUTSIDE)
    target = base.max(1, initial=OUTSIDE)
    is_pointwise = bool((~inside | (base == target[:, None])).all())
    size = channels
    if not is_pointwise:
        symbol, size = reader.pointwise(symbol), rows * columns * channels
        images = np.where(inside, base // (rows * columns), OUTSIDE)
        target = images.max(1)
        if not (~inside | (images == target[:, None])).all():
            raise reader.refusal(
                "joins numbers of different images, as batch norm in training, or a branch on a "
                "whole batch, does; call model.eval(), or compute each image by itself"
            )
    local = np.where(inside, index - target[:, None] * size, OUTSIDE)
    patterns, kind = _patterns(local)
    outputs = weights.shape[1]
    if size * len(patterns) * outputs > MOST:
        raise reader.refusal(
            f"a linear map of {size} numbers to {len(patterns) * outputs}, which is too large; "
            "reduce rows and columns together"
        )
    held = np.zeros((size, len(patterns), outputs))
    for number, pattern in enumerate(patterns):
        known = pattern >= 0
        np.add.at(held[:, number], pattern[known], weights[known])
    if is_pointwise:
        affine = symbol.affine.mapped(held.reshape(size, -1))
    else:
        affine = symbol.affine.of_points(held.reshape(rows, columns, channels, -1))
    numbers = (target * len(patterns) + kind)[:, None] * outputs + np.arange(outputs)
    return affine, np.where(target[:, None] < 0, OUTSIDE, numbers)


def _patterns(local: Index) -> tuple[Index, Index]:
    """The different rows, and which one each is."""
    if (local == local[:1]).all():
        return local[:1], np.zeros(len(local), np.int64)
    patterns, kind = np.unique(local, axis=0, return_inverse=True)
    return patterns, kind.reshape(-1)


def total(reader: Reader, inputs: list[Any], equation: Any) -> Any:
    """`reduce_sum`."""
    (symbol,), axes = inputs, equation.params["axes"]
    if not isinstance(symbol, Symbol):
        raise reader.refusal("adds up a mask")
    symbol = reader.linear(symbol)
    free = [axis for axis in range(symbol.index.ndim) if axis not in axes]
    index = symbol.index.transpose(*free, *axes)
    shape = index.shape[: len(free)]
    index = index.reshape(prod(shape), -1)
    affine, numbers = contracted(reader, symbol, index, np.ones((index.shape[1], 1)))
    return replace(symbol, affine=affine, index=numbers.reshape(shape))


def product(reader: Reader, inputs: list[Any], equation: Any) -> Any:
    """`dot_general` of a symbol and a constant."""
    one, other = inputs
    (first, second), (own, theirs) = equation.params["dimension_numbers"]
    swapped = not isinstance(one, Symbol)
    if swapped:
        one, other, first, second, own, theirs = other, one, second, first, theirs, own
    if not isinstance(one, Symbol) or isinstance(other, Symbol):
        raise reader.refusal("multiplies two arrays that depend on the image, as attention does")
    symbol, weights = reader.linear(one), np.asarray(other, np.float64)
    free = [axis for axis in range(symbol.index.ndim) if axis not in (*first, *own)]
    rest = [axis for axis in range(weights.ndim) if axis not in (*second, *theirs)]
    index = symbol.index.transpose(*own, *free, *first)
    weights = weights.transpose(*theirs, *second, *rest)
    batch, rows, outputs = (
        index.shape[: len(own)],
        index.shape[len(own) : len(own) + len(free)],
        weights.shape[len(own) + len(first) :],
    )
    groups, inner = prod(batch), prod(index.shape[len(own) + len(free) :])
    index = index.reshape(groups, prod(rows), inner)
    weights = weights.reshape(groups, inner, prod(outputs))
    parts = [contracted(reader, symbol, i, w) for i, w in zip(index, weights, strict=True)]
    affine, indices = side_by_side(parts)
    numbers = np.stack(indices).reshape(*batch, *rows, *outputs)
    if swapped:
        axes = range(len(batch), numbers.ndim)
        numbers = numbers.transpose(*range(len(batch)), *axes[len(rows) :], *axes[: len(rows)])
    return replace(symbol, affine=affine, index=numbers)
