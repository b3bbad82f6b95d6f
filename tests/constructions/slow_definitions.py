"""Convolution and token maps by their definitions, in loops, on integers or fractions.

The maps are found forwards, from the pixel that a tap reads to the patch it lies in; the library
finds them backwards, from a pair of pixels to the tap that joins them.
"""

import math
from itertools import product

import numpy as np

from convattn.operators.shifts import Shift


def taps(size: int) -> list[int]:
    """-(K-1)//2, …, K//2."""
    return list(range(-((size - 1) // 2), size // 2 + 1))


def slow_conv(images, kernel, bias=None, *, stride=None, dilation=None, before=None) -> np.ndarray:
    """out_q = Σ_i X_(s·q + d·i - before) W_i + b with zeros outside, one pixel after the other.

    By default the tap that `taps` calls 0 stands at the query.
    """
    images, kernel = np.asarray(images), np.asarray(kernel)
    axes = kernel.ndim - 2
    stride, dilation = stride or (1,) * axes, dilation or (1,) * axes
    centred = [-d * taps(k)[0] for d, k in zip(dilation, kernel.shape, strict=False)]
    before = centred if before is None else before
    sides = images.shape[1:-1]
    out_sides = [-(-n // s) for n, s in zip(sides, stride, strict=True)]
    out = np.zeros((len(images), *out_sides, kernel.shape[-1]), np.result_type(images, kernel))
    for q in product(*map(range, out_sides)):
        for index in product(*map(range, kernel.shape[:axes])):
            position = tuple(
                s * x + d * i - b
                for s, x, d, i, b in zip(stride, q, dilation, index, before, strict=True)
            )
            if all(0 <= x < n for x, n in zip(position, sides, strict=True)):
                out[(slice(None), *q)] += images[(slice(None), *position)] @ kernel[index]
        if bias is not None:
            out[(slice(None), *q)] += bias
    return out


def kept_pixels(patch_size, stride) -> list[range]:
    """The pixels of a patch that the layer computes: strided where every stride divides its P."""
    divides = all(p % s == 0 for p, s in zip(patch_size, stride, strict=True))
    steps = stride if divides else (1,) * len(stride)
    return [range(0, p, s) for p, s in zip(patch_size, steps, strict=True)]


def slow_token_maps(kernel, patch_size, stride=None, dilation=None) -> dict[Shift, np.ndarray]:
    """M_δ for every δ that some pixel of a patch reads, kept or not: `[P²·in, P_out²·out]`."""
    kernel = np.asarray(kernel)
    axes = kernel.ndim - 2
    stride, dilation = stride or (1,) * axes, dilation or (1,) * axes
    *sizes, width_in, width_out = kernel.shape
    pixels_of_axes = kept_pixels(patch_size, stride)
    shape = (
        math.prod(patch_size) * width_in,
        math.prod(len(pixels) for pixels in pixels_of_axes) * width_out,
    )
    maps: dict[Shift, np.ndarray] = {}
    for p in product(*map(range, patch_size)):
        for index in product(*map(range, sizes)):
            read = [
                x + d * taps(k)[i] for x, d, k, i in zip(p, dilation, sizes, index, strict=True)
            ]
            offset = tuple(r // size for r, size in zip(read, patch_size, strict=True))
            block = maps.setdefault(offset, np.zeros(shape, kernel.dtype))
            if any(x not in pixels for x, pixels in zip(p, pixels_of_axes, strict=True)):
                continue
            position = [r % size for r, size in zip(read, patch_size, strict=True)]
            row = row_major(position, patch_size) * width_in
            spot = [pixels.index(x) for x, pixels in zip(p, pixels_of_axes, strict=True)]
            column = row_major(spot, [len(pixels) for pixels in pixels_of_axes]) * width_out
            block[row : row + width_in, column : column + width_out] = kernel[index]
    return dict(sorted(maps.items()))


def row_major(position, sizes) -> int:
    number = 0
    for x, size in zip(position, sizes, strict=True):
        number = number * size + x
    return number


def slow_tokens(images, patch_size) -> np.ndarray:
    """`[batch, *grid, P²·channels]`, cut out one by one."""
    images = np.asarray(images)
    grid = [n // p for n, p in zip(images.shape[1:-1], patch_size, strict=True)]
    width = math.prod(patch_size) * images.shape[-1]
    tokens = np.zeros((len(images), *grid, width), images.dtype)
    for patch in product(*map(range, grid)):
        cut = [slice(g * p, (g + 1) * p) for g, p in zip(patch, patch_size, strict=True)]
        tokens[(slice(None), *patch)] = images[(slice(None), *cut)].reshape(len(images), -1)
    return tokens


def slow_image(tokens, patch_size) -> np.ndarray:
    """The image whose patches these are."""
    tokens = np.asarray(tokens)
    grid = tokens.shape[1:-1]
    sides = [n * p for n, p in zip(grid, patch_size, strict=True)]
    channels = tokens.shape[-1] // math.prod(patch_size)
    image = np.zeros((len(tokens), *sides, channels), tokens.dtype)
    for patch in product(*map(range, grid)):
        cut = [slice(g * p, (g + 1) * p) for g, p in zip(patch, patch_size, strict=True)]
        block = tokens[(slice(None), *patch)].reshape(len(tokens), *patch_size, channels)
        image[(slice(None), *cut)] = block
    return image
