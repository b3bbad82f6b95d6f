"""L21's explicit W^O, entry by entry from the remark of appendix A.2, in integers.

Written apart from `convattn.constructions`, as a reference for it. Row (r-1)d + (s-1)D_in + i,
column (t-1)D_out + j holds W^C_(x,y,i,j), where (x, y) is the place of pixel s of patch q + δ_r in
the receptive field of pixel t of patch q, and zero where it is not in it. Places are counted here
from zero; "not in it" is an absent tap, not a number.
"""

from itertools import product

import numpy as np
from jaxtyping import Int


def patch_offsets(kernel_size: int, patch_size: int) -> list[tuple[int, int]]:
    """Δ̃ of L21 eqs. 5 and 13, row-major, with m = ⌈(K-1)/(2P)⌉.

    Raises:
        ValueError: For an even or non-positive kernel size.

    >>> len(patch_offsets(5, 2)), len(patch_offsets(7, 2)), patch_offsets(1, 2)
    (9, 25, [(0, 0)])
    """
    if kernel_size < 1 or kernel_size % 2 == 0:
        raise ValueError(
            f"kernel_size={kernel_size}, but should be odd: for even K the receptive field of L21 "
            "eq. 1 has K + 1 taps on each axis"
        )
    reach = -((1 - kernel_size) // (2 * patch_size))
    axis = range(-reach, reach + 1)
    return [(down, right) for down in axis for right in axis]


def printed_output_map(
    kernel: Int[np.ndarray, "K K in_channels out_channels"], patch_size: int
) -> Int[np.ndarray, "stacked_features out_features"]:
    """W^O, `[N_H·P²·D_in, P²·D_out]`.

    >>> printed_output_map(np.arange(1, 10).reshape(3, 3, 1, 1), 1).ravel().tolist()
    [1, 2, 3, 4, 5, 6, 7, 8, 9]
    """
    size, _, in_channels, out_channels = kernel.shape
    offsets = patch_offsets(size, patch_size)
    pixels = list(product(range(patch_size), repeat=2))
    features = len(pixels) * in_channels
    output = np.zeros((len(offsets) * features, len(pixels) * out_channels), kernel.dtype)
    for (r, offset), (s, read), (t, written) in product(
        enumerate(offsets), enumerate(pixels), enumerate(pixels)
    ):
        place = [
            patch_size * patch + key + size // 2 - query
            for patch, key, query in zip(offset, read, written, strict=True)
        ]
        if all(0 <= axis < size for axis in place):
            rows = slice(r * features + s * in_channels, r * features + (s + 1) * in_channels)
            columns = slice(t * out_channels, (t + 1) * out_channels)
            output[rows, columns] = kernel[place[0], place[1]]
    return output


def output_blocks(
    kernel: Int[np.ndarray, "K K in_channels out_channels"], patch_size: int
) -> Int[np.ndarray, "offsets features out_features"]:
    """W^O cut into M_δ, one block for each of `patch_offsets`.

    >>> output_blocks(np.ones((3, 3, 1, 2), int), 2).shape
    (9, 4, 8)
    """
    count = len(patch_offsets(kernel.shape[0], patch_size))
    printed = printed_output_map(kernel, patch_size)
    return printed.reshape(count, -1, printed.shape[1])


def flattened_blocks(
    blocks: Int[np.ndarray, "offsets features out_features"],
) -> Int[np.ndarray, "rows offsets"]:
    """F: each M_δ flattened into a column, as in L21 eqs. 8 and 20.

    >>> flattened_blocks(np.array([[[1, 2]], [[3, 4]]])).tolist()
    [[1, 3], [2, 4]]
    """
    return blocks.reshape(len(blocks), -1).T
