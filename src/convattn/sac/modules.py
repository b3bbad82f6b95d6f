"""The operators as Flax NNX modules, to drop into a model in place of `nnx.Conv` (B19 §§3 to 6).

A module holds the fields of its parameters under their own names, each array as an `nnx.Param`;
`parameters` gives them back as the pytree that the pure function takes. In this package nothing
else imports Flax.
"""

import math
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from convattn.extras import require

require("flax")

import jax
from flax import nnx
from jax import Array
from jax.typing import DTypeLike

from convattn.operators.integers import as_integer
from convattn.sac.cross_attention import check_how, cross_attentive_features
from convattn.sac.initialization import initial_multiscale, initial_self_attentive
from convattn.sac.multiscale import MultiscaleParameters, multiscale_self_attentive_convolution
from convattn.sac.parameters import SelfAttentiveParameters
from convattn.sac.relative_bias import EvenBias
from convattn.sac.self_attentive_convolution import self_attentive_convolution


class SelfAttentiveLayer(nnx.Module):
    """A SAC that starts from given parameters, such as those of `sac_from_convolution`.

    The bias table is held as `position`; a leak is held as `uniform_weight`, and not trained.

    >>> import jax.numpy as jnp
    >>> from convattn.sac import sac_from_convolution
    >>> layer = SelfAttentiveLayer(sac_from_convolution(jnp.ones((3, 3, 2, 4))))
    >>> layer(jnp.ones((1, 6, 7, 2)))[0, 0, 0].round(3).tolist()
    [8.0, 8.0, 8.0, 8.0]
    """

    position: Any

    def __init__(self, parameters: SelfAttentiveParameters) -> None:
        position = parameters.position
        arrays = vars(parameters) | {"position": None if position is None else position.values}
        for name, value in arrays.items():
            setattr(self, name, nnx.Param(value) if hasattr(value, "shape") else value)
        uniform_weight = None if position is None else position.uniform_weight
        self.uniform_weight = None if uniform_weight is None else nnx.Variable(uniform_weight)

    @property
    def parameters(self) -> SelfAttentiveParameters:
        """What the pure function takes."""
        names = [field.name for field in fields(SelfAttentiveParameters)]
        values = {name: read(getattr(self, name)) for name in names}
        if values["position"] is not None:
            values["position"] = EvenBias(values["position"], read(self.uniform_weight))
        return SelfAttentiveParameters(**values)

    def __call__(self, images: Array, *, key_mask: Array | None = None) -> Array:
        """`self_attentive_convolution` of the images."""
        return self_attentive_convolution(self.parameters, images, key_mask=key_mask)


def read(value: Any) -> Any:
    """The array that a variable holds; anything else, None too, as it is."""
    return value[...] if isinstance(value, nnx.Variable) else value


class SelfAttentiveConvolution(SelfAttentiveLayer):
    """B19 §3 with random initial parameters, on images or sequences.

    Args:
        kernel_size: n and m; (m,) for sequences. 1 on images is the 2-D self-attention of §2, and
            `causal=True` on sequences what a language model takes (§5).
        image_size: Of the bias table, in cells of the key grid: two numbers, or one for sequences.
        param_dtype: Of the parameters.
        options: As `initial_self_attentive` takes them: heads, key_features, ordinary, stride,
            dilation, key_stride, causal.

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
        image_size: Sequence[int],
        param_dtype: DTypeLike = "float32",
        rngs: nnx.Rngs,
        **options: Any,
    ) -> None:
        sizes = kernel_size, in_features, out_features
        options |= {"distances": image_size, "dtype": param_dtype}
        super().__init__(initial_self_attentive(rngs.params(), *sizes, **options))


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
    """B19 §4, SAC of several filter sizes in parallel, with random initial parameters.

    Args:
        kernel_sizes: The filter size of each scale.
        image_size, param_dtype, options: As for `SelfAttentiveConvolution`.

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
        image_size: Sequence[int],
        param_dtype: DTypeLike = "float32",
        rngs: nnx.Rngs,
        **options: Any,
    ) -> None:
        sizes = kernel_sizes, in_features, out_features
        options |= {"distances": image_size, "dtype": param_dtype}
        super().__init__(initial_multiscale(rngs.params(), *sizes, **options))


class CrossAttentiveFeatures(nnx.Module):
    """B19 §6.1: x and z after a layer in which the patches of both attend to those of both.

    Args:
        layer: a SAC or MSAC of images; its parameters are trained with the segments. Under
            `how="concatenate"` it takes the channels of the images and those of the segments.
        segment_shape: Of x^seg and of z^seg, `(d,)` or `(height, width, d)`; None: no segments.
        how: `"add"` or `"concatenate"`, as `with_segment` takes it.
        gap: Zero columns between the images; by default the fewest that keep the filters apart.
        rngs: For the segments, normal of variance 1/d; needed only with them.

    Raises:
        ValueError: For another `how`, a negative gap, and segments without `rngs`.

    >>> import jax.numpy as jnp
    >>> sizes = {"heads": 2, "key_features": 4, "image_size": (6, 15)}
    >>> layer = SelfAttentiveConvolution(3, 5, (2, 3), **sizes, rngs=nnx.Rngs(0))
    >>> pair = CrossAttentiveFeatures(layer, segment_shape=(3,), rngs=nnx.Rngs(1))
    >>> [part.shape for part in pair(jnp.ones((1, 6, 7, 3)), jnp.zeros((1, 6, 7, 3)))]
    [(1, 6, 7, 5), (1, 6, 7, 5)]
    """

    def __init__(
        self,
        layer: SelfAttentiveLayer | MultiscaleSelfAttentiveLayer,
        *,
        segment_shape: Sequence[int] | None = None,
        how: str = "add",
        gap: int | None = None,
        param_dtype: DTypeLike = "float32",
        rngs: nnx.Rngs | None = None,
    ) -> None:
        check_how(how)
        self.layer, self.how = layer, how
        self.gap = None if gap is None else as_integer(gap, "gap", 0)
        if segment_shape is None:
            self.first_segment, self.second_segment = None, None
            return
        shape = tuple(as_integer(size, "each of segment_shape", 1) for size in segment_shape)
        if rngs is None or len(shape) not in (1, 3):
            raise ValueError(
                f"segment_shape={segment_shape!r} and rngs={rngs!r}, but expected the shape (d,) "
                "or (height, width, d), and rngs to draw the segments from; pass nnx.Rngs(seed)"
            )
        self.first_segment, self.second_segment = (
            nnx.Param(jax.random.normal(rngs.params(), shape, param_dtype) / math.sqrt(shape[-1]))
            for _ in range(2)
        )

    def __call__(self, first: Array, second: Array) -> tuple[Array, Array]:
        """`cross_attentive_features` of the two images."""
        segments = None
        if self.first_segment is not None:
            segments = (read(self.first_segment), read(self.second_segment))
        return cross_attentive_features(
            self.layer.parameters, first, second, gap=self.gap, segments=segments, how=self.how
        )
