"""x ⋆ H of B19 Definition 2: one signal, many filters.

Definition 1 reads x_(i - ⌈n/2⌉ + k) for k = 1 … n. (Its brackets must be the ceiling: the floor
would shift every odd filter by a pixel.) The taps k - ⌈n/2⌉ are

    1 - ⌈n/2⌉, …, n - ⌈n/2⌉  =  -⌊(n-1)/2⌋, …, ⌊n/2⌋,

the taps of this library's `conv` for odd and even n, with zeros outside the signal. A *causal*
filter has the taps -(n-1), …, 0 instead.
"""

from collections.abc import Sequence

import jax.numpy as jnp
from jax import Array
from jaxtyping import Num

from convattn.operators.convolution import conv


def filter_bank(
    images: Num[Array, "batch *space in_channels"],
    filters: Num[Array, "heads *taps in_channels features"],
    *,
    stride: Sequence[int],
    dilation: Sequence[int],
    causal: bool = False,
) -> Num[Array, "batch *strided heads features"]:
    """Every head's filters over the images: (x ⋆ H)_q = Σ_t x_(q + d·t) H_t, at every s-th q.

    Args:
        filters: H, heads first; d_a or d_o filters each.
        stride, dilation: For each spatial axis.
        causal: One axis only; the last tap is the position itself.

    Source: B19 Definitions 1 and 2.

    >>> sequence, pair = jnp.array([[[1.0], [2.0], [4.0]]]), jnp.array([[[[1.0]], [[10.0]]]])
    >>> filter_bank(sequence, pair, stride=(1,), dilation=(1,))[0, :, 0, 0].tolist()
    [21.0, 42.0, 4.0]
    >>> filter_bank(sequence, pair, stride=(1,), dilation=(1,), causal=True)[0, :, 0, 0].tolist()
    [10.0, 21.0, 42.0]
    """
    heads, features = filters.shape[0], filters.shape[-1]
    kernel = jnp.moveaxis(filters, 0, -2)
    kernel = kernel.reshape(*kernel.shape[:-2], heads * features)
    result = convolve(images, kernel, stride=stride, dilation=dilation, causal=causal)
    return result.reshape(*result.shape[:-1], heads, features)


def convolve(
    images: Num[Array, "batch *space in_channels"],
    kernel: Num[Array, "*taps in_channels features"],
    *,
    stride: Sequence[int],
    dilation: Sequence[int],
    causal: bool = False,
) -> Num[Array, "batch *strided features"]:
    """`conv` with zeros outside; causal: all of them before the first position."""
    if not causal:
        return conv(images, kernel, stride=stride, dilation=dilation, padding="SAME_TORCH")
    if kernel.ndim != 3:
        raise ValueError(
            f"kernel.shape={kernel.shape} has {kernel.ndim - 2} spatial axes, but only a sequence "
            "has a past: causal filters should have the shape [width, in, features]; reshape "
            "1 × m filters and images of height 1 to sequences"
        )
    before = dilation[0] * (kernel.shape[0] - 1)
    padded = jnp.pad(images, [(0, 0), (before, 0), (0, 0)])
    return conv(padded, kernel, stride=stride, dilation=dilation, padding="VALID")
