"""What 1×1 SAC heads with the even bias can and cannot express.

**They can: every kernel that is even in each axis.** Let K = 2r + 1 on each axis and let W_δ
depend on |δ| = (|δ_1|, |δ_2|) alone: (r+1)² free taps. Head c, for a distance c, has bias M at c
and 0 elsewhere; let n_c be the number of δ with |δ| = c (1, 2 or 4). At a query whose δ are all
keys, with e^M = 1 + N·g, g = 1/ε - 1 (`relative_bias`), its row is (g·Σ_(|δ|=c) S_δ + J)/(n_c·g +
1). With the values (n_c·g + 1)/g·W_c and one uniform head with -1/g·Σ_c W_c,

    Σ_c (Σ_(|δ|=c) S_δ + J/g) X W_c - J/g X Σ_c W_c = Σ_δ S_δ X W_δ = conv(X)_q.  ∎

So (r+1)² + 1 heads suffice at any finite M > 0; with a ring of r zeros every query of the image is
such a query, and the values, without a bias of their own, are zero on the ring.

**They cannot: any other kernel, with any number of heads, content and all.** Let P reflect one axis
of the image. 1×1 filters commute with P, the bias is even, so every 1×1 SAC L satisfies
L(PX) = P L(X) (`relative_bias`), in the limit too, and so does every network of such layers and
pixelwise maps. A convolution satisfies it iff W_δ = W_(Pδ) for every δ that occurs in the image.
So, where a δ with W_δ ≠ W_(Pδ) occurs, L differs from the convolution. By how much: for every X
|conv(PX) - P conv(X)| ≤ |conv(PX) - L(PX)| + |P L(X) - P conv(X)|, so some image of the two is off
by at least half of the left-hand side.
"""

from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Num

from convattn.operators.arrays import accumulation_dtype, as_array
from convattn.operators.convolution import check_kernel
from convattn.operators.integers import per_axis
from convattn.operators.kernel_layout import warns_of_layout
from convattn.sac.parameters import SelfAttentiveParameters
from convattn.sac.relative_bias import EvenBias
from convattn.sac.self_attentive_convolution import self_attentive_convolution


def even_part(kernel: Num[Array, "*taps in_channels out_channels"]) -> Float[Array, "..."]:
    """The mean of the kernel over all reflections of its axes: the part that 1×1 SAC can express.

    >>> even_part(jnp.array([1.0, 5.0, 3.0]).reshape(3, 1, 1)).ravel().tolist()
    [2.0, 5.0, 2.0]
    """
    mean = kernel
    for axis in range(kernel.ndim - 2):
        mean = (mean + jnp.flip(mean, axis)) / 2
    return mean


@warns_of_layout
def sac_from_even_kernel(
    kernel: Any, bias: Any = None, *, uniform_weight: float = 0.5
) -> SelfAttentiveParameters:
    """(r_1+1)(r_2+1) + 1 heads of 1×1 filters that are the convolution with an even kernel.

    The result is exact at queries whose taps all lie in the image; `with_zero_ring` makes it so at
    every query.

    Args:
        kernel: `[2r_1 + 1, 2r_2 + 1, in, out]` or `[2r + 1, in, out]`, equal to its reflections.
        uniform_weight: ε in (0, 1).

    Raises:
        ValueError: For even sizes, for a kernel that is not even (no number of heads expresses it;
            a traced kernel is trusted to be even), for a leak outside (0, 1).

    >>> kernel = jnp.array([2.0, 5.0, 2.0]).reshape(3, 1, 1)
    >>> sac_from_even_kernel(kernel).value.ravel().tolist()
    [10.0, 6.0, -7.0]
    """
    kernel, bias = check_kernel(kernel, bias, 1)
    sizes = kernel.shape[:-2]
    if any(size % 2 == 0 for size in sizes):
        raise ValueError(
            f"kernel.shape={kernel.shape}, but the filter sizes {sizes} should be odd: an even "
            "number of taps is not symmetric about the query"
        )
    if not 0 < uniform_weight < 1:
        raise ValueError(
            f"uniform_weight={uniform_weight}, but expected a number strictly between 0 and 1"
        )
    looked_at = () if isinstance(kernel, jax.core.Tracer) else range(len(sizes))
    for axis in looked_at:
        if not np.array_equal(np.asarray(kernel), np.asarray(jnp.flip(kernel, axis))):
            raise ValueError(
                f"the kernel of shape {kernel.shape} differs from its reflection in axis {axis}, "
                "but 1×1 SAC heads with an even bias commute with reflections, so that no number "
                "of them expresses it; take sac_from_convolution, or even_part(kernel)"
            )
    if not jnp.issubdtype(kernel.dtype, jnp.inexact):
        kernel = kernel.astype(jnp.float32)
    working = accumulation_dtype(kernel)
    gain = 1 / uniform_weight - 1
    reach = [size // 2 for size in sizes]
    distances = list(product(*(range(r + 1) for r in reach)))
    quarter = kernel[tuple(slice(r, None) for r in reach)].astype(working)
    maps = quarter.reshape(len(distances), *kernel.shape[-2:])
    counts = jnp.array([2 ** sum(d > 0 for d in distance) for distance in distances], working)
    total = maps.sum(axis=0)
    values = jnp.concatenate(
        [(counts * gain + 1)[:, None, None] / gain * maps, -total[None] / gain]
    )
    heads = len(distances) + 1
    table = jnp.eye(heads, heads - 1, dtype=working).reshape(heads, *(r + 1 for r in reach))
    ones = (1,) * len(sizes)
    return SelfAttentiveParameters(
        values.astype(kernel.dtype).reshape(heads, *ones, *kernel.shape[-2:]),
        position=EvenBias(table, jnp.asarray(uniform_weight, working)),
        bias=bias,
        stride=ones,
        dilation=ones,
        key_stride=ones,
    )


def with_zero_ring(
    parameters: SelfAttentiveParameters,
    images: Any,
    ring: tuple[int, ...],
) -> Float[Array, "batch *space out_channels"]:
    """Zeros around the image, SAC at stride 1, and the image's own cells of the result.

    Args:
        ring: How many zeros on both sides of each axis; r for an even kernel of size 2r + 1.

    Raises:
        ValueError: For a strided SAC, whose cells are not those of the image, and for a ring that
            is not one number ≥ 0 for each axis.

    >>> kernel = jnp.array([2.0, 5.0, 2.0]).reshape(3, 1, 1)
    >>> image = jnp.array([[[1.0], [0.0], [4.0]]])
    >>> with_zero_ring(sac_from_even_kernel(kernel), image, (1,)).round(4).ravel().tolist()
    [5.0, 10.0, 20.0]
    """
    images = as_array(images, "images")
    if set(parameters.stride) != {1} or set(parameters.key_stride) != {1}:
        raise ValueError(
            f"stride={parameters.stride} and key_stride={parameters.key_stride}, but a ring takes "
            "a SAC of stride 1; apply that one, and take every s-th cell of its result"
        )
    ring = per_axis(ring, images.ndim - 2, "ring", 0)
    padded = jnp.pad(images, [(0, 0), *((r, r) for r in ring), (0, 0)])
    result = self_attentive_convolution(parameters, padded)
    inside = tuple(slice(r, r + n) for r, n in zip(ring, images.shape[1:-1], strict=True))
    return result[(slice(None), *inside)]
