"""Cross-attentive features of two images as a module (B19 §6.1)."""

import math
from collections.abc import Sequence

import jax
from flax import nnx
from jax import Array
from jax.typing import DTypeLike

from convattn.operators.integers import as_integer
from convattn.sac.cross_attention import check_how, cross_attentive_features
from convattn.sac.modules.multiscale import MultiscaleSelfAttentiveLayer
from convattn.sac.modules.single_scale import SelfAttentiveLayer


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
    >>> from convattn.sac.modules import SelfAttentiveConvolution
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
                f"segment_shape={segment_shape!r} and rngs={rngs!r}, but segments should have the "
                "shape (d,) or (height, width, d), and be drawn from rngs=nnx.Rngs(seed)"
            )
        self.first_segment, self.second_segment = (
            nnx.Param(jax.random.normal(rngs.params(), shape, param_dtype) / math.sqrt(shape[-1]))
            for _ in range(2)
        )

    def __call__(self, first: Array, second: Array) -> tuple[Array, Array]:
        """`cross_attentive_features` of the two images."""
        segments = None
        if self.first_segment is not None and self.second_segment is not None:
            segments = (self.first_segment[...], self.second_segment[...])
        return cross_attentive_features(
            self.layer.parameters, first, second, gap=self.gap, segments=segments, how=self.how
        )
