"""`attention_to_conv`: the convolution nearest to an attention layer, and how near it is.

A layer without content is a linear map on images, L[x, y] ∈ R^(in × out) from input pixel y to
output pixel x (`linear_map`). So is a convolution with taps t: C_W[x, y] = W_t if y = s·x + d·t,
else 0. For each tap the pairs (x, y) that it joins are disjoint from those of the other taps, so

    |L - C_W|² = Σ_t Σ_((x, y) of t) |L[x, y] - W_t|² + (the rest, which no W touches),

and the least-squares kernel is, tap by tap, the mean of L over the pairs. Where the layer fills its
ring, that is the kernel nearest on the filled image, L̃ in the place of L; how far the two are apart
is measured on the image itself. A layer with content is not linear; it is linearised at X = 0,
where Σ_k a_qk(X) X_k V has the derivative Σ_k a_qk(0) dX_k V.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from convattn.constructions.linear_map import MapGeometry, convolution_map, filled_map, folded
from convattn.encodings.layer import AttentionLayer
from convattn.operators.integers import per_axis
from convattn.operators.shifts import axis_taps


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class RecoveryResidual:
    """How far the layer is from the recovered convolution on images of that size.

    Attributes:
        relative_frobenius: |L - C|_F / |L|_F of the two linear maps; 0 if both vanish.
        sup_norm: Max over output pixels and channels of Σ |L - C|.
        bias_gap: Max over the pixels of a patch and channels of |bias - its mean|; a convolution
            has one bias for all pixels, a layer need not. The outputs differ by at most `sup_norm ·
            max|X| + bias_gap`.
        linearised: Whether the layer has content scores, so that L is its derivative at X = 0.
        padding: The pixels (before, after) on each axis with which the convolution is meant, filled
            as the layer fills them; at a kernel size other than the layer's own they are those at
            which the taps meet the pixels that the layer reads.
    """

    relative_frobenius: Float[Array, ""]
    sup_norm: Float[Array, ""]
    bias_gap: Float[Array, ""]
    linearised: bool = field(default=False, metadata={"static": True})
    padding: tuple[tuple[int, int], ...] = field(default=(), metadata={"static": True})


class RecoveredConvolution(NamedTuple):
    """Unpacks as `kernel, bias, residual`."""

    kernel: Array
    bias: Array | None
    residual: RecoveryResidual


def attention_to_conv(
    layer: AttentionLayer,
    kernel_size: int | Sequence[int],
    *,
    image_size: int | Sequence[int],
) -> RecoveredConvolution:
    """The least-squares K × K convolution of a layer, over all queries of one image size.

    Args:
        layer: Any layer; its stride and dilation are those of the convolution, and its padding,
            as `residual.padding` has it.
        kernel_size: K, or one for each axis; odd or even. Of a layer that fills its ring with
            pixels no larger than its own.
        image_size: The pixels, or one number for each axis; P divides them.

    Returns:
        The kernel `[K, K, in, out]`, the bias `[out]` (the mean over the pixels of a patch) or
        None, and the residual. For a layer from `conv_to_attention` the kernel is the one that went
        in, up to rounding, and the residual is of the size of rounding.

    Raises:
        ValueError: Where sizes do not fit the layer, for an image so large that the linear map
            could not be written out, and for a tap that joins no pair of pixels of
            such an image, so that nothing is known of it.

    >>> import convattn as ca
    >>> layer = ca.conv_to_attention([[[1.0]], [[2.0]], [[3.0]]], encoding="quadratic")
    >>> kernel, bias, residual = ca.attention_to_conv(layer, 3, image_size=(5,))
    >>> kernel.ravel().tolist(), bias, float(residual.relative_frobenius)
    ([1.0, 2.0, 3.0], None, 0.0)
    """
    axes = len(layer.patch_size)
    taps = per_axis(kernel_size, axes, "kernel_size")
    sizes = image_size if isinstance(image_size, int | np.integer) else tuple(image_size)
    sides = per_axis(sizes, axes, "image_size")
    if any(n % p for n, p in zip(sides, layer.patch_size, strict=True)):
        raise ValueError(
            f"image_size={sides}, but patches of size {layer.patch_size} should divide it"
        )
    _require_reach(layer, taps)
    linear, geometry = filled_map(layer, sides), MapGeometry.of(layer, sides)
    in_channels, out_channels = linear.shape[-2:]
    kernel = jnp.zeros((*taps, in_channels, out_channels), linear.dtype)
    for tap in np.ndindex(*taps):
        where = geometry.joined(layer, taps, tap)
        if where is None:
            raise ValueError(
                f"image_size={sides} has no pair of pixels that tap {tap} of a kernel of size "
                f"{taps} joins; take a larger image or a smaller kernel"
            )
        entries = linear[where].reshape(-1, in_channels, out_channels)
        mean = entries[0] + (entries - entries[:1]).mean(axis=0)  # exact where all are equal
        kernel = kernel.at[tap].set(mean)

    bias = None
    if layer.bias is not None:
        bias = layer.bias.reshape(-1, out_channels).astype(linear.dtype).mean(axis=0)
    return RecoveredConvolution(kernel, bias, residual_of(layer, linear, kernel, bias, sides))


def residual_of(
    layer: AttentionLayer,
    linear: Array,
    kernel: Array,
    bias: Array | None,
    image_size: Sequence[int],
) -> RecoveryResidual:
    """How far a convolution is from a layer, as it is given: rounded to a dtype, say.

    Args:
        linear: The layer's `filled_map`.
    """
    axes, geometry = len(layer.patch_size), MapGeometry.of(layer, image_size)
    bias_gap = jnp.zeros((), linear.dtype)
    if layer.bias is not None:
        by_pixel = layer.bias.reshape(-1, linear.shape[-1]).astype(linear.dtype)
        bias_gap = jnp.abs(by_pixel - (0 if bias is None else bias)).max().astype(linear.dtype)
    gap = folded(layer, linear - convolution_map(layer, kernel, image_size), image_size)
    norm = jnp.sqrt(jnp.sum(folded(layer, linear, image_size) ** 2))
    distance = jnp.sqrt(jnp.sum(gap**2))
    inputs_axes = (*range(axes), 2 * axes)
    return RecoveryResidual(
        jnp.where(norm > 0, distance / jnp.where(norm > 0, norm, 1), distance),
        jnp.abs(gap).sum(axis=inputs_axes).max(),
        bias_gap,
        layer.content is not None,
        geometry.padding(layer, kernel.shape[:-2], image_size),
    )


def _require_reach(layer: AttentionLayer, kernel_size: Sequence[int]) -> None:
    """Refuse taps beyond what the layer fills in, where nothing says what stands there."""
    if layer.padding is None or layer.padding.fill == "ZEROS":
        return
    for axis, (before, after) in enumerate(layer.padding.reach):
        taps, step = axis_taps(kernel_size[axis]), layer.dilation[axis]
        if -step * taps[0] > before or step * taps[-1] > after:
            raise ValueError(
                f"kernel_size={tuple(kernel_size)}, but the layer fills its ring with pixels, "
                f"{layer.padding}, as far as its own kernel of {before + after + 1} pixels "
                "reaches; take that kernel size or a smaller one"
            )
