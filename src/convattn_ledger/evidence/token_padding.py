"""Convolutions whose outside is the nearest token or the mean of all, in integers.

What a layer without a ring tends to. The image is cut into tokens, tokens are laid around the grid,
and the larger image is convolved; written apart from the library, in NumPy.
"""

import numpy as np
from jaxtyping import Int

from convattn_ledger.evidence.exact_convolution import exact_convolution
from convattn_ledger.evidence.exact_tokens import cut_tokens, join_tokens
from convattn_ledger.evidence.printed_output_map import patch_offsets


def token_padded_convolution(
    images: Int[np.ndarray, "batch height width in_channels"],
    kernel: Int[np.ndarray, "K K in_channels out_channels"],
    patch_size: int,
    outside: str,
) -> tuple[Int[np.ndarray, "batch height width out_channels"], int]:
    """The convolution, and the number by which its integers are to be divided.

    Args:
        kernel: Square, odd K.
        outside: `"edge"`, the nearest token, or `"mean"`, the mean of all N tokens (then the
            integers are N times the result).

    Raises:
        ValueError: For another `outside`.

    >>> image = np.array([3, 5]).reshape(1, 1, 2, 1)
    >>> box = np.ones((3, 3, 1, 1), int)
    >>> [token_padded_convolution(image, box, 1, o)[0].ravel().tolist() for o in ("edge", "mean")]
    [[33, 39], [72, 72]]
    """
    tokens = cut_tokens(images, patch_size)
    reach = patch_offsets(kernel.shape[0], patch_size)[-1][0]
    widths = [(0, 0), (reach, reach), (reach, reach), (0, 0)]
    if outside == "edge":
        count, padded = 1, np.pad(tokens, widths, mode="edge")
    elif outside == "mean":
        count = tokens.shape[1] * tokens.shape[2]
        total = tokens.sum(axis=(1, 2), keepdims=True)
        padded = np.pad(count * tokens - total, widths) + total
    else:
        raise ValueError(f"outside={outside!r}, but should be 'edge' or 'mean'")
    crop = slice(reach * patch_size, -reach * patch_size if reach else None)
    return exact_convolution(join_tokens(padded, patch_size), kernel)[:, crop, crop], count
