"""The convolution nearest to a layer whose maps are large: head by head instead of entry by entry.

The layer is Σ_h A_h ⊗ W_h on one group of channels, and the least-squares kernel is the mean of its
entries over the pairs of pixels that a tap joins (`convattn.constructions.recovery`). So the kernel
at tap t is Σ_h m_ht W_h, with m_h the kernel nearest to A_h alone, and with R_h what is left of A_h

    |L - C|² = Σ_hg ⟨R_h, R_g⟩⟨W_h, W_g⟩,

which takes no more than the attention of the heads, however many channels there are.
"""

from collections.abc import Sequence
from dataclasses import replace

import jax.numpy as jnp
from jax import Array

from convattn.constructions.conversion import conv_to_attention
from convattn.constructions.recovery import attention_to_conv, layer_maps, linear_map
from convattn.encodings.layer import AttentionLayer
from convattn.operators.attention import HIGHEST


def recovered_kernel(layer: AttentionLayer, kernel_size: Sequence[int]) -> tuple[Array, Array]:
    """The kernel `[*K, in, out]`, and |L - C|/|L| on the smallest image that every tap meets.

    Args:
        layer: On pixels, without content.

    >>> layer = conv_to_attention(jnp.arange(6.0).reshape(3, 1, 2), exact=False)
    >>> kernel, distance = recovered_kernel(layer, (3,))
    >>> kernel.ravel().tolist(), float(distance)
    ([0.0, 1.0, 2.0, 3.0, 4.0, 5.0], 0.0)
    """
    sides = tuple(
        d * (k - 1) + s for k, d, s in zip(kernel_size, layer.dilation, layer.stride, strict=True)
    )
    maps = layer_maps(layer, jnp.promote_types(layer.dtype or jnp.float32, jnp.float32))
    assert maps is not None
    each = jnp.eye(layer.heads, dtype=maps.dtype)[:, None, :]
    heads = replace(layer, value=None, output=each)
    shares, _, _ = attention_to_conv(heads, tuple(kernel_size), image_size=sides)
    kernel = jnp.einsum("...h,hio->...io", shares[..., 0, :], maps, precision=HIGHEST)
    nearest = conv_to_attention(shares, exact=False, stride=layer.stride, dilation=layer.dilation)
    attention = linear_map(heads, sides)
    # |Σ a_h W_h| = |R a|. Not from a Gram matrix: what cancels in the sum would leave √u there.
    factor = jnp.linalg.qr(maps.reshape(layer.heads, -1).T, mode="r")

    def norm(entries: Array) -> Array:
        rows = entries.reshape(-1, layer.heads)
        return jnp.linalg.norm(jnp.matmul(rows, factor.T, precision=HIGHEST))

    whole = norm(attention)
    gap = norm(attention - linear_map(nearest, sides))
    return kernel, jnp.where(whole > 0, gap / jnp.where(whole > 0, whole, 1), gap)
