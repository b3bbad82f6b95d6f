"""What the bare grid computes: the convolution of an image with tokens, not zeros, around it."""

import numpy as np
from constructions.slow_definitions import slow_conv, slow_image, slow_tokens


def token_padded_conv(images, kernel, patch_size, ring, mode) -> np.ndarray:
    """Lay tokens around the grid, convolve the larger image, and crop.

    Args:
        mode: Of `numpy.pad`, so `"edge"` for the nearest token, or `"mean"` for the mean of all.
    """
    tokens = slow_tokens(np.asarray(images, float), patch_size)
    widths = [(0, 0), *ring, (0, 0)]
    if mode == "edge":
        padded = np.pad(tokens, widths, mode="edge")
    else:
        axes = tuple(range(1, tokens.ndim - 1))
        outside = np.pad(np.zeros(tokens.shape[:-1]), widths[:-1], constant_values=1) == 1
        padded = np.pad(tokens, widths)
        mean = np.broadcast_to(tokens.mean(axes, keepdims=True), padded.shape)
        padded = np.where(outside[..., None], mean, padded)
    result = slow_conv(slow_image(padded, patch_size), np.asarray(kernel, float))
    crop = [
        slice(before * p, before * p + n)
        for (before, _), p, n in zip(ring, patch_size, images.shape[1:-1], strict=True)
    ]
    return result[(slice(None), *crop)]
