"""The operators as Flax NNX modules, to drop into a model in place of `nnx.Conv`.

This is the one file of the library that imports Flax. Each module holds its parameters as
`nnx.Param` and hands them to the pure function: `parameters` is the pytree that it hands over.
"""

from collections.abc import Sequence
from typing import Any

from flax import nnx
from jax import Array
from jax.typing import DTypeLike

from convattn.sac.initialization import (
    initial_multiscale,
    initial_self_attention_2d,
    initial_self_attentive,
)
from convattn.sac.multiscale import MultiscaleParameters, multiscale_self_attentive_convolution
from convattn.sac.relative_bias import EvenBias
from convattn.sac.self_attention_2d import SelfAttention2DParameters, self_attention_2d
from convattn.sac.self_attentive_convolution import (
    SelfAttentiveParameters,
    self_attentive_convolution,
)


def _held(part: Array | None) -> Any:
    return None if part is None else nnx.Param(part)


def _read(part: Any) -> Any:
    return None if part is None else part[...]


class SelfAttention2D(nnx.Module):
    """B19 §2: every pixel attends to every pixel; `[batch, height, width, in]` to `…, out]`.

    **Arguments:**

    - `image_size`: N and M, the size of the bias table; beyond it the bias is 0.

    >>> import jax.numpy as jnp
    >>> layer = SelfAttention2D(3, 5, heads=2, key_features=4, image_size=(6, 7), rngs=nnx.Rngs(0))
    >>> layer(jnp.ones((1, 6, 7, 3))).shape
    (1, 6, 7, 5)
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        heads: int,
        key_features: int,
        image_size: Sequence[int],
        param_dtype: DTypeLike = "float32",
        rngs: nnx.Rngs,
    ) -> None:
        made = initial_self_attention_2d(
            rngs.params(),
            in_features,
            out_features,
            heads=heads,
            key_features=key_features,
            distances=image_size,
            dtype=param_dtype,
        )
        self.query, self.key, self.value = map(_held, (made.query, made.key, made.value))
        self.position = _held(None if made.position is None else made.position.values)
        self.output = _held(made.output)

    @property
    def parameters(self) -> SelfAttention2DParameters:
        """What the pure function takes."""
        return SelfAttention2DParameters(
            _read(self.query),
            _read(self.key),
            _read(self.value),
            EvenBias(_read(self.position)),
            _read(self.output),
        )

    def __call__(self, images: Array) -> Array:
        """`self_attention_2d` of the images."""
        return self_attention_2d(self.parameters, images)


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
            _held, (parameters.value, parameters.query, parameters.key)
        )
        self.output, self.ordinary = _held(parameters.output), _held(parameters.ordinary)
        self.merge, self.bias = _held(parameters.merge), _held(parameters.bias)
        self.position = _held(None if parameters.position is None else parameters.position.values)
        leak = None if parameters.position is None else parameters.position.leak
        self.leak = None if leak is None else nnx.Variable(leak)
        self.stride, self.dilation = parameters.stride, parameters.dilation
        self.key_stride, self.causal = parameters.key_stride, parameters.causal

    @property
    def parameters(self) -> SelfAttentiveParameters:
        """What the pure function takes."""
        table = _read(self.position)
        return SelfAttentiveParameters(
            value=_read(self.value),
            query=_read(self.query),
            key=_read(self.key),
            position=None if table is None else EvenBias(table, _read(self.leak)),
            output=_read(self.output),
            ordinary=_read(self.ordinary),
            merge=_read(self.merge),
            bias=_read(self.bias),
            stride=self.stride,
            dilation=self.dilation,
            key_stride=self.key_stride,
            causal=self.causal,
        )

    def __call__(self, images: Array, *, key_mask: Array | None = None) -> Array:
        """`self_attentive_convolution` of the images."""
        return self_attentive_convolution(self.parameters, images, key_mask=key_mask)


class SelfAttentiveConvolution(SelfAttentiveLayer):
    """B19 §3, on images or sequences, as `kernel_size` has two entries or one.

    **Arguments:** as for `initial_self_attentive`; `image_size` is that of the bias table, in cells
    of the key grid.

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
        kernel_size: Sequence[int],
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
        kernel_sizes: Sequence[Sequence[int]],
        *,
        heads: int,
        key_features: int,
        image_size: Sequence[int],
        ordinary: bool = False,
        stride: int | Sequence[int] = 1,
        dilation: int | Sequence[int] = 1,
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
            causal=causal,
            dtype=param_dtype,
        )
        super().__init__(made)
