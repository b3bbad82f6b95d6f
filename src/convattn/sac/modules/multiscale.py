"""Multiscale self-attentive convolutions as modules (B19 §4)."""

from collections.abc import Sequence

from flax import nnx
from jax import Array
from jax.typing import DTypeLike

from convattn.sac.initialization import initial_multiscale
from convattn.sac.modules.single_scale import SelfAttentiveLayer
from convattn.sac.multiscale import MultiscaleParameters, multiscale_self_attentive_convolution


class MultiscaleSelfAttentiveLayer(nnx.Module):
    """An MSAC that starts from given parameters."""

    def __init__(self, parameters: MultiscaleParameters) -> None:
        self.scales = nnx.List([SelfAttentiveLayer(scale) for scale in parameters.scales])
        self.merge = nnx.Param(parameters.merge)

    @property
    def parameters(self) -> MultiscaleParameters:
        """What the pure function takes."""
        scales = tuple(scale.parameters for scale in self.scales)
        return MultiscaleParameters(scales, self.merge[...])

    def __call__(self, images: Array, *, key_mask: Array | None = None) -> Array:
        """`multiscale_self_attentive_convolution` of the images."""
        return multiscale_self_attentive_convolution(self.parameters, images, key_mask=key_mask)


class MultiscaleSelfAttentiveConvolution(MultiscaleSelfAttentiveLayer):
    """B19 §4: SAC of several filter sizes in parallel; with `causal`, of sequences' past.

    >>> import jax.numpy as jnp
    >>> layer = MultiscaleSelfAttentiveConvolution(
    ...     3, 5, ((1, 1), (3, 3)), heads=2, key_features=4, image_size=(6, 7), rngs=nnx.Rngs(0)
    ... )
    >>> layer(jnp.ones((1, 6, 7, 3))).shape
    (1, 6, 7, 5)
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        kernel_sizes: Sequence[int | Sequence[int]],
        *,
        heads: int,
        key_features: int,
        image_size: Sequence[int],
        ordinary: bool = False,
        stride: int | Sequence[int] = 1,
        dilation: int | Sequence[int] = 1,
        key_stride: int | Sequence[int] | None = None,
        causal: bool = False,
        param_dtype: DTypeLike = "float32",
        rngs: nnx.Rngs,
    ) -> None:
        made = initial_multiscale(
            rngs.params(),
            kernel_sizes,
            in_features,
            out_features,
            heads=heads,
            key_features=key_features,
            distances=image_size,
            ordinary=ordinary,
            stride=stride,
            dilation=dilation,
            key_stride=key_stride,
            causal=causal,
            dtype=param_dtype,
        )
        super().__init__(made)
