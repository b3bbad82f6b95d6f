"""Tokens mixed by a convolution of the image that they make up: L21's convolution phase.

Tokens of P²·C features are an image of C channels, which is convolved K × K, C to C channels, and
cut into patches again. What stands outside the image is zero; or, with `border="mean"`, every token
that is not there is the mean of all tokens, which is what a head of attention sees where its key is
missing (S.boundary, S.finite).
"""

import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import Array, lax
from jax.typing import DTypeLike
from jaxtyping import Float

from convattn.nnx.layers.compute import compute_dtype, product_precision, wide_dtype, with_bias
from convattn.nnx.layers.linear import uniform_within
from convattn.nnx.vision_transformer.settings import Border, VisionTransformerSettings
from convattn.operators.patches import add_zero_ring, patchify, unpatchify
from convattn.operators.shifts import axis_token_offsets

DIMENSIONS = ("NHWC", "HWIO", "NHWC")


class ConvolutionMixing(nnx.Module):
    """`[batch, rows, columns, P²·C]` to the same shape.

    Its parameters are `kernel` `[K, K, C, C]` and `bias` `[C]`, which begin as PyTorch's do.

    Source: L21 §4.1.

    >>> settings = VisionTransformerSettings("convolution", width=12, patch_size=2)
    >>> mixing = ConvolutionMixing(settings, rngs=nnx.Rngs(0))
    >>> mixing(jnp.ones((2, 4, 5, 12))).shape, mixing.kernel.shape
    ((2, 4, 5, 12), (3, 3, 3, 3))
    """

    def __init__(
        self,
        settings: VisionTransformerSettings,
        *,
        rngs: nnx.Rngs,
        dtype: DTypeLike = jnp.float32,
    ) -> None:
        self.dtype = compute_dtype(dtype)
        self.patch_size, self.border = settings.patch_size, settings.border
        size, channels = settings.kernel_size, settings.width // settings.patch_size**2
        initializer = uniform_within(size * size * channels)
        self.kernel = nnx.Param(
            initializer(rngs.params(), (size, size, channels, channels), jnp.float32)
        )
        self.bias = nnx.Param(initializer(rngs.params(), (channels,), jnp.float32))

    def __call__(
        self, tokens: Float[Array, "batch rows columns features"], dropout_key: Array | None = None
    ) -> Float[Array, "batch rows columns features"]:
        """The convolution; it has no weights to drop."""
        return convolve_tokens(
            tokens.astype(self.dtype),
            self.kernel[...],
            self.bias[...],
            patch_size=self.patch_size,
            border=self.border,
        )


def convolve_tokens(
    tokens: Float[Array, "batch rows columns features"],
    kernel: Float[Array, "rows_read columns_read channels channels"],
    bias: Float[Array, " channels"],
    *,
    patch_size: int,
    border: Border = "zero",
) -> Float[Array, "batch rows columns features"]:
    """The convolution of the image of these tokens, as tokens, in their dtype.

    The bias is added in at least float32, so that its gradient is summed there.

    Args:
        kernel: K × K, K odd.

    >>> tokens = jnp.array([[[[1.0], [5.0]]]])
    >>> kernel = jnp.zeros((3, 3, 1, 1)).at[1, 2].set(1.0)  # reads what stands to the right
    >>> convolve_tokens(tokens, kernel, jnp.zeros(1), patch_size=1)[0, 0, :, 0].tolist()
    [5.0, 0.0]
    >>> given = {"patch_size": 1, "border": "mean"}
    >>> convolve_tokens(tokens, kernel, jnp.zeros(1), **given)[0, 0, :, 0].tolist()
    [5.0, 3.0]
    """
    dtype, reach = tokens.dtype, kernel.shape[0] // 2
    if border == "mean":
        tokens = _with_mean_ring(tokens, axis_token_offsets(len(kernel), patch_size, 1)[-1])
    images = unpatchify(tokens, patch_size)
    if border == "mean":
        images = cropped(images, -reach % patch_size)
    convolved = lax.conv_general_dilated(
        images,
        kernel.astype(dtype),
        (1, 1),
        "VALID" if border == "mean" else "SAME",
        dimension_numbers=DIMENSIONS,
        precision=product_precision(dtype),
    )
    wide = wide_dtype(dtype)
    return patchify(with_bias(convolved.astype(wide), bias.astype(wide)).astype(dtype), patch_size)


def _with_mean_ring(
    tokens: Float[Array, "batch rows columns features"], width: int
) -> Float[Array, "batch ringed_rows ringed_columns features"]:
    """A ring of so many tokens laid around the grid, each the mean of all tokens.

    >>> _with_mean_ring(jnp.array([[[[1.0], [3.0]]]]), 1)[0, :, :, 0].tolist()
    [[2.0, 2.0, 2.0, 2.0], [2.0, 1.0, 3.0, 2.0], [2.0, 2.0, 2.0, 2.0]]
    """
    ring = ((width, width),) * 2
    mean = tokens.astype(wide_dtype(tokens.dtype)).mean(axis=(1, 2), keepdims=True)
    inside = np.pad(np.ones(tokens.shape[1:3], bool), ring)[..., None]
    return jnp.where(inside, add_zero_ring(tokens, ring), mean.astype(tokens.dtype))


def cropped(
    images: Float[Array, "batch height width channels"], pixels: int
) -> Float[Array, "batch rows columns channels"]:
    """The images without so many pixels on each side.

    >>> cropped(jnp.ones((1, 5, 6, 3)), 2).shape
    (1, 1, 2, 3)
    """
    height, width = images.shape[1:3]
    return images[:, pixels : height - pixels, pixels : width - pixels]
