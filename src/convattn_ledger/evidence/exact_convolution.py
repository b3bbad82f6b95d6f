"""Convolution in 64-bit integers: the exact reference of the floating-point evidence.

It is written apart from `convattn.conv` and from the constructions, from C20 eq. 5, in NumPy.
"""

from itertools import product

import numpy as np
from jaxtyping import Int


def exact_convolution(
    images: Int[np.ndarray, "batch *space in_channels"],
    kernel: Int[np.ndarray, "*taps in_channels out_channels"],
    *,
    stride: int = 1,
    dilation: int = 1,
    mode: str = "constant",
) -> Int[np.ndarray, "batch *strided out_channels"]:
    """Σ_j X_(q + d·j - ⌊d(K-1)/2⌋) W_j at every stride-th pixel q, zeros (or a fill) outside.

    Args:
        mode: What `numpy.pad` lays around the image: `"constant"` (zeros), `"edge"`, `"wrap"` or
            `"reflect"`.

    Raises:
        ValueError: For anything but integers.

    >>> ones = np.ones((1, 3, 1), int)
    >>> exact_convolution(ones, np.array([1, 10, 100]).reshape(3, 1, 1)).ravel().tolist()
    [110, 111, 11]
    """
    if images.dtype.kind not in "iu" or kernel.dtype.kind not in "iu":
        raise ValueError(
            f"images.dtype={images.dtype} and kernel.dtype={kernel.dtype}, but both should be "
            "integers, so that the result is exact"
        )
    sizes = kernel.shape[:-2]
    before = [dilation * (k - 1) // 2 for k in sizes]
    after = [dilation * (k - 1) - width for k, width in zip(sizes, before, strict=True)]
    pads = [(0, 0), *zip(before, after, strict=True), (0, 0)]
    padded = np.pad(images.astype(np.int64), pads, mode=mode)  # type: ignore[call-overload]
    space = images.shape[1:-1]
    total = np.zeros((*images.shape[:-1], kernel.shape[-1]), np.int64)
    for tap in product(*(range(k) for k in sizes)):
        window = tuple(
            slice(index * dilation, index * dilation + n)
            for index, n in zip(tap, space, strict=True)
        )
        total += padded[(slice(None), *window)] @ kernel[tap].astype(np.int64)
    return total[(slice(None), *(slice(None, None, stride) for _ in space))]
