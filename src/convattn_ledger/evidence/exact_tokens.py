"""Images cut into flattened patches, in integers: the exact side of evidence about tokens.

Written apart from `convattn.operators.patches`, in NumPy: pixels row-major within a patch,
channels last.
"""

import numpy as np
from jaxtyping import Shaped


def cut_tokens(
    images: Shaped[np.ndarray, "batch height width channels"], patch_size: int
) -> Shaped[np.ndarray, "batch rows columns features"]:
    """X̃ of L21 §2.2, with the tokens left where they stand.

    Raises:
        ValueError: Where P does not divide the sides.

    >>> cut_tokens(np.arange(8).reshape(1, 2, 4, 1), 2)[0, 0].tolist()
    [[0, 1, 4, 5], [2, 3, 6, 7]]
    """
    batch, height, width, channels = images.shape
    if height % patch_size or width % patch_size:
        raise ValueError(
            f"images.shape={images.shape}, but patches of size {patch_size} should divide the sides"
        )
    rows, columns = height // patch_size, width // patch_size
    cut = images.reshape(batch, rows, patch_size, columns, patch_size, channels)
    return cut.transpose(0, 1, 3, 2, 4, 5).reshape(batch, rows, columns, -1)


def join_tokens(
    tokens: Shaped[np.ndarray, "batch rows columns features"], patch_size: int
) -> Shaped[np.ndarray, "batch height width channels"]:
    """The image again.

    >>> images = np.arange(16).reshape(1, 4, 4, 1)
    >>> bool((join_tokens(cut_tokens(images, 2), 2) == images).all())
    True
    """
    batch, rows, columns, _ = tokens.shape
    cut = tokens.reshape(batch, rows, columns, patch_size, patch_size, -1)
    joined = cut.transpose(0, 1, 3, 2, 4, 5)
    return joined.reshape(batch, rows * patch_size, columns * patch_size, -1)


def tokens_at(
    tokens: Shaped[np.ndarray, "batch rows columns features"],
    offset: tuple[int, int],
    outside: Shaped[np.ndarray, " batch #rows #columns features"] | int = 0,
) -> Shaped[np.ndarray, "batch rows columns features"]:
    """X_(q+δ) at every query q, and `outside` where there is no such token.

    >>> row = np.arange(1, 4).reshape(1, 1, 3, 1)
    >>> tokens_at(row, (0, 1)).ravel().tolist(), tokens_at(row, (0, -1), 9).ravel().tolist()
    ([2, 3, 0], [9, 1, 2])
    """
    result = np.broadcast_to(outside, tokens.shape).astype(tokens.dtype)
    source, target = [], []
    for size, step in zip(tokens.shape[1:3], offset, strict=True):
        source.append(slice(max(0, step), max(0, min(size, size + step))))
        target.append(slice(max(0, -step), max(0, min(size, size - step))))
    result[:, target[0], target[1]] = tokens[:, source[0], source[1]]
    return result
