"""Self-attentive convolutions as modules (B19 §3), those of a language model among them (§5)."""

from collections.abc import Sequence

from flax import nnx
from jax import Array
from jax.typing import DTypeLike

from convattn.sac.initialization import initial_self_attentive
from convattn.sac.modules.held import held, read
from convattn.sac.relative_bias import EvenBias
from convattn.sac.self_attentive_convolution import self_attentive_convolution
from convattn.sac.self_attentive_parameters import SelfAttentiveParameters


class SelfAttentiveLayer(nnx.Module):
    """A SAC that starts from given parameters, such as those of `sac_from_convolution`.

    A leak is held, but not trained.

    >>> import jax.numpy as jnp
    >>> from convattn.sac import sac_from_convolution
    >>> layer = SelfAttentiveLayer(sac_from_convolution(jnp.ones((3, 3, 2, 4))))
    >>> layer(jnp.ones((1, 6, 7, 2)))[0, 0, 0].round(3).tolist()
    [8.0, 8.0, 8.0, 8.0]
    """

    def __init__(self, parameters: SelfAttentiveParameters) -> None:
        self.value, self.query, self.key = map(
            held, (parameters.value, parameters.query, parameters.key)
        )
        self.output, self.ordinary = held(parameters.output), held(parameters.ordinary)
        self.merge, self.bias = held(parameters.merge), held(parameters.bias)
        self.position = held(None if parameters.position is None else parameters.position.values)
        leak = None if parameters.position is None else parameters.position.leak
        self.leak = None if leak is None else nnx.Variable(leak)
        self.stride, self.dilation = parameters.stride, parameters.dilation
        self.key_stride, self.causal = parameters.key_stride, parameters.causal

    @property
    def parameters(self) -> SelfAttentiveParameters:
        """What the pure function takes."""
        table = read(self.position)
        return SelfAttentiveParameters(
            value=read(self.value),
            query=read(self.query),
            key=read(self.key),
            position=None if table is None else EvenBias(table, read(self.leak)),
            output=read(self.output),
            ordinary=read(self.ordinary),
            merge=read(self.merge),
            bias=read(self.bias),
            stride=self.stride,
            dilation=self.dilation,
            key_stride=self.key_stride,
            causal=self.causal,
        )

    def __call__(self, images: Array, *, key_mask: Array | None = None) -> Array:
        """`self_attentive_convolution` of the images."""
        return self_attentive_convolution(self.parameters, images, key_mask=key_mask)


class SelfAttentiveConvolution(SelfAttentiveLayer):
    """B19 §3, on images or sequences, as `image_size` has two entries or one.

    Args:
        As for `initial_self_attentive`; `image_size` is that of the bias table, in cells of the key
        grid.

    >>> import jax.numpy as jnp
    >>> layer = SelfAttentiveConvolution(
    ...     3, 5, (2, 3), heads=2, key_features=4, image_size=(6, 7), stride=2, rngs=nnx.Rngs(0)
    ... )
    >>> layer(jnp.ones((1, 6, 7, 3))).shape
    (1, 3, 4, 5)
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        kernel_size: int | Sequence[int],
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
        made = initial_self_attentive(
            rngs.params(),
            kernel_size,
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


class CausalSelfAttentiveConvolution(SelfAttentiveConvolution):
    """B19 §5 for a language model: m-grams of the past attend to m-grams of the past.

    `[batch, length, in]` to `[batch, length, out]`; position i depends on positions ≤ i alone.

    >>> import jax.numpy as jnp
    >>> layer = CausalSelfAttentiveConvolution(
    ...     3, 5, 2, heads=2, key_features=4, length=9, rngs=nnx.Rngs(0)
    ... )
    >>> layer(jnp.ones((1, 9, 3))).shape
    (1, 9, 5)
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        width: int,
        *,
        heads: int,
        key_features: int,
        length: int,
        ordinary: bool = False,
        dilation: int = 1,
        param_dtype: DTypeLike = "float32",
        rngs: nnx.Rngs,
    ) -> None:
        super().__init__(
            in_features,
            out_features,
            (width,),
            heads=heads,
            key_features=key_features,
            image_size=(length,),
            ordinary=ordinary,
            dilation=dilation,
            causal=True,
            param_dtype=param_dtype,
            rngs=rngs,
        )
